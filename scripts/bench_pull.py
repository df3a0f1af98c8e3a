#!/usr/bin/env python3
"""Measures infer pull over loopback against a plain copy of the same file from the same server.

    bench_pull.py [--bytes N] [--runs N] [--folder FOLDER] [--connections 1,4]

The plain copy is curl's, without a hash; both end with the file synced to the
disk. Runs alternate; the medians, their ratio and the CPU time are printed. FOLDER should be on the file system of interest: on a slow
disk both wait for it.
"""

import argparse
import hashlib
import http.server
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BINARY = os.environ.get("INFER_BINARY", str(pathlib.Path(__file__).resolve().parents[1] / "build" / "infer"))
PATH = "/org/repo/resolve/main/m-Q8_0.gguf"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path, size, sha256 = self.server.content
        if self.path.startswith("/api/"):
            body = (f'[{{"type": "file", "path": "m-Q8_0.gguf", "size": {size}, '
                    f'"lfs": {{"oid": "{sha256}", "size": {size}}}}}]').encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        start, end = (int(found[1]), int(found[2]) + 1) if found else (0, size)
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", f'"{sha256}"')
        self.end_headers()
        self.wfile.flush()
        with open(path, "rb") as file:
            while start < end:
                start += os.sendfile(self.connection.fileno(), file.fileno(), start, end - start)


def make_file(path, size):
    block = b"GGUF" + os.urandom((1 << 20) - 4)
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        for at in range(0, size, len(block)):
            piece = block[:min(len(block), size - at)]
            file.write(piece)
            digest.update(piece)
    return digest.hexdigest()


def seconds(command, env, target):
    started, cpu = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(target, "rb") as file:
        os.fsync(file.fileno())
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - started, used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--connections", default="1,4")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source, cache = pathlib.Path(folder, "source"), pathlib.Path(folder, "cache")
        sha256 = make_file(source, options.bytes)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        server.content = (source, options.bytes, sha256)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        env = {**os.environ, "HF_ENDPOINT": url, "INFER_MODELS": str(cache), "HF_HOME": folder, "no_proxy": "*"}
        copied, pulled = pathlib.Path(folder, "copy"), cache / "hf.co" / "org" / "repo" / "m-Q8_0.gguf"
        commands = {"plain copy (curl)": (["curl", "-s", "-o", str(copied), url + PATH], copied)}
        for n in options.connections.split(","):
            commands[f"infer pull, {n} connections"] = ([BINARY, "pull", "org/repo:Q8_0", "--connections", n], pulled)
        times = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, (command, target) in commands.items():
                times[name].append(seconds(command, env, target))
                target.unlink()
        plain = None
        for name, values in times.items():
            rate = options.bytes / statistics.median(wall for wall, _ in values) / 1e6
            cpu = statistics.median(used for _, used in values)
            plain = plain or rate
            print(f"{name:28} {rate:7.0f} MB/s  {100 * rate / plain:4.0f} %  {cpu:5.2f} s of CPU time")


if __name__ == "__main__":
    sys.exit(main())
