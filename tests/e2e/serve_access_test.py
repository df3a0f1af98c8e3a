"""Access to `infer serve`: keys, hosts, origins, addresses; TLS; flags from a file; logs."""

import json
import os
import pathlib
import re
import shutil
import ssl
import subprocess
import tempfile

from harness import expect, expect_equal, main, run, skip, test
from models import DEMO_TARGET
from serving import ENDLESS, SLOW, Server, leave

TEXT = "/v1/completions"
ONE_TOKEN = {"prompt": "Once", "max_tokens": 1}
ROUTES = (("GET", "/version"), ("GET", "/metrics"), ("GET", "/v1/models"), ("GET", "/nowhere"), ("POST", TEXT),
          ("POST", "/v1/chat/completions"), ("POST", "/v1/embeddings"), ("POST", "/tokenize"), ("POST", "/detokenize"),
          ("POST", "/apply-template"))


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def refused(code, needle, *arguments, env=None):
    """The program does not start, and one line says why."""
    result = run("serve", "-m", DEMO_TARGET, "--port", 0, *arguments, env=env)
    expect_equal(result.code, code, f"exit code of\n{result}\n")
    expect(needle in result.err.splitlines()[-1], f"the line names {needle!r}", result)


@test
def keys_of_a_file_and_of_the_environment():
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
        file.write("# keys\nfirst-key\n\n  second-key  \n")
        file.flush()
        with Server(DEMO_TARGET, "--api-key-file", file.name, env={"INFER_API_KEY": "third-key,fourth-key"}) as server:
            for method, path in ROUTES:
                for headers in ({}, bearer("wrong"), bearer(""), bearer("first-ke"), bearer("first-keyy"),
                                bearer("# keys"), {"Authorization": "first-key"}, {"Authorization": "Basic first-key"}):
                    reply = server.ask(method, path, {} if method == "POST" else None, headers)
                    expect_equal(reply.status, 401, f"{method} {path} with {headers}")
                    expect_equal(reply.error["code"], "invalid_api_key", "code")
                    expect_equal(reply.headers["www-authenticate"], "Bearer", "challenge")
            for key in ("first-key", "second-key", "third-key", "fourth-key"):
                expect_equal(server.post(TEXT, ONE_TOKEN, headers=bearer(key)).status, 200, f"status with {key}")
            flags = server.get("/version", headers=bearer("first-key")).text
            expect("key" not in flags.replace("first-key", "KEY!"), "the flags tell nothing of the keys", flags)
        for key in ("first-key", "second-key", "third-key", "fourth-key"):
            expect(key not in server.err, "no key in the log")


@test
def requests_of_one_key_at_a_time():
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
        file.write("one\ntwo\n")
        file.flush()
        flags = (*SLOW, "--api-key-file", file.name, "--max-per-key", 1)
        with Server(DEMO_TARGET, *flags, headers=bearer("one")) as server:
            long = {"prompt": "Once", "max_tokens": ENDLESS, "ignore_eos": True}
            connection, response = server.open_stream(TEXT, long)
            reply = server.post(TEXT, ONE_TOKEN)
            expect_equal((reply.status, reply.error["code"]), (429, "too_many_requests"), f"{reply}")
            expect(int(reply.headers["retry-after"]) >= 1, "Retry-After", reply)
            expect_equal(server.post(TEXT, ONE_TOKEN, headers=bearer("two")).status, 200, "another key")
            leave(connection, response)
            server.wait_until(lambda: server.post(TEXT, ONE_TOKEN).status == 200)
            for _ in range(5):  # a client may go on as soon as it has read the end of its last answer
                server.stream(TEXT, ONE_TOKEN)
                expect_equal(server.post(TEXT, ONE_TOKEN).status, 200, "when the first has ended")


@test
def keys_share_no_cached_prefixes_unless_told_to():
    with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
        file.write("one\ntwo\n")
        file.flush()
        for flags in ((), ("--share-prefixes",)):
            with Server(DEMO_TARGET, "--api-key-file", file.name, *flags) as server:
                def cached(key, server=server):
                    reply = server.post(TEXT, {"prompt": "Once upon a time " * 30, "max_tokens": 1}, headers=bearer(key))
                    return reply.json["usage"]["prompt_tokens_details"]["cached_tokens"]

                expect_equal(cached("one"), 0, "of the first request")
                expect(cached("one") > 0, "a key finds what it sent itself")
                expect_equal(cached("two") > 0, bool(flags), f"another key finds it with {flags}")


@test
def bad_keys_and_addresses():
    with tempfile.TemporaryDirectory() as folder:
        keys = pathlib.Path(folder, "keys")
        refused(1, "Cannot read the API keys", "--api-key-file", keys)
        for text in ("", "# none\n", "with blank\n", "\x1b[31m\n", "ü\n", "x" * 2000):
            keys.write_text(text)
            refused(2, "API key", "--api-key-file", keys)
        keys.write_text("key\n")
        refused(2, "--no-auth", "--api-key-file", keys, "--no-auth")
    refused(2, "--api-key-file", "--host", "0.0.0.0")
    refused(2, "--api-key-file", "--host", "::")
    refused(1, "host", "--host", "no such host", "--no-auth")
    refused(2, "--tls-key", "--tls-cert", "x.pem")
    with Server(DEMO_TARGET) as server:
        refused(1, f"port {server.port}", "--port", server.port)


@test
def wrong_values_of_flags():
    wrong = {"--port": ("-1", "65536", "x", ""), "--parallel": ("0", "513", ""), "--kv-tokens": ("-1", "x"),
             "--max-itl-ms": ("-1", "x"), "--max-queue": ("-1", ""), "--max-body": ("0",), "--request-timeout": ("0", "1.5"),
             "--log-format": ("xml", ""), "--log-level": ("loud",), "--pooling": ("max",), "--host": ("",),
             "--predict": ("0", "-2", ""), "--temp": ("nan",), "--ubatch-size": ("0",), "--alias": ("",)}
    for flag, values in wrong.items():
        for value in values:
            result = run("serve", "-m", DEMO_TARGET, "--port", 0, f"{flag}={value}")
            expect_equal((result.code, result.out), (2, ""), f"exit code and standard output of\n{result}\n")
            expect(result.err.count("\n") == 1, "one line", result)
    refused(1, "none.gguf", "-m", "none.gguf")


@test
def other_addresses_with_a_key_or_without_any():
    with Server(DEMO_TARGET, "--host", "0.0.0.0", "--no-auth") as server:
        expect_equal(server.post(TEXT, ONE_TOKEN).status, 200, "status without a key")
    with Server(DEMO_TARGET, "--host", "0.0.0.0", env={"INFER_API_KEY": "k"}) as server:
        expect_equal(server.post(TEXT, ONE_TOKEN).status, 401, "status without a key")
        expect_equal(server.post(TEXT, ONE_TOKEN, headers=bearer("k")).status, 200, "status with a key")


@test
def hosts():
    def status(server, host):
        return server.get("/version", headers={"Host": host}).status

    with Server(DEMO_TARGET) as server:
        for host in ("localhost", f"localhost:{server.port}", "127.0.0.1", "[::1]:80", "LOCALHOST", "10.1.2.3"):
            expect_equal(status(server, host), 200, f"host {host}")
        for host in ("example.org", "example.org:8080", "localhost.example.org", "127.0.0.1.example.org", "x"):
            expect_equal(status(server, host), 403, f"host {host}")
            expect_equal(server.get("/health", headers={"Host": host}).status, 403, f"health of {host}")
    with Server(DEMO_TARGET, "--allowed-host", "example.org", "--allowed-host", "Other.Example") as server:
        expect_equal([status(server, host) for host in ("example.org:1", "other.example", "third.example")],
                     [200, 200, 403], "listed hosts")
    with Server(DEMO_TARGET, "--allowed-host", "*") as server:
        expect_equal(status(server, "any.example"), 200, "any host")


@test
def pages_of_other_origins():
    page = {"Origin": "http://page.example"}
    preflight = {**page, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    with Server(DEMO_TARGET) as server:
        reply = server.post(TEXT, ONE_TOKEN, headers=page)
        expect_equal((reply.status, reply.error["code"]), (403, "origin_not_allowed"), f"{reply}")
        reply = server.ask("OPTIONS", TEXT, headers=preflight)
        expect_equal(reply.status, 403, "preflight")
        expect("access-control-allow-origin" not in reply.headers, "CORS is off", reply)
        own = {"Origin": f"http://127.0.0.1:{server.port}"}
        expect_equal(server.post(TEXT, ONE_TOKEN, headers=own).status, 200, "a page of this server")
    with Server(DEMO_TARGET, "--cors-origin", "http://page.example", env={"INFER_API_KEY": "k"}) as server:
        reply = server.ask("OPTIONS", TEXT, headers=preflight)
        expect_equal((reply.status, reply.headers["access-control-allow-origin"]), (204, "http://page.example"),
                     f"preflight {reply}")
        expect("Authorization" in reply.headers["access-control-allow-headers"], "the key may be sent", reply)
        reply = server.post(TEXT, ONE_TOKEN, headers={**page, **bearer("k")})
        expect_equal((reply.status, reply.headers["access-control-allow-origin"]), (200, "http://page.example"),
                     "answer")
        expect_equal(server.post(TEXT, ONE_TOKEN, headers=page).headers["access-control-allow-origin"],
                     "http://page.example", "an error can be read too")
        other = {"Origin": "http://other.example", **bearer("k")}
        expect_equal(server.post(TEXT, ONE_TOKEN, headers=other).status, 403, "another page")


def make_certificate(folder):
    """A self-signed (certificate, key) for 127.0.0.1."""
    if not shutil.which("openssl"):
        skip("no openssl program to make a certificate")
    certificate, key = pathlib.Path(folder, "cert.pem"), pathlib.Path(folder, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate], check=True,
                   capture_output=True)
    return certificate, key


@test
def https():
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = make_certificate(folder)
        trust = ssl.create_default_context(cafile=certificate)
        with Server(DEMO_TARGET, "--tls-cert", certificate, "--tls-key", key, *SLOW, tls=trust) as server:
            expect("url=https://" in server.log(), "the address in the log", server.log())
            body = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 20}
            text = server.answer(TEXT, body)["choices"][0]["text"]
            chunks = server.stream(TEXT, body)
            expect_equal("".join(c["choices"][0]["text"] for c in chunks), text, "streamed text")
            long = server.post(TEXT, {"prompt": "Once upon a time " * 10000})
            expect_equal(long.status, 400, "a body of several records")
            body = {"prompt": "Once", "max_tokens": ENDLESS, "ignore_eos": True}
            connection, response = server.open_stream(TEXT, body)
            response.read(10)
            leave(connection, response)
            server.wait_for_metric("infer_cancelled_requests_total", lambda n: n == 1)
            said = server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            expect_equal(said.count("200 OK"), 0, "plain HTTP")
            expect_equal(server.get("/health").status, 200, "still there")
        refused(1, "--tls-key", "--tls-cert", certificate, "--tls-key", certificate)
        refused(1, "--tls-cert", "--tls-cert", pathlib.Path(folder, "none"), "--tls-key", key)


@test
def flags_from_a_file():
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as file:
        file.write(f'model = "{DEMO_TARGET}"\nport = 0\nalias = "valley"\nthreads = 1\ncache-type-k = "f32"\n'
                   'allowed-host = ["a.example", "b.example"]\nno-metrics = true\ntemp = 0\npredict = 3\n')
        file.flush()
        server = Server(DEMO_TARGET, "--config", file.name, "--parallel", 3)
        server.command = [server.command[0], "serve", "--config", file.name, "--parallel", "3"]
        with server:
            expect_equal(server.get("/v1/models").json["data"][0]["id"], "valley", "alias")
            expect_equal(server.get("/metrics").status, 404, "no metrics")
            expect_equal(server.get("/version", headers={"Host": "b.example"}).status, 200, "a listed host")
            flags = server.get("/version").json["flags"]
            expect_equal((flags["threads"], flags["parallel"], flags["cache-type-k"]), ("1", "3", "f32"), "flags")
            text = server.complete("Once upon a time", ignore_eos=True)
            expect_equal(text["usage"]["completion_tokens"], 3, "tokens where the request does not say")
            greedy = server.complete("Once upon a time", ignore_eos=True, temperature=0)
            expect_equal(text["choices"], greedy["choices"], "sampling where the request does not say")
        with Server(DEMO_TARGET, "--config", file.name, "--alias", "hill", "--port", 0) as server:
            expect_equal(server.get("/v1/models").json["data"][0]["id"], "hill", "the command line goes first")
        file.write("frobnicate = 3\n")
        file.flush()
        refused(2, "frobnicate", "--config", file.name)
    refused(2, "none.conf", "--config", "none.conf")


@test
def logs_for_people_and_programs():
    for form in ("text", "json"):
        with Server(DEMO_TARGET, "--log-format", form, "--log-level", "debug") as server:
            server.chat("Where is Lindale?" * 20, max_tokens=4)
            server.chat("Where is Lindale?" * 20, max_tokens=4)
            server.chat("Where is Lindale?" * 12 + "What?" * 40, max_tokens=4)
            identity = server.post(TEXT, {"prompt": "x\x1b[31m", "n": "\x1b[31m"}).headers["x-request-id"]
        expect("\x1b" not in server.err and server.err.isascii(), "nothing for a terminal to act on", server.err)
        if form == "text":
            line = re.search(rf"info request id={identity} .*status=400", server.err)
            expect(line, "the request is there", server.err)
            continue
        lines = [json.loads(line) for line in server.err.splitlines()]
        answered = [line for line in lines if line.get("path") == "/v1/chat/completions"]
        expect_equal([line["status"] for line in answered], [200] * 3, "status")
        for line in answered:
            expect_equal(line["completion_tokens"], 4, "tokens")
            expect(line["finish_reason"] == "length" and line["ms"] > 0 and line["first_token_ms"] > 0, "times", line)
        expect(answered[1]["cached_tokens"] > 0, "cached tokens", answered)
        misses = {line["id"]: line["first_difference"] for line in lines if line["event"] == "prefix_miss"}
        expect_equal(misses.get(answered[0]["id"], 0), None, "nothing to differ from")
        at = misses.get(answered[2]["id"])
        expect(at and answered[2]["cached_tokens"] <= at < answered[2]["prompt_tokens"], "where it differs", misses)


if __name__ == "__main__":
    os.environ.pop("INFER_API_KEY", None)
    main()
