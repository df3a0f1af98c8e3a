"""infer pull, models and rm against a server on this machine. pull_run_test.py has the commands that run models."""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

from harness import BINARY, PATIENCE, expect, expect_equal, main, run, skip, test, test_each
from hub_server import Content, HubServer, make_certificate, random_file
from models import SPM, succeeded
from pseudo_terminal import Terminal

MODEL = SPM.read_bytes()
ANSWER = ("-p", "once", "-n", 5, "--temp", 0, "--raw", "-q")


def answer():
    return succeeded(run("run", "-m", SPM, *ANSWER)).out


def path_of(result):
    return pathlib.Path(succeeded(result).out.rstrip("\n"))


# From the server to the cache

@test
def a_model_is_downloaded_listed_used_and_removed():
    with HubServer() as hub:
        content = hub.add("org/repo", "m-Q4_K_M.gguf", MODEL)
        hub.add("org/repo", "mmproj-m-F16.gguf", b"GGUF projector")
        pulled = hub.pull("org/repo")
        path = path_of(pulled)
        expect_equal(path, hub.cache / "hf.co" / "org" / "repo" / "m-Q4_K_M.gguf", "path")
        expect_equal(path.read_bytes(), MODEL, "content")
        expect(pulled.err.replace("\n", "").isprintable(), "no control characters", pulled)
        listed = hub.models()
        expect_equal([m["name"] for m in listed["models"]], ["hf.co/org/repo:Q4_K_M"], "models")
        model = listed["models"][0]
        expect_equal((model["size"], model["quantization"], model["path"], model["files"][0]["sha256"]),
                     (len(MODEL), "Q4_K_M", str(path), content.sha256), "the model")
        expect_equal(listed["unfinished"], [], "unfinished downloads")
        expect("hf.co/org/repo:Q4_K_M" in hub.infer("models").out, "the table")
        hub.forget()
        again = hub.pull("org/repo")
        expect_equal(path_of(again), path, "path")
        expect("up to date" in again.err and not hub.file_requests(), "nothing is downloaded again", again)
        hub.forget()
        for name in (("-m", "org/repo"), ("-m", "hf.co/org/repo:q4_k_m"), ("-hf", "org/repo"), ("-hf", "ORG/Repo:Q4_K_M")):
            expect_equal(succeeded(hub.infer("run", *name, *ANSWER)).out, answer(), f"text of {name}")
        expect_equal(hub.requests, [], "requests of models in the cache")
        removed = succeeded(hub.infer("rm", "org/repo"))
        expect("Removed hf.co/org/repo:Q4_K_M" in removed.err, "it says so", removed)
        expect_equal((hub.models()["models"], list(hub.cache.iterdir())), ([], []), "what is left")
        missing = hub.infer("rm", "org/repo")
        expect(missing.code == 1 and "not in the cache" in missing.err, "there is nothing to remove", missing)


@test
def running_a_model_notes_its_use():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", MODEL)
        path = path_of(hub.pull("org/repo"))
        os.utime(f"{path}.json", (1, 1))
        expect_equal(hub.models()["models"][0]["last_used"], "1970-01-01T00:00:01Z", "last use")
        succeeded(hub.infer("run", "-hf", "org/repo", *ANSWER))
        expect(hub.models()["models"][0]["last_used"] > "2020", "a later use")


@test
def large_files_come_in_parallel_ranges():
    data = random_file(9_000_000)
    with HubServer() as hub:
        hub.add("org/repo", "m-Q8_0.gguf", data)
        expect_equal(path_of(hub.pull("org/repo", "--connections", 3)).read_bytes(), data, "content")
        ranges = sorted(r.range for r in hub.file_requests())
        expect(len(ranges) > 3 and ranges[0][0] == 0 and ranges[-1][1] == len(data) - 1, "ranges", ranges)
        expect(all(a[1] + 1 == b[0] for a, b in zip(ranges, ranges[1:])), "one after the other", ranges)


@test_each("Q8_0", "q8_0", "UD-Q3_K_XL", "Q3_K_XL")
def a_tag_names_the_quantization(tag):
    with HubServer() as hub:
        for label in ("Q4_K_M", "Q8_0", "UD-Q3_K_XL"):
            hub.add("org/repo", f"m-{label}.gguf", b"GGUF" + label.encode())
        path = path_of(hub.pull(f"hf.co/org/repo:{tag}"))
        expect(path.name.upper().removesuffix(".GGUF").endswith(tag.upper()), "the file", path)


@test
def a_tag_that_is_not_there_is_answered_with_those_that_are():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_K_M.gguf", MODEL)
        hub.add("org/repo", "m-Q8_0.gguf", MODEL)
        hub.add("org/plain", "README.md", b"text")
        result = hub.pull("org/repo:Q5_K_M")
        expect(result.code == 1 and "has no Q5_K_M. It has Q4_K_M, Q8_0." in result.err, "the choices", result)
        result = hub.pull("org/plain")
        expect(result.code == 1 and "no GGUF files" in result.err, "no models", result)


@test
def names_that_mean_several_files_are_refused():
    with HubServer() as hub:
        hub.add("org/repo", "a-Q4_K_M.gguf", MODEL)
        hub.add("org/repo", "b-Q4_K_M.gguf", MODEL + bytes(32))
        result = hub.pull("org/repo:Q4_K_M")
        expect(result.code == 2 and "a-Q4_K_M.gguf, b-Q4_K_M.gguf" in result.err, "both are named", result)
        expect_equal(path_of(hub.pull("hf.co/org/repo/b-Q4_K_M.gguf")).read_bytes(), MODEL + bytes(32), "the second")
        expect_equal(hub.models()["models"][0]["name"], "hf.co/org/repo/b-Q4_K_M.gguf", "its name")
        succeeded(hub.infer("run", "-hf", "org/repo", "-hff", "a-Q4_K_M.gguf", *ANSWER))
        several = hub.infer("rm", "org/repo")
        expect(several.code == 2 and "There are several" in several.err, "rm asks for one", several)
        succeeded(hub.infer("rm", "hf.co/org/repo/b-Q4_K_M.gguf"))
        expect_equal([m["name"] for m in hub.models()["models"]], ["hf.co/org/repo/a-Q4_K_M.gguf"], "models")


@test
def split_files_belong_together():
    parts = [random_file(3000 + i, i) for i in range(3)]
    with HubServer() as hub:
        for i, data in enumerate(parts):
            hub.add("org/repo", f"Q8_0/m-Q8_0-0000{i + 1}-of-00003.gguf", data)
        hub.add("org/repo", "m-Q2_K-00001-of-00002.gguf", parts[0])  # the other part is missing
        path = path_of(hub.pull("org/repo"))
        expect_equal(path.name, "m-Q8_0-00001-of-00003.gguf", "the first part")
        for i, data in enumerate(parts):
            expect_equal((path.parent / f"m-Q8_0-0000{i + 1}-of-00003.gguf").read_bytes(), data, f"part {i + 1}")
        (model,) = hub.models()["models"]
        expect_equal((model["name"], model["size"], len(model["files"])),
                     ("hf.co/org/repo:Q8_0", sum(map(len, parts)), 3), "the model")
        succeeded(hub.infer("rm", "org/repo:Q8_0"))
        expect_equal(list(hub.cache.iterdir()), [], "what is left")


@test
def lists_have_several_pages():
    with HubServer() as hub:
        hub.page = 2
        for i in range(7):
            hub.add("org/repo", f"folder {i}/m-Q{i + 2}_0.gguf", b"GGUF%d" % i)
        expect_equal(path_of(hub.pull("org/repo:Q8_0")).read_bytes(), b"GGUF6", "content of the last page's file")
        expect_equal(sum(r.path.startswith("/api/") for r in hub.requests), 4, "pages")


@test
def an_update_replaces_the_file():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", b"GGUF old")
        path_of(hub.pull("org/repo"))
        hub.add("org/repo", "m-Q4_0.gguf", b"GGUF new one")
        expect_equal(path_of(hub.pull("org/repo")).read_bytes(), b"GGUF new one", "content")
        expect_equal(len(hub.models()["models"]), 1, "models")


@test
def ollama_names():
    with HubServer() as hub:
        hub.add_ollama("library/tiny", "latest", MODEL)
        hub.add_ollama("someone/tiny", "q8", MODEL + bytes(32))
        path = path_of(hub.pull("ollama.com/library/tiny"))
        expect_equal(path, hub.cache / "ollama.com" / "library" / "tiny" / "latest.gguf", "path")
        expect_equal(path.read_bytes(), MODEL, "content")
        path_of(hub.pull("ollama.com/someone/tiny:q8"))
        listed = {m["name"]: m["quantization"] for m in hub.models()["models"]}
        expect_equal(listed, {"ollama.com/library/tiny:latest": "F32", "ollama.com/someone/tiny:q8": "F32"}, "models")
        hub.forget()
        expect_equal(succeeded(hub.infer("run", "-m", "ollama.com/tiny", *ANSWER)).out, answer(), "text")
        expect("up to date" in hub.pull("ollama.com/tiny").err, "nothing new")
        expect(not hub.file_requests(), "no download")
        succeeded(hub.infer("rm", "ollama.com/tiny"))


@test
def plain_addresses():
    with HubServer() as hub:
        hub.files["/a/m-Q4_0.gguf"] = Content(MODEL)
        name = f"{hub.url}/a/m-Q4_0.gguf"
        path = path_of(hub.pull(f"{name}?token=secret"))
        expect_equal(path, hub.cache / "url" / f"127.0.0.1_{hub.port}" / "a" / "m-Q4_0.gguf", "path")
        expect_equal(path.read_bytes(), MODEL, "content")
        expect_equal(hub.models()["models"][0]["name"], name, "the name, without secrets")
        hub.forget()
        expect("up to date" in hub.pull(name).err and not hub.file_requests(), "the tag shows that it is the same")
        expect_equal(succeeded(hub.infer("run", "-m", name, *ANSWER)).out, answer(), "text")
        succeeded(hub.infer("rm", name))
        hub.files["/page.gguf"] = Content(b"<html>log in</html>")
        result = hub.pull(f"{hub.url}/page.gguf")
        expect(result.code == 1 and "expected a GGUF file" in result.err, "no model", result)
        expect_equal(hub.models()["unfinished"], [], "unfinished downloads")


@test_each("nonsense.bin", "a/b/c", "../x/y", "org/repo:", "ftp://host/x.gguf", "hf.co/org/../x.gguf")
def names_have_certain_forms(name):
    with HubServer() as hub:
        result = hub.pull(name)
        expect(result.code == 2 and "not the name of a model" in result.err, "refused", result)
        expect_equal((hub.requests, len(result.err.splitlines())), ([], 1), "requests, lines")


# Caches

@test
def hugging_faces_own_cache_is_read():
    with HubServer() as hub:
        content = hub.add("org/repo", "m-Q4_0.gguf", MODEL)
        repo = hub.home / "huggingface" / "hub" / "models--org--repo"
        for folder in ("blobs", "refs", "snapshots/abc"):
            (repo / folder).mkdir(parents=True)
        (repo / "blobs" / content.sha256).write_bytes(MODEL)
        (repo / "refs" / "main").write_text("abc")
        (repo / "snapshots" / "abc" / "m-Q4_0.gguf").symlink_to(f"../../blobs/{content.sha256}")
        expect_equal(succeeded(hub.infer("run", "-hf", "org/repo", *ANSWER)).out, answer(), "text")
        expect_equal(hub.requests, [], "requests")
        expect_equal([m["cache"] for m in hub.models()["models"]], ["huggingface"], "where it is")
        result = hub.pull("org/repo")
        expect("up to date" in result.err and not hub.file_requests(), "nothing is downloaded again", result)
        refused = hub.infer("rm", "org/repo")
        expect(refused.code == 1 and "Hugging Face's cache" in refused.err, "it is not ours to remove", refused)


@test_each(("--offline", {}), ("", {"HF_HUB_OFFLINE": "1"}))
def offline(how):
    flag, env = how
    flags = [flag] if flag else []
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", MODEL)
        for command in (("pull", "org/repo"), ("run", "-hf", "org/repo", *ANSWER), ("run", "-m", "org/repo", *ANSWER)):
            result = hub.infer(*command, *flags, env=env)
            expect(result.code == 1 and "ffline" in result.err and len(result.err.splitlines()) == 1, "refused", result)
        expect_equal(hub.requests, [], "requests")
        path_of(hub.pull("org/repo"))
        hub.forget()
        path_of(hub.infer("pull", "org/repo", *flags, env=env))
        expect_equal(succeeded(hub.infer("run", "-m", "org/repo", *ANSWER, *flags, env=env)).out, answer(), "text")
        expect_equal(hub.requests, [], "requests")


# Two processes, interrupts

class Gate:
    """A fault: content comes up to a number of bytes; the rest has to wait until the gate is opened."""

    def __init__(self, n_bytes):
        self.n_bytes = n_bytes
        self.opened = threading.Event()

    def __call__(self, handler, request):
        if not request.range or request.is_probe:
            return False
        hub = handler.server.hub
        content = next(iter(hub.repos["org/repo"].values()))
        first, last = request.range
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {first}-{last}/{content.size}")
        handler.send_header("Content-Length", str(last - first + 1))
        handler.send_header("ETag", content.etag)
        handler.end_headers()
        for at in range(first, last + 1, 10000):
            if hub.bytes_sent > self.n_bytes:
                self.opened.wait(PATIENCE)
            piece = content.read(at, min(at + 10000, last + 1))
            handler.wfile.write(piece)
            with hub.lock:
                hub.bytes_sent += len(piece)
        return True


def start_pull(hub):
    return subprocess.Popen([BINARY, "pull", "org/repo", "--timeout", str(PATIENCE)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env={**os.environ, **hub.environment()})


def wait_for(condition):
    for _ in range(PATIENCE * 20):
        if condition():
            return
        time.sleep(0.05)
    expect(False, "nothing happened")


def part_done(hub):
    """Bytes that the state of the unfinished download lists."""
    for path in hub.cache.rglob("*.part.json"):
        try:
            return sum(json.loads(path.read_text())["done"])
        except (FileNotFoundError, ValueError):
            pass
    return 0


@test
def two_processes_share_a_download():
    data = random_file(4_000_000)
    with HubServer() as hub:
        hub.add("org/repo", "m-Q8_0.gguf", data)
        gate = Gate(1_000_000)
        hub.faults = [gate]
        with start_pull(hub) as first:
            wait_for(lambda: list(hub.cache.rglob("*.part")))
            with start_pull(hub) as second:
                note = second.stderr.readline()
                gate.opened.set()
                outputs = [process.communicate(timeout=PATIENCE) for process in (first, second)]
        expect("waiting for it" in note, "the second waits", note)
        expect_equal((first.returncode, second.returncode), (0, 0), f"exit codes; {outputs}")
        expect_equal(outputs[0][0], outputs[1][0], "paths")
        expect_equal(pathlib.Path(outputs[0][0].strip()).read_bytes(), data, "content")
        expect_equal(sum(r.range[1] - r.range[0] + 1 for r in hub.file_requests()), len(data), "bytes asked for")
        expect_equal(list(hub.cache.rglob("*.part*")), [], "left over")


@test_each(signal.SIGINT, signal.SIGKILL)
def an_interrupted_download_continues(number):
    data = random_file(8_000_000)
    with HubServer() as hub:
        hub.add("org/repo", "m-Q8_0.gguf", data)
        hub.faults = [Gate(6_000_000)]
        with start_pull(hub) as process:
            wait_for(lambda: part_done(hub) > 1_000_000)
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
        expect_equal((process.returncode, out), (130 if number == signal.SIGINT else -number, ""), f"its end; {err}")
        expect(number == signal.SIGKILL or "continues" in err, "it says so", err)
        expect_equal(list(hub.cache.rglob("*.gguf")), [], "files under their final name")
        (unfinished,) = hub.models()["unfinished"]
        expect_equal((unfinished["name"], unfinished["size"]), ("hf.co/org/repo:Q8_0", len(data)), "the list")
        expect("unfinished" in hub.infer("models").out, "the table")
        hub.faults = []
        hub.forget()
        result = hub.pull("org/repo")
        expect_equal(path_of(result).read_bytes(), data, "content")
        expect("continuing after" in result.err, "it says so", result)
        expect(hub.bytes_sent <= len(data) - 1_000_000, "only the rest is asked for", hub.bytes_sent)


@test
def an_unfinished_download_can_be_removed():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q8_0.gguf", random_file(8_000_000))
        hub.faults = [Gate(6_000_000)]
        with start_pull(hub) as process:
            wait_for(lambda: part_done(hub) > 0)
            busy = hub.infer("rm", "org/repo")
            expect(busy.code == 1 and "is being downloaded" in busy.err, "not while it runs", busy)
            process.kill()
        succeeded(hub.infer("rm", "org/repo"))
        expect_equal(list(hub.cache.iterdir()), [], "what is left")


@test
def a_terminal_shows_one_line():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q8_0.gguf", random_file(3_000_000))
        hub.faults = [lambda handler, request: request.range and not request.is_probe and (handler.send_content(
            hub.repos["org/repo"]["m-Q8_0.gguf"], request, pause=0.1) or True)]
        with Terminal("pull", "org/repo", columns=60, env=hub.environment()) as terminal:
            terminal.expect("left")
            terminal.wait()
            shown = terminal.raw.decode()
        updates = [line for line in shown.split("\r\x1b[K") if " left" in line]
        expect(updates and all("MiB" in line and "/s, " in line and len(line) < 60 for line in updates), "updates", updates)
        expect("m-Q8_0.gguf: 2.86 MiB in " in shown, "the last line", shown)


# The network

@test
def proxies():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", MODEL)
        env = {"HF_ENDPOINT": "http://hub.invalid", "http_proxy": f"http://me:p%40ss@127.0.0.1:{hub.port}", "no_proxy": ""}
        expect_equal(path_of(hub.pull("org/repo", env=env)).read_bytes(), MODEL, "content")
        expect(all(re.match(r"http://hub\.invalid(:80)?/", r.target) for r in hub.requests), "whole addresses")
        expect_equal({r.headers.get("proxy-authorization") for r in hub.requests}, {"Basic bWU6cEBzcw=="}, "log-in")
        hub.forget()
        result = hub.pull("org/repo", "--retries", 0, env={**env, "no_proxy": ".invalid"})
        expect(result.code == 1 and not hub.requests, "no_proxy", result)
        wrong = hub.pull("org/repo", env={**env, "http_proxy": "socks5://127.0.0.1:1"})
        expect(wrong.code == 2 and "http_proxy is not the address of an HTTP proxy" in wrong.err, "refused", wrong)


@test
def tls_is_verified():
    with tempfile.TemporaryDirectory() as folder:
        certificate = make_certificate(pathlib.Path(folder)) or skip("no openssl program")
        with HubServer(certificate) as hub:
            hub.add("org/repo", "m-Q4_0.gguf", MODEL)
            trusted = {"SSL_CERT_FILE": certificate[0]}
            expect_equal(path_of(hub.pull("org/repo", env=trusted)).read_bytes(), MODEL, "content")
            hub.add("org/repo", "m-Q8_0.gguf", MODEL)
            hub.forget()
            for env in ({}, {**trusted, "HF_ENDPOINT": f"https://localhost:{hub.port}"}):
                result = hub.pull("org/repo:Q8_0", env=env)
                expect(result.code == 1 and "is not trusted" in result.err and not hub.requests, f"with {env}", result)


@test
def proxies_pass_tls_on():
    with tempfile.TemporaryDirectory() as folder:
        certificate = make_certificate(pathlib.Path(folder)) or skip("no openssl program")
        with HubServer() as proxy, HubServer(certificate) as hub:
            hub.add("org/repo", "m-Q4_0.gguf", MODEL)
            env = {"SSL_CERT_FILE": certificate[0], "no_proxy": "", "https_proxy": proxy.url}
            expect_equal(path_of(hub.pull("org/repo", env={**env, "HF_TOKEN": "secret"})).read_bytes(), MODEL, "content")
            expect_equal({r.target for r in proxy.requests}, {f"127.0.0.1:{hub.port}"}, "what the proxy sees")
            expect(not any("authorization" in r.headers for r in proxy.requests), "no token there")
            proxy.refuses = True
            hub.forget()
            hub.add("org/repo", "m-Q8_0.gguf", MODEL)
            result = hub.pull("org/repo:Q8_0", "--retries", 0, env=env)
            expect(result.code == 1 and "the proxy 127.0.0.1 answered with HTTP 407" in result.err, "refused", result)
            expect_equal(hub.requests, [], "requests")


@test
def nobody_answers():
    with HubServer() as hub:
        result = hub.pull("org/repo", "--retries", 0, env={"HF_ENDPOINT": "http://127.0.0.1:1"})
        expect(result.code == 1 and "no connection to 127.0.0.1, port 1" in result.err, "the reason", result)
        expect_equal(len(result.err.splitlines()), 1, "lines")


main()
