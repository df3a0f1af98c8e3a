"""How `infer serve` handles many clients, clients that send too much, half-close or disconnect, and little memory."""

import concurrent.futures
import json
import os
import pathlib
import re
import resource
import signal
import socket
import tempfile

from harness import PATIENCE, expect, expect_equal, main, run, test
from models import DEMO_TARGET
from serving import ENDLESS, SLOW, Server, leave

TEXT = "/v1/completions"
ONE_TOKEN = {"prompt": "Once", "max_tokens": 1}
MIB = 1 << 20


def story(tokens, **fields):
    """A request for exactly this many tokens."""
    return {"prompt": "Once upon a time", "max_tokens": tokens, "ignore_eos": True, "temperature": 0, **fields}


def request(path, body, *headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + data


def status_bytes(server, name):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024


def cpu_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def forget_peak(server):
    pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")


@test
def bodies_of_many_keys_and_values():
    """None takes more than a fraction of a second of CPU time."""
    many = b"{" + b",".join(b'"k%d":1' % i for i in range(200000)) + b"}"
    objects = b'{"a":[' + b",".join([b'{"a":1,"b":2}'] * 1000000) + b"]}"
    arrays = b'{"a":[' + b",".join([b"[]"] * 5000000) + b"]}"
    with Server(DEMO_TARGET, "-t", 1) as server:
        for body in (many, objects, arrays, b'{"a":' * 2000000, b'{"content":' + b"1" * 15 * MIB + b"}"):
            before = cpu_seconds(server)
            forget_peak(server)
            resident = status_bytes(server, "VmRSS")
            reply = server.post("/tokenize", body)
            expect_equal(reply.status, 400, f"{body[:40]}")
            expect(cpu_seconds(server) - before < 3, f"processor time of {body[:40]}", cpu_seconds(server) - before)
            peak = status_bytes(server, "VmHWM") - resident
        expect(peak < 300 * MIB, f"memory of {body[:40]}", peak / MIB)


@test
def texts_longer_than_the_context():
    """They are refused before they are tokenized."""
    long = "a" * (15 * MIB)
    with Server(DEMO_TARGET, "-t", 1) as server:
        before = cpu_seconds(server)
        forget_peak(server)
        resident = status_bytes(server, "VmRSS")
        for path, body, param in ((TEXT, {"prompt": long}, "prompt"), ("/v1/embeddings", {"input": long}, "input"),
                                  ("/v1/chat/completions", {"messages": [{"role": "user", "content": long}]}, None)):
            reply = server.post(path, body)
            expect_equal(reply.status, 400, f"{path}")
            if param:
                expect_equal((reply.error["code"], reply.error["param"]), ("context_length_exceeded", param), path)
        expect(cpu_seconds(server) - before < 6, "processor time", cpu_seconds(server) - before)
        expect(status_bytes(server, "VmHWM") - resident < 200 * MIB, "memory", status_bytes(server, "VmHWM") / MIB)
        reply = server.post("/tokenize", {"content": long})
        expect_equal((reply.status, reply.error["param"]), (400, "content"), "/tokenize")


@test
def many_tokens_with_pieces():
    """The answer is streamed, and its memory is released."""
    with Server(DEMO_TARGET, "-t", 1) as server:
        forget_peak(server)
        resident = status_bytes(server, "VmRSS")
        content = "a" * MIB
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            replies = list(pool.map(lambda _: server.post("/tokenize", {"content": content, "with_pieces": True}),
                                    range(4)))
        for reply in replies:
            expect_equal("".join(token["piece"] for token in reply.json["tokens"]).strip(), content, "pieces")
        peak = status_bytes(server, "VmHWM") - resident
        expect(peak < 300 * MIB, "memory of four at a time", peak / MIB)
        server.wait_until(lambda: status_bytes(server, "VmRSS") - resident < 64 * MIB)


@test
def little_memory():
    """What does not fit is refused, or its connection ends; the server keeps running."""
    with Server(DEMO_TARGET, "-t", 1) as server:
        alone = server.complete("Once upon a time", temperature=0, max_tokens=8)["choices"][0]["text"]
        bodies = [json.dumps({"content": "a" * (3 * MIB), "with_pieces": True}).encode(),
                  b'{"tokens":[' + b",".join([b"5"] * 900000) + b"]}", b'{"a":[' + b",".join([b'{"a":[1]}'] * 240000) + b"]}"]
        answers = set()
        for more in (4, 16, 48, 100, 200):
            limit = status_bytes(server, "VmSize") + more * MIB
            resource.prlimit(server.process.pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

            def ask(i):
                try:
                    return server.post(("/tokenize", "/detokenize", TEXT)[i % 3], bodies[i % 3]).status
                except OSError:
                    return 0

            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                answers |= set(pool.map(ask, range(18)))
            expect(server.process.poll() is None, "the server keeps running", server.log()[-2000:])
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        expect(answers <= {0, 200, 400, 503} and answers & {0, 503}, "some do not fit", answers)
        again = server.complete("Once upon a time", temperature=0, max_tokens=8)["choices"][0]["text"]
        expect_equal(again, alone, "text afterwards")
    expect_equal(server.code, 0, "exit code")


@test
def clients_that_close_their_side():
    """They get their answers, whole and streamed, even if these take long."""
    with Server(DEMO_TARGET, *SLOW, "--parallel", 1) as server:
        busy = server.connect()
        busy.request("POST", TEXT, json.dumps(story(ENDLESS)).encode())
        server.wait_for_metric("infer_requests_running", lambda n: n == 1)
        halves = []
        for stream in (False, True):
            one = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
            one.sendall(request(TEXT, story(20, stream=stream), "Connection: close"))
            one.shutdown(socket.SHUT_WR)
            halves.append(one)
        server.wait_for_metric("infer_requests_waiting", lambda n: n == 2)
        busy.close()
        for one, stream in zip(halves, (False, True)):
            received = b""
            while chunk := one.recv(65536):
                received += chunk
            one.close()
            expect(received.startswith(b"HTTP/1.1 200 OK\r\n"), "an answer", received[:300])
            if stream:
                expect(b"data: [DONE]\n\n" in received, "the whole stream", received[-300:])
            else:
                answer = json.loads(received.split(b"\r\n\r\n", 1)[1])
                expect_equal(answer["usage"]["completion_tokens"], 20, "tokens")
        server.wait_for_metric("infer_cancelled_requests_total", lambda n: n == 1)  # the first


@test
def clients_that_leave_while_they_wait():
    """While a whole answer or a stream is pending, and nothing has been sent."""
    with Server(DEMO_TARGET, *SLOW, "--parallel", 1) as server:
        busy, response = server.open_stream(TEXT, story(ENDLESS))
        for stream in (False, True):
            one = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
            one.sendall(request(TEXT, story(20, stream=stream)))
            server.wait_for_metric("infer_requests_waiting", lambda n: n == 1)
            one.close()
            server.wait_for_metric("infer_requests_waiting", lambda n: n == 0)
        expect_equal(server.metrics()["infer_requests_running"], 1, "the first keeps running")
        leave(busy, response)


@test
def more_connections_than_there_are_places():
    with Server(DEMO_TARGET, "-t", 1, "--max-connections", 8, "--read-timeout", PATIENCE) as server:
        before = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        silent = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(50)]
        for one in silent[::2]:
            try:
                one.sendall(b"POST /v1/completions HTTP/1.1\r\n")
            except OSError:
                pass
        for _ in range(20):
            expect_equal(server.complete("Once", max_tokens=1)["usage"]["completion_tokens"], 1, "tokens")
        expect(all(one.recv(10) == b"" for one in silent[:40]), "the oldest were closed")
        # Requests are in progress once the server is ready for their bodies, and then keep their places. An answered
        # connection keeps its place too, until its thread has ended: who comes before that may have to come again.
        head, body = request(TEXT, story(20, stream=True), "Expect: 100-continue", "Connection: close").split(
            b"\r\n\r\n", 1)
        begun = []

        def begin():
            one = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
            try:
                one.sendall(head + b"\r\n\r\n")
                said = one.recv(1000)
            except ConnectionError:
                said = b""
            if said == b"HTTP/1.1 100 Continue\r\n\r\n":
                begun.append(one)
            else:
                one.close()
                expect(said == b"" or said.startswith(b"HTTP/1.1 503 "), "the go-ahead or a refusal", said)
            return len(begun) == 8

        server.wait_until(begin)
        said = server.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        expect(said.startswith("HTTP/1.1 503 ") and "Retry-After" in said, "a refusal", said)
        for one in begun:
            one.sendall(body)
        for one in begun:
            received = b""
            while chunk := one.recv(65536):
                received += chunk
            expect(b"data: [DONE]\n\n" in received, "those under way end as they should", received[-300:])
        for one in silent + begun:
            one.close()
        server.wait_until(lambda: len(os.listdir(f"/proc/{server.process.pid}/fd")) <= before)


@test
def pages_may_send_and_read_what_their_client_needs():
    asked = "authorization,content-type,x-stainless-os,x-stainless-retry-count"
    page = {"Origin": "http://page.example", "Access-Control-Request-Method": "POST"}
    with Server(DEMO_TARGET, "--cors-origin", "*") as server:
        reply = server.ask("OPTIONS", TEXT, headers={**page, "Access-Control-Request-Headers": asked})
        allowed = {name.strip().lower() for name in reply.headers["access-control-allow-headers"].split(",")}
        expect_equal((reply.status, allowed), (204, set(asked.split(","))), "preflight")
        strange = "x-a, x b, , \x07, x-c\x7f, x-d:e, " + "x-long" * 10 + ", " + ",".join(f"x-{i}" for i in range(500))
        reply = server.ask("OPTIONS", TEXT, headers={**page, "Access-Control-Request-Headers": strange.replace("\x07", "(")
                                                     .replace("\x7f", ")")})
        names = [name.strip() for name in reply.headers["access-control-allow-headers"].split(",")]
        expect(len(names) <= 64 and "x-a" in names, "names within bounds", names)
        expect(all(re.fullmatch(r"[A-Za-z0-9-]+", name) for name in names), "names of headers alone", names)
        for body, status in ((ONE_TOKEN, 200), ({"prompt": 1}, 400)):
            reply = server.post(TEXT, body, headers={"Origin": "http://page.example"})
            exposed = reply.headers["access-control-expose-headers"].lower()
            expect(reply.status == status and "x-request-id" in exposed and "retry-after" in exposed, "exposed", reply)


@test
def pages_of_a_host_with_any_port():
    with Server(DEMO_TARGET, "--cors-origin", "localhost", "--cors-origin", "https://a.example/", "--cors-origin",
                "b.example:8443") as server:
        for origin, status in (("http://localhost:3000", 200), ("https://localhost", 200), ("http://localhost", 200),
                               ("http://localhost.evil.example", 403), ("http://notlocalhost:3000", 403),
                               ("https://a.example", 200), ("https://a.example:444", 403), ("http://a.example", 403),
                               ("https://b.example:8443", 200), ("https://b.example", 403), ("null", 403)):
            reply = server.post(TEXT, ONE_TOKEN, headers={"Origin": origin})
            expect_equal(reply.status, status, f"a page of {origin}")
            expect_equal(reply.headers.get("access-control-allow-origin"), origin if status == 200 else None, origin)


@test
def models_that_are_missing():
    """They are refused before the server listens."""
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(b"no model")
        file.flush()
        for path in ("/nowhere/none.gguf", file.name, "/"):
            result = run("serve", "-m", path, "--port", 0)
            expect(result.code != 0 and "listening" not in result.err, "it does not listen", result)
            expect_equal(result.err.count("\n"), 1, f"lines of {result.err}")


@test
def refusals_are_logged_with_their_path():
    with Server(DEMO_TARGET) as server:
        server.get("/nowhere?x=secret")
        server.post("/health", {})
        server.raw(request(TEXT, b"", "Content-Length: 99999999999").replace(b"Content-Length: 0\r\n", b""))
    for needle in ("method=GET path=/nowhere status=404", "method=POST path=/health status=405",
                   f"method=POST path={TEXT} status=413"):
        expect(needle in server.err, needle, server.err)
    expect("secret" not in server.err, "no query in the log")


@test
def shutdown_is_in_time():
    """Regardless of the requests in progress."""
    bodies = (b"{" + b",".join(b'"k%d":1' % i for i in range(200000)) + b"}",
              json.dumps({"content": "a" * (4 * MIB), "with_pieces": True}).encode())
    with Server(DEMO_TARGET, "-t", 1, "--drain-timeout", 1) as server:
        clients = []
        for body in bodies * 4:
            clients.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
            clients[-1].sendall(request("/tokenize", body))
        before = cpu_seconds(server)
        server.process.send_signal(signal.SIGTERM)
        server.wait_until(lambda: "stopping" in server.log())
        server.process.send_signal(signal.SIGTERM)
        used = [before]
        server.wait_until(lambda: "stopped" in server.log() or used.append(cpu_seconds(server)))
        expect(used[-1] - before < 20, "processor time until the end", used[-1] - before)
        for one in clients:
            one.close()


main()
