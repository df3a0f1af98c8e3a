"""infer bench-serve against small made-up endpoints, and against infer serve."""

import contextlib
import http.server
import json
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import xml.etree.ElementTree

from harness import BINARY, PATIENCE, expect, expect_equal, main, run, test, test_each
from models import DEMO_TARGET, succeeded
from serving import Server


class FakeEndpoint(http.server.ThreadingHTTPServer):
    """Answers every POST with five pieces of text; `trouble(number)` decides what goes wrong with each request. The second
    and later requests wait until `together` of them are there at once."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, trouble=lambda number: "", key=None, together=1):
        super().__init__(("127.0.0.1", 0), Handler)
        self.trouble, self.key, self.together = trouble, key, together
        self.lock = threading.Condition()
        self.bodies, self.paths = [], []
        self.active, self.most_active = set(), 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """A disconnected client is not worth reporting."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            number = len(server.bodies)
            server.bodies.append(body)
            server.paths.append(self.path)
            server.active.add(number)
            server.most_active = max(server.most_active, len(server.active))
            server.lock.notify_all()
            if number > 0:
                server.lock.wait_for(lambda: server.most_active >= server.together, PATIENCE / 10)
        try:
            self.answer(number, server.trouble(number))
        finally:
            self.leave(number)

    def leave(self, number):
        with self.server.lock:
            self.server.active.discard(number)

    def answer(self, number, trouble):
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            return self.refuse(401, "a key is needed")
        if trouble == "busy":
            return self.refuse(429, "queue is full")
        if trouble == "hang up":
            self.close_connection = True
            return None
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        event = {"choices": [{"index": 0, "delta": {"content": "word "}}]}
        usage = {"choices": [], "usage": {"prompt_tokens": 20, "completion_tokens": 10,
                                          "prompt_tokens_details": {"cached_tokens": 16}}}
        text = "".join(f"data: {json.dumps(event)}\r\n\r\n" for _ in range(5))
        text += f": note\r\n\r\ndata: {json.dumps(usage)}\r\n\r\ndata: [DONE]\r\n\r\n"
        if trouble == "no end":
            text = text.replace("data: [DONE]\r\n\r\n", "")
        if trouble == "no text":
            text = text.replace("word ", "")
        if trouble == "nonsense":
            text = "data: {\"choices\": [\r\n\r\n"
        if trouble == "error":
            text = text[:100] + "\r\n\r\ndata: {\"error\": {\"message\": \"lost\\u001b[31m it\"}}\r\n\r\n"
            text = f"data: {json.dumps(event)}\r\n\r\n" + text[text.index("data: {\"error"):]
        if trouble == "endless line":
            text = "data: " + "x" * (2 << 20)
        size = 37 if len(text) < 65536 else 65537
        pieces = [text[i:i + size] for i in range(0, len(text), size)]
        for i, piece in enumerate(pieces):
            if trouble == "disconnect" and i == 3:
                self.close_connection = True
                return None
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece.encode()))
            self.wfile.flush()
            if trouble == "slow":
                time.sleep(0.05)
        self.leave(number)  # before the client, which may send its next request at once, learns of it
        self.wfile.write(b"0\r\n\r\n")
        return None

    def refuse(self, code, message):
        body = json.dumps({"error": {"message": message, "type": "x"}}).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def endpoint(*arguments, **options):
    server = FakeEndpoint(*arguments, **options)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def bench(server, *flags):
    return run("bench-serve", "--url", server.url, *flags)


def report_of(server, *flags, code=0):
    result = bench(server, "--json", *flags)
    expect_equal(result.code, code, f"exit code of\n{result}\n")
    return json.loads(result.out)


@test_each("prefill", "decode", "chat")
def every_request_of_a_mix_is_counted(mix):
    with endpoint() as server:
        report = report_of(server, "--mix", mix, "--concurrency", "1,3", "--requests", 7)
        expect_equal(len(server.bodies), 15, "requests, with the one that is not counted")
        expect(server.most_active <= 3, "clients at once", server.most_active)
        expect_equal(len({json.dumps(body["messages"]) for body in server.bodies}), 15, "different prompts")
        expect_equal(set(server.paths), {"/v1/chat/completions"})
        expect(all(body["stream"] and body["stream_options"]["include_usage"] for body in server.bodies), "streaming")
    expect_equal([(r["concurrency"], r["requests"], r["answered"]) for r in report["results"]], [(1, 7, 7), (3, 7, 7)])
    for r in report["results"]:
        expect_equal((r["output_tokens"], r["prompt_tokens"], r["cached_tokens"]), (70, 140, 112), "tokens as told")
        expect_equal(r["errors"], {})
        expect(0 < r["time_to_first_token"]["p50"] <= r["time_to_first_token"]["p95"]
               <= r["time_to_first_token"]["p99"] <= r["total"]["p99"], "ordered times", r)
        expect(abs(r["output_tokens_per_second"] * r["seconds"] - 70) < 1e-6, "throughput", r)


@test
def as_many_at_once_as_asked_for():
    with endpoint(together=4) as server:
        report_of(server, "--concurrency", "4", "--requests", 8)
        expect_equal(server.most_active, 4, "requests at once")


@test
def completions_model_and_lengths():
    with endpoint() as server:
        report_of(server, "--api", "completions", "--model", "some", "--max-tokens", 3, "--prompt-words", 5,
                  "--concurrency", 1, "--requests", 2)
        expect_equal(set(server.paths), {"/v1/completions"})
        for body in server.bodies:
            expect_equal((body["model"], body["max_tokens"]), ("some", 3))
            expect(isinstance(body["prompt"], str) and "messages" not in body, "a prompt", body)


KINDS = {"busy": "status 429", "hang up": "connection", "disconnect": "stream", "no end": "stream", "no text": "stream",
         "nonsense": "stream", "error": "stream", "endless line": "stream"}


@test_each(*KINDS)
def trouble_is_counted_and_the_rest_measured(trouble):
    with endpoint(lambda number: trouble if number % 3 == 2 else "") as server:
        report = report_of(server, "--concurrency", "2", "--requests", 9)
    result = report["results"][0]
    expect_equal((result["requests"], result["answered"]), (9, 6), str(result))
    expect_equal({kind: error["count"] for kind, error in result["errors"].items()}, {KINDS[trouble]: 3}, str(result))
    expect_equal(result["output_tokens"], 60, "only answers in full count")
    expect(all(error["message"].isprintable() for error in result["errors"].values()), "printable", result)


@test
def a_level_without_answers_is_a_failure_with_a_reason():
    with endpoint(lambda number: "busy" if number > 0 else "") as server:
        result = bench(server, "--concurrency", 2, "--requests", 4)
        expect_equal(result.code, 1, str(result))
        expect("4 of status 429: [server] queue is full" in result.out, "the reason", result)


@test_each("busy", "hang up", "nonsense")
def an_endpoint_that_does_not_work_is_one_line(trouble):
    with endpoint(lambda number: trouble) as server:
        result = bench(server)
        expect(result.code == 1 and not result.out and result.err.count("\n") == 1, "one line", result)
        expect(server.url in result.err, "which endpoint", result)
        expect_equal(len(server.bodies), 1, "requests")


@test
def nobody_listens():
    with endpoint() as server:
        url = server.url
    result = run("bench-serve", "--url", url)
    expect(result.code == 1 and not result.out and result.err.count("\n") == 1 and url in result.err, "one line", result)


@test
def a_key_comes_from_a_file_or_the_environment():
    with endpoint(key="secret") as server, tempfile.TemporaryDirectory() as folder:
        flags = ("--concurrency", 1, "--requests", 1)
        expect_equal(bench(server, *flags).code, 1, "without a key")
        expect("a key is needed" in bench(server, *flags).err, "what the server says")
        path = pathlib.Path(folder, "key")
        path.write_text("secret\n", encoding="ascii")
        succeeded(bench(server, *flags, "--api-key-file", path))
        succeeded(run("bench-serve", "--url", server.url, *flags, env={"INFER_API_KEY": "secret"}))
        path.write_text("", encoding="ascii")
        expect_equal(bench(server, *flags, "--api-key-file", path).code, 1, "an empty file")


@test
def the_plot_is_a_picture_of_every_level():
    with endpoint() as server, tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "plot.svg")
        result = succeeded(bench(server, "--concurrency", "1,2", "--requests", 3, "--plot", path))
        picture = xml.etree.ElementTree.parse(path).getroot()
        circles = picture.findall("{http://www.w3.org/2000/svg}circle")
        expect_equal(len(circles), 2 * 3 * 2, "points: panels, percentiles, levels")
        expect("concurrency" in result.out and not result.err, "a table", result)
        expect_equal([entry.name for entry in pathlib.Path(folder).iterdir()], ["plot.svg"], "no other files")
        refused = bench(server, "--concurrency", 1, "--requests", 1, "--plot", pathlib.Path(folder, "no", "plot.svg"))
        expect(refused.code == 1 and refused.err.count("\n") == 1, "a folder that is not there", refused)


@test
def infer_serve_under_load():
    flags = ("--prompt-words", 80, "--max-tokens", 8, "--requests", 6, "--concurrency", "1,3")
    with Server(DEMO_TARGET, "--parallel", 3) as server:
        server.url = f"http://127.0.0.1:{server.port}"
        for mix in ("chat", "decode"):
            for result in report_of(server, "--mix", mix, *flags)["results"]:
                expect_equal((result["answered"], result["errors"]), (6, {}), str(result))
                expect(0 < result["output_tokens"] <= 48 and result["prompt_tokens"] > 6 * 12, "tokens", result)
                expect(mix != "chat" or result["cached_tokens"] > 0, "the shared system prompt is cached", result)


@test
def an_interrupt_stops_it():
    with endpoint(lambda number: "slow") as server:
        program = subprocess.Popen([BINARY, "bench-serve", "--url", server.url, "--requests", "1000"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not server.bodies and program.poll() is None:
            time.sleep(0.02)
        program.send_signal(signal.SIGINT)
        expect_equal(program.wait(PATIENCE), 130, "exit code")
        program.stdout.close()
        program.stderr.close()


@test_each("", "--url nonsense", "--url http://", "--url http://h --mix x", "--url http://h --concurrency 0",
           "--url http://h --concurrency x", "--url http://h --requests -1", "--url http://h --api x",
           "--url ftp://h", "--url http://h:0")
def wrong_use_is_one_line(flags):
    result = run("bench-serve", *flags.split())
    expect(result.code == 2 and result.err.count("\n") == 1 and not result.out, "one line", result)


main()
