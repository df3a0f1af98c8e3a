"""Downloads from a server that misbehaves, onto a disk that is full: what is under the final name is right, or nothing
is. Hostile answers are in pull_hostile_test.py."""

import json
import pathlib
import tempfile
import time

from harness import BINARY, expect, expect_equal, main, run, skip, test, test_each
from hub_server import QUICK, Content, HubServer, check_failure, make_certificate, random_file, times

DATA = random_file(3_000_000)


def offer(hub, data=DATA, **how):
    return hub.add("org/repo", "m-Q8_0.gguf", data, **how)


def check_content(result, data=DATA):
    expect_equal(result.code, 0, f"exit code; {result}")
    expect_equal(pathlib.Path(result.out.strip()).read_bytes(), data, "content")


def content_of(handler, request):
    hub = handler.server.hub
    return hub.files.get(request.path) or hub.repos["org/repo"]["m-Q8_0.gguf"]


def broken_after(n_bytes):
    def fault(handler, request):
        handler.send_content(content_of(handler, request), request, stop_at=request.range[0] + n_bytes)
        return True
    return fault


def with_status(status, **headers):
    def fault(handler, _):
        handler.send_status(status, headers)
        return True
    return fault


# Connections

@test
def broken_connections_are_continued():
    with HubServer() as hub:
        offer(hub)
        hub.faults = [times(6, broken_after(200_000))]
        check_content(hub.pull("org/repo", "--connections", 2))
        starts = {r.range[0] for r in hub.file_requests()}
        expect(len(starts) == len(hub.file_requests()) and hub.bytes_sent == len(DATA) + 1, "no byte is sent twice",
               [r.range for r in hub.file_requests()])


@test
def a_connection_that_always_breaks_leaves_a_part():
    with HubServer() as hub:
        offer(hub)
        allowed = [4]

        def dying(handler, request):
            if not request.range or request.is_probe:
                return False
            allowed[0] -= 1
            return broken_after(100_000 if allowed[0] > 0 else 0)(handler, request)
        hub.faults = [dying]
        result = hub.pull("org/repo", "--connections", 1)
        check_failure(hub, result, "Cannot download m-Q8_0.gguf", "ended early", part=True)
        expect_equal(hub.models()["unfinished"][0]["done"], 300_000, "bytes that stay")
        hub.faults = []
        hub.forget()
        check_content(hub.pull("org/repo"))
        expect_equal(hub.bytes_sent, len(DATA) - 300_000 + 1, "bytes sent")


@test
def a_stalled_connection_counts_as_broken():
    with HubServer() as hub:
        offer(hub)

        def stalling(handler, request):
            content = content_of(handler, request)
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {request.range[0]}-{request.range[1]}/{content.size}")
            handler.send_header("Content-Length", str(request.range[1] - request.range[0] + 1))
            handler.send_header("ETag", content.etag)
            handler.end_headers()
            handler.wfile.write(content.read(request.range[0], request.range[0] + 1000))
            time.sleep(8)
            handler.close_connection = True
            return True
        hub.faults = [times(1, stalling)]
        result = hub.pull("org/repo", "--timeout", 1)
        check_content(result)


@test
def a_server_that_is_busy_is_asked_again():
    with HubServer() as hub:
        offer(hub)
        busy = [0, 0]

        def limits(handler, request):
            kind = 0 if request.path.startswith("/api/") else 1
            busy[kind] += 1
            if busy[kind] > 1:
                return False
            return with_status(429, **{"Retry-After": "1"})(handler, request)
        hub.faults = [limits]
        result = hub.pull("org/repo")
        check_content(result)
        expect("HTTP 429; trying again in 1 s" in result.err, "it says so", result)


@test_each(500, 502, 503, 408)
def passing_errors_are_tried_again(status):
    with HubServer() as hub:
        offer(hub)
        hub.faults = [times(2, with_status(status))]
        check_content(hub.pull("org/repo", "--connections", 2))


@test
def errors_that_stay_are_reported():
    with HubServer() as hub:
        offer(hub)
        hub.faults = [with_status(503)]
        check_failure(hub, hub.pull("org/repo", "--retries", 1), "answered with HTTP 503. Try again later")
        hub.faults = [with_status(429, **{"Retry-After": "0"})]
        check_failure(hub, hub.pull("org/repo", "--retries", 1), "limits the rate of requests (HTTP 429)", "HF_TOKEN")


@test_each((401, "private or gated"), (403, "private or gated"), (404, "was not found"), (410, "was not found"))
def refusals_are_explained(refusal):
    status, words = refusal
    with HubServer() as hub:
        offer(hub)
        hub.faults = [with_status(status)]
        result = hub.pull("org/repo")
        check_failure(hub, result, "hf.co/org/repo", words, f"(HTTP {status})")
        expect_equal((len(result.err.splitlines()), len(hub.requests)), (1, 1), "lines, requests")
        if status in (401, 403):
            result = hub.pull("org/repo", env={"HF_TOKEN": "secret"})
            check_failure(hub, result, "the token gives no access")
            expect("secret" not in result.err, "the token is not shown", result)


@test_each("chunks", "to the end", "closed between requests")
def kinds_of_bodies(kind):
    body = json.dumps([{"type": "file", "path": "m-Q8_0.gguf", "size": len(DATA)}]).encode()

    def fault(handler, request):
        if kind == "closed between requests":
            handler.close_connection = True  # without saying so in the head
            return False
        if not request.path.startswith("/api/"):
            return False
        handler.send_response(200)
        if kind == "chunks":
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            for byte in body:
                handler.wfile.write(b"1\r\n%c\r\n" % byte)
            handler.wfile.write(b"0\r\n\r\n")
        else:
            handler.close_connection = True
            handler.end_headers()
            handler.wfile.write(body)
        return True
    with HubServer() as hub:
        offer(hub)
        hub.faults = [fault]
        check_content(hub.pull("org/repo"))


# Redirects and tokens

@test_each("HF_TOKEN", "file", "-hft")
def the_token_stays_with_the_hub(how):
    with HubServer() as files, HubServer() as hub:
        hub.file_server = files
        offer(hub)
        hub.faults = [lambda handler, request: "authorization" not in request.headers and
                      with_status(401)(handler, request)]
        env, flags = {}, ()
        if how == "HF_TOKEN":
            env = {"HF_TOKEN": "hf_secret"}
        elif how == "file":
            (hub.home / "huggingface").mkdir()
            (hub.home / "huggingface" / "token").write_text("hf_secret\n")
        else:
            flags = ("-hft", "hf_secret")
        check_failure(hub, hub.pull("org/repo", env={"HF_HOME": hub.home / "none"}), "(HTTP 401)")
        hub.forget()
        check_content(hub.pull("org/repo", *flags, env=env))
        expect_equal({r.headers.get("authorization") for r in hub.requests}, {"Bearer hf_secret"}, "the hub's requests")
        expect(files.file_requests(), "the files come from the other server")
        expect(not any("authorization" in r.headers for r in files.requests), "no token there")
        expect_equal({r.target.partition("?")[2] for r in files.requests}, {"Signature=a%2Bb+c~d"}, "signatures are kept")
        for token in ("two words", "line\r\nX: y"):
            result = hub.pull("org/repo", env={"HF_TOKEN": token})
            expect(result.code == 2 and "characters that no token has" in result.err, "refused", result)


@test
def a_token_in_a_next_page_elsewhere_is_refused():
    with HubServer() as other, HubServer() as hub:
        offer(hub)
        hub.faults = [lambda handler, request: request.path.startswith("/api/") and (
            handler.send_json([], {"Link": f'<{other.url}/api/models/x>; rel="next"'}) or True)]
        check_failure(hub, hub.pull("org/repo", env={"HF_TOKEN": "secret"}), "a next page on the same server")
        expect_equal(other.requests, [], "requests elsewhere")


@test
def an_expired_address_is_renewed():
    with HubServer() as files, HubServer() as hub:
        hub.file_server = files
        offer(hub)
        files.faults = [times(1, with_status(403))]
        check_content(hub.pull("org/repo", "--connections", 1))
        expect_equal(sum("/resolve/" in r.path for r in hub.requests), 2, "addresses asked for")


@test_each("loop", "nowhere", "other scheme")
def bad_redirects(kind):
    location = {"loop": None, "nowhere": "", "other scheme": "file:///etc/passwd"}[kind]
    with HubServer() as hub:
        offer(hub)
        hub.faults = [lambda handler, request: handler.send_redirect(request.target if location is None else location) or True]
        words = "redirects more than 10 times" if kind == "loop" else "redirects to an address that is not valid"
        result = hub.pull("org/repo")
        check_failure(hub, result, words)
        expect(len(hub.requests) <= 11, "requests", len(hub.requests))


@test
def encryption_is_not_given_up():
    with tempfile.TemporaryDirectory() as folder:
        certificate = make_certificate(pathlib.Path(folder)) or skip("no openssl program")
        with HubServer() as other, HubServer(certificate) as hub:
            hub.file_server = other
            offer(hub)
            result = hub.pull("org/repo", env={"SSL_CERT_FILE": certificate[0]})
            check_failure(hub, result, "redirects from https to http")
            expect_equal(other.requests, [], "requests without TLS")


@test
def renamed_repositories_are_found():
    with HubServer() as hub:
        offer(hub)
        hub.faults = [lambda handler, request: "/old/" in request.path and (
            handler.send_redirect(request.target.replace("/old/name", "/org/repo"), status=307) or True)]
        check_content(hub.pull("old/name"))


# Content

@test
def servers_that_ignore_ranges():
    def fault(handler, request):
        if not request.range:
            return False
        handler.send_content(content_of(handler, request), request, ranges=False)
        return True
    with HubServer() as hub:
        offer(hub)
        hub.faults = [fault]
        check_content(hub.pull("org/repo"))
        hub.faults = [lambda handler, request: not request.is_probe and fault(handler, request)]
        offer(hub, random_file(3_000_000, 2))
        check_content(hub.pull("org/repo"), random_file(3_000_000, 2))
        # The whole file breaks off: only from the start can it be fetched again.
        left = [1]

        def breaking(handler, request):
            if request.range and not request.is_probe and left[0]:
                left[0] -= 1
                handler.send_content(content_of(handler, request), request, ranges=False, stop_at=500_000)
                return True
            return fault(handler, request)
        hub.faults = [breaking]
        offer(hub, random_file(3_000_000, 3))
        check_content(hub.pull("org/repo"), random_file(3_000_000, 3))


@test
def a_wrong_length_is_refused():
    with HubServer() as hub:
        listed = offer(hub, size=3_000_001)
        hub.faults = [lambda handler, request: request.range and (
            handler.send_content(Content(DATA, sha256=listed.sha256), request) or True)]
        check_failure(hub, hub.pull("org/repo"), "expected 3,000,001 bytes, found 3,000,000")


@test
def a_wrong_hash_is_refused():
    with HubServer() as hub:
        offer(hub, sha256="a" * 64)
        check_failure(hub, hub.pull("org/repo"), "expected SHA-256 " + "a" * 64, "found ", part=False)


@test
def a_damaged_part_is_downloaded_again():
    with HubServer() as hub:
        offer(hub)
        hub.faults = [with_limit(hub, 1)]
        hub.pull("org/repo", "--connections", 1, "--retries", 0)
        (part,) = hub.cache.rglob("*.part")
        with part.open("r+b") as file:
            file.seek(10)
            file.write(b"damage")
        hub.faults = []
        result = hub.pull("org/repo")
        check_content(result)
        expect("was damaged or changed" in result.err, "it says so", result)


def with_limit(hub, n_requests):
    """The server fails after this many requests for content."""
    left = [n_requests]

    def fault(handler, request):
        if not request.range or request.is_probe:
            return False
        left[0] -= 1
        return left[0] < 0 and with_status(500)(handler, request)
    return fault


@test
def a_file_that_changed_between_two_runs_starts_over():
    new = random_file(3_000_000, 2)
    with HubServer() as hub:
        hub.files["/m-Q8_0.gguf"] = Content(DATA, etag='"old"')
        hub.faults = [with_limit(hub, 1)]
        url = f"{hub.url}/m-Q8_0.gguf"
        result = hub.pull(url, "--connections", 1, "--retries", 0)
        expect(result.code == 1 and hub.models()["unfinished"][0]["done"] > 0, "a part", result)
        hub.faults = []
        hub.files["/m-Q8_0.gguf"] = Content(new, etag='"new"')
        check_content(hub.pull(url), new)


@test
def a_file_that_changes_during_a_run_starts_over():
    new = random_file(3_000_000, 2)
    with HubServer() as hub:
        hub.files["/m-Q8_0.gguf"] = Content(DATA, etag='"old"')

        def change(_, request):
            if len(hub.file_requests()) == 2:
                hub.files["/m-Q8_0.gguf"] = Content(new, etag='"new"')
            return False
        hub.faults = [change]
        result = hub.pull(f"{hub.url}/m-Q8_0.gguf", "--connections", 1)
        check_content(result, new)
        expect("has changed" in result.err, "it says so", result)
        expect(all(r.headers["if-range"] in ('"old"', '"new"') for r in hub.file_requests()), "If-Range")


@test
def a_range_beyond_the_file_starts_over():
    with HubServer() as hub:
        offer(hub)
        hub.faults = [times(1, with_status(416))]
        result = hub.pull("org/repo")
        check_content(result)
        expect("has changed" in result.err, "it says so", result)
        hub.faults = [lambda handler, request: request.range and not request.is_probe and with_status(416)(handler, request)]
        hub.infer("rm", "org/repo")
        check_failure(hub, hub.pull("org/repo"), "keeps changing")


@test
def a_server_without_tags_is_not_resumed():
    def plain(handler, request):
        handler.send_content(Content(DATA, etag='W/"weak"'), request)
        return True
    with HubServer() as hub:
        hub.faults = [with_limit(hub, 1), plain]
        url = f"{hub.url}/m-Q8_0.gguf"
        expect_equal(hub.pull(url, "--connections", 1, "--retries", 0).code, 1, "exit code")
        hub.faults = [plain]
        hub.forget()
        check_content(hub.pull(url))
        expect(hub.bytes_sent >= len(DATA), "from the start", hub.bytes_sent)


# Disks

@test
def a_limit_on_file_sizes():
    with HubServer() as hub:
        offer(hub)
        command = f'ulimit -f 1000; exec {BINARY} pull org/repo {" ".join(map(str, QUICK))}'
        result = run("-c", command, program="bash", env=hub.environment())
        check_failure(hub, result, "Cannot write", "ulimit -f")
        check_content(hub.pull("org/repo"))


@test
def too_little_space_is_noticed_first():
    with HubServer() as hub:
        offer(hub, b"GGUF", size=1 << 52)
        result = hub.pull("org/repo")
        check_failure(hub, result, "The download needs 4096.00 TiB", "are free", "infer rm", part=False)
        expect(not hub.file_requests(), "nothing is downloaded")


@test
def a_folder_that_cannot_be_written():
    with HubServer() as hub:
        offer(hub)
        (hub.home / "file").write_text("")
        result = hub.pull("org/repo", env={"INFER_MODELS": hub.home / "file"})
        check_failure(hub, result, "Cannot create", "file")


@test
def damaged_states_are_ignored():
    with HubServer() as hub:
        offer(hub)
        hub.faults = [with_limit(hub, 1)]
        hub.pull("org/repo", "--connections", 1, "--retries", 0)
        (state,) = hub.cache.rglob("*.part.json")
        good = json.loads(state.read_text())
        hub.faults = []
        for bad in ("", "[]", json.dumps({**good, "segment": 1}), json.dumps({**good, "done": [1 << 40]}),
                    json.dumps({**good, "size": good["size"] + 1})):
            state.write_text(bad)
            check_content(hub.pull("org/repo"))
            path = hub.cache / "hf.co" / "org" / "repo" / "m-Q8_0.gguf"
            path.rename(f"{path}.part")
        expect_equal(hub.models()["models"], [], "models without their file")


main()
