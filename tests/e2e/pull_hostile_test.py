"""infer pull against hostile servers: one short line, and no files."""

from harness import expect, expect_equal, main, test, test_each
from hub_server import Content, HubServer, check_failure, random_file

DATA = random_file(3_000_000)


@test_each(b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"", b"\0" * 100000)
def answers_that_are_not_http(answer):
    def fault(handler, _):
        handler.wfile.write(answer)
        handler.close_connection = True
        return True
    with HubServer() as hub:
        hub.faults = [fault]
        result = hub.pull("org/repo", "--retries", 0)
        check_failure(hub, result, "Cannot download hf.co/org/repo: ")
        expect_equal(len(result.err.splitlines()), 1, "lines")


HOSTILE = {
    "no JSON": b"<html>",
    "a number": b"5",
    "an object": b'{"error": "x"}',
    "strings": b'["x"]',
    "deep": b"[" * 100000,
    "no type": b'[{"path": "x.gguf", "size": 1}]',
    "no path": b'[{"type": "file", "size": 1}]',
    "a number as path": b'[{"type": "file", "path": 5, "size": 1}]',
    "a negative size": b'[{"type": "file", "path": "x.gguf", "size": -1}]',
    "a huge size": b'[{"type": "file", "path": "x.gguf", "size": 1e300}]',
    "a short hash": b'[{"type": "file", "path": "x.gguf", "size": 1, "lfs": {"oid": "abc", "size": 1}}]',
    "lfs as a list": b'[{"type": "file", "path": "x.gguf", "size": 1, "lfs": []}]',
    "a path outside": b'[{"type": "file", "path": "../../x.gguf", "size": 1}]',
    "an absolute path": b'[{"type": "file", "path": "/x.gguf", "size": 1}]',
    "control characters": b'[{"type": "file", "path": "x\\u001b[2J.gguf", "size": 1}]',
    "too much": b"[" + b'{"type": "file"},' * (1 << 20),
}


@test_each(*HOSTILE)
def hostile_lists(kind):
    with HubServer() as hub:
        hub.faults = [lambda handler, _: handler.send_body(200, HOSTILE[kind], {}) or True]
        result = hub.pull("org/repo")
        check_failure(hub, result, "127.0.0.1")
        expect(result.err.count("\n") == 1 and len(result.err) < 500 and "\x1b" not in result.err, "one short line", result)
        expect(not hub.cache.exists() and not (hub.home / "x.gguf").exists(), "no files")


@test
def endless_pages_end():
    with HubServer() as hub:
        hub.faults = [lambda handler, request: handler.send_json(
            [], {"Link": f'<{hub.url}{request.path}>; rel="next"'}) or True]
        check_failure(hub, hub.pull("org/repo"), "at most 200 pages")


MANIFESTS = {
    "no layers": {},
    "layers of another type": {"layers": "x"},
    "no model": {"layers": [{"mediaType": "application/vnd.ollama.image.license", "digest": "x", "size": 1}]},
    "two models": {"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "a" * 64,
                               "size": 5}] * 2},
    "another hash": {"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "md5:" + "a" * 64,
                                 "size": 5}]},
    "a path as a hash": {"layers": [{"mediaType": "application/vnd.ollama.image.model",
                                     "digest": "sha256:../../" + "a" * 58, "size": 5}]},
    "no size": {"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "a" * 64}]},
    "an adapter": {"layers": [{"mediaType": "application/vnd.ollama.image.adapter", "digest": "sha256:" + "a" * 64,
                               "size": 5}]},
}


@test_each(*MANIFESTS)
def hostile_manifests(kind):
    with HubServer() as hub:
        hub.manifests["library/x", "latest"] = MANIFESTS[kind]
        result = hub.pull("ollama.com/library/x")
        check_failure(hub, result)
        expect(len(result.err.splitlines()) == 1 and len(hub.requests) == 1, "one line, one request", result)


@test
def manifests_with_wrong_digests():
    with HubServer() as hub:
        right = hub.add_ollama("library/x", "latest", DATA)
        hub.blobs[right.sha256] = Content(random_file(3_000_000, 2))
        check_failure(hub, hub.pull("ollama.com/library/x"), f"expected SHA-256 {right.sha256}", part=False)
        hub.add_ollama("library/x", "latest", DATA, size=5)
        check_failure(hub, hub.pull("ollama.com/library/x"), "expected 5 bytes, found 3,000,000")


main()
