"""A server that speaks the protocols of Hugging Face and of Ollama's registry, for tests; it can be told to misbehave.

    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", data)
        result = hub.pull("org/repo")

Everything it is asked for is recorded in `requests`. Programs run with a cache, a home and an environment of their own.
"""

import hashlib
import http.server
import json
import pathlib
import re
import select
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

from harness import expect, expect_equal, run

QUICK = ("--retries", 2, "--timeout", 2)


class Content:
    """A file on the server. `size` beyond the data: zeros follow."""

    def __init__(self, data, size=None, etag=None, sha256=None):
        self.data = data
        self.size = len(data) if size is None else size
        self.sha256 = sha256 or hashlib.sha256(data).hexdigest()
        self.etag = etag or f'"{self.sha256}"'

    def read(self, start, end):
        piece = self.data[start:end]
        return piece + bytes(end - start - len(piece))


class Request:
    """What a client sent; `range` is (first, last) or None."""

    def __init__(self, handler):
        self.target = handler.path
        self.path = urllib.parse.urlsplit(handler.path).path
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        self.range = (int(found[1]), int(found[2])) if found else None
        self.host = handler.headers.get("host", "")

    @property
    def is_probe(self):
        return self.range == (0, 0)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def log_message(self, *_):
        pass

    def do_GET(self):
        hub = self.server.hub
        request = Request(self)
        with hub.lock:
            hub.requests.append(request)
        try:
            for fault in list(hub.faults):
                if fault(self, request):
                    return
            self.answer(hub, request)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def do_CONNECT(self):
        """As a proxy for TLS: passes bytes in both directions."""
        with self.server.hub.lock:
            self.server.hub.requests.append(Request(self))
        if self.server.hub.refuses:
            self.send_status(407)
            return
        host, port = self.path.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as target:
            self.send_response(200)
            self.end_headers()
            both = {self.connection: target, target: self.connection}
            while True:
                for ready in select.select(list(both), [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        self.close_connection = True
                        return
                    both[ready].sendall(data)

    def answer(self, hub, request):
        path = urllib.parse.unquote(request.path)
        if found := re.fullmatch(r"/api/models/([^/]+/[^/]+)/tree/main", path):
            self.send_tree(hub, found[1], request)
        elif found := re.fullmatch(r"/([^/]+/[^/]+)/resolve/main/(.+)", path):
            content = hub.repos.get(found[1], {}).get(found[2])
            if content and hub.file_server:
                self.send_redirect(f"{hub.file_server.url}/cdn/{content.sha256}?Signature=a%2Bb+c~d",
                                   {"X-Linked-Etag": f'"{content.sha256}"', "X-Linked-Size": str(content.size)})
            else:
                self.send_content(content, request)
        elif found := re.fullmatch(r"/v2/([^/]+/[^/]+)/manifests/(.+)", path):
            self.send_json(hub.manifests.get((found[1], found[2])))
        elif found := re.fullmatch(r"/v2/[^/]+/[^/]+/blobs/sha256:(\w+)|/cdn/(\w+)", path):
            self.send_content(hub.blobs.get(found[1] or found[2]), request)
        else:
            self.send_content(hub.files.get(path), request)

    def send_tree(self, hub, repo, request):
        if repo not in hub.repos:
            self.send_status(404)
            return
        entries = [{"type": "directory", "oid": "0" * 40, "size": 0, "path": "folder"}]
        for path, content in hub.repos[repo].items():
            entries.append({"type": "file", "oid": "0" * 40, "size": content.size, "path": path,
                            "lfs": {"oid": content.sha256, "size": content.size, "pointerSize": 134}})
        first = int(urllib.parse.parse_qs(urllib.parse.urlsplit(request.target).query).get("cursor", ["0"])[0])
        page = entries[first:first + hub.page]
        more = {}
        if first + hub.page < len(entries):
            more = {"Link": f'<{hub.url}/api/models/{repo}/tree/main?recursive=1&cursor={first + hub.page}>; rel="next"'}
        self.send_json(page, more)

    def send_body(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_status(self, status, headers=None):
        self.send_body(status, b"an error page\n", headers or {})

    def send_json(self, value, headers=None):
        if value is None:
            self.send_status(404)
        else:
            self.send_body(200, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})

    def send_redirect(self, location, headers=None, status=302):
        self.send_body(status, b"elsewhere", {"Location": location, **(headers or {})})

    def send_content(self, content, request, ranges=True, stop_at=None, pause=0.0, chunk=1 << 16):
        """`stop_at`: the connection breaks before this byte of the file. `pause`: seconds between chunks."""
        if content is None:
            self.send_status(404)
            return
        start, end, status = 0, content.size, 200
        same = request.headers.get("if-range", content.etag) == content.etag
        if ranges and request.range and same:
            start, end, status = request.range[0], min(request.range[1] + 1, content.size), 206
            if start >= content.size:
                self.send_status(416, {"Content-Range": f"bytes */{content.size}"})
                return
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{content.size}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", content.etag)
        self.end_headers()
        while start < end:
            n = min(chunk, end - start, stop_at - start if stop_at is not None else end)
            if n <= 0:
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(2)
                return
            self.wfile.write(content.read(start, start + n))
            start += n
            with self.server.hub.lock:
                self.server.hub.bytes_sent += n
            if pause:
                time.sleep(pause)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, *_):
        pass


class HubServer:
    def __init__(self, certificate=None, host="127.0.0.1"):
        self.lock = threading.Lock()
        self.requests = []
        self.bytes_sent = 0
        self.faults = []      # callables (handler, request) -> whether it answered
        self.repos = {}       # {repository: {path: Content}}
        self.manifests = {}   # {(name, tag): manifest}
        self.blobs = {}       # {sha256: Content}
        self.files = {}       # {path: Content}
        self.page = 1000
        self.refuses = False  # as a proxy
        self.file_server = None  # a HubServer that files are redirected to
        self._server = Server((host, 0), Handler)
        self._server.hub = self
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.port = self._server.server_address[1]
        self.url = f"{scheme}://{host}:{self.port}"
        self._folder = tempfile.TemporaryDirectory()
        self.home = pathlib.Path(self._folder.name)
        self.cache = self.home / "models"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._folder.cleanup()

    def add(self, repo, path, data, **how):
        content = Content(data, **how)
        self.repos.setdefault(repo, {})[path] = content
        self.blobs[content.sha256] = content
        if self.file_server:
            self.file_server.blobs[content.sha256] = content
        return content

    def add_ollama(self, name, tag, data, **layer):
        content = Content(data)
        self.blobs[content.sha256] = content
        layers = [{"mediaType": "application/vnd.ollama.image.template", "digest": "sha256:" + "0" * 64, "size": 5},
                  {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + content.sha256,
                   "size": len(data), **layer}]
        self.manifests[name, tag] = {"schemaVersion": 2, "layers": layers}
        return content

    def environment(self, **changes):
        """Only this server, and nothing of the machine's own settings."""
        env = {"HOME": str(self.home), "INFER_MODELS": str(self.cache), "HF_ENDPOINT": self.url,
               "INFER_OLLAMA_REGISTRY": self.url, "HF_HOME": str(self.home / "huggingface"), "no_proxy": "*"}
        for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE",
                     "HF_HUB_OFFLINE", "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "NO_PROXY"):
            env[name] = ""
        return {**env, **{name: str(value) for name, value in changes.items()}}

    def infer(self, *arguments, env=None, **how):
        return run(*arguments, env=self.environment(**(env or {})), **how)

    def pull(self, name, *flags, env=None):
        return self.infer("pull", name, *QUICK, *flags, env=env)

    def models(self):
        return json.loads(self.infer("models", "--json").out)

    def file_requests(self):
        """Those for the content of files, without the ones that only ask for size and tag."""
        with self.lock:
            return [r for r in self.requests if r.range and not r.is_probe]

    def forget(self):
        with self.lock:
            self.requests.clear()
            self.bytes_sent = 0


def make_certificate(folder):
    """(certificate, key) for 127.0.0.1, signed by itself; None without the openssl program."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate),
               "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    return certificate, key


def times(count, fault):
    """A fault that happens to the first `count` requests for content that it would answer."""
    left = [count]
    lock = threading.Lock()

    def limited(handler, request):
        with lock:
            if not request.range or request.is_probe or left[0] == 0:
                return False
            left[0] -= 1
        return fault(handler, request)
    return limited


def random_file(size, seed=1):
    """Bytes that begin like a GGUF file."""
    block = hashlib.sha512(str(seed).encode()).digest()
    data = bytearray()
    while len(data) < size:
        block = hashlib.sha512(block).digest()
        data += block * 16 + len(data).to_bytes(8, "little")
    return b"GGUF" + bytes(data[:size - 4])


def check_failure(hub, result, *words, part=None):
    """One line that has the words; no model. `part`: whether an unfinished download stays."""
    expect_equal(result.code, 1, f"exit code; {result}")
    line = result.err.splitlines()[-1]
    expect(all(word in line for word in words), f"{words} in the last line", result)
    expect_equal((result.out, list(hub.cache.rglob("*.gguf")), list(hub.cache.rglob("*.json.new*"))), ("", [], []), "files")
    listed = hub.models()
    expect_equal(listed["models"], [], "models")
    if part is not None:
        expect_equal(len(list(hub.cache.rglob("*.part"))), int(part), f"unfinished downloads; {listed}")
