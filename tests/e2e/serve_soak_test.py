"""A long run of `infer serve` with mixed clients: disconnects, broken JSON, huge and nested bodies, slow
senders, and fair requests. Afterwards everything is as before: blocks, memory, threads, descriptors.

300 requests; 5,000 with INFER_TEST_FULL=1; INFER_SOAK_REQUESTS sets another number.
"""

import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import socket
import threading
import time

from harness import PATIENCE, expect, expect_equal, main, test
from models import DEMO_TARGET
from serving import Server

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
REQUESTS = int(os.environ.get("INFER_SOAK_REQUESTS", 5000 if os.environ.get("INFER_TEST_FULL") == "1" else 300))
WORKERS = 16
READ_TIMEOUT = 1  # seconds for a request to arrive
GROWTH = 24 << 20  # bytes that a heap may keep after the first part of the work


class Client:
    """One request of a random kind; checks the answer as far as it is predictable."""

    def __init__(self, server, seed):
        self.server = server
        self.chance = random.Random(seed)

    def act(self):
        kinds = {self.whole: 6, self.stream: 4, self.leave_stream: 4, self.leave_whole: 2, self.bad_json: 3,
                 self.huge_body: 1, self.nested_body: 2, self.half_a_body: 2, self.half_a_head: 2, self.garbage: 2,
                 self.wrong_value: 2, self.embed: 1, self.look: 1}
        self.chance.choices(list(kinds), list(kinds.values()))[0]()

    def body(self):
        chance = self.chance
        prompt = "Once upon a time " * chance.randrange(1, 40) + chance.choice(["a robot", "the mayor", "Donny"])
        return {"prompt": prompt, "max_tokens": chance.randrange(1, 40), "n": chance.choice([1, 1, 1, 3]),
                "seed": chance.randrange(1000), "logprobs": chance.choice([None, None, 2]),
                "stop": chance.choice([None, ["."], ["the", "a "]]), "echo": chance.random() < 0.2,
                "cache_salt": chance.choice([None, "x"]), "priority": chance.randrange(-2, 3)}

    def post(self, path, body, *statuses):
        """The reply, which has one of these statuses; None for a request that the server may have found too slow."""
        begin = time.monotonic()
        try:
            reply = self.server.post(path, body)
        except (OSError, http.client.HTTPException):
            reply = None
        if time.monotonic() - begin > READ_TIMEOUT and (reply is None or reply.status == 408):
            return None
        expect(reply and reply.status in statuses, f"{path} {statuses}", reply)
        return reply

    def whole(self):
        body = self.body()
        reply = self.post(TEXT, body, 200, 429)
        if reply and reply.status == 200:
            expect_equal(len(reply.json["choices"]), body["n"], "choices")

    def stream(self):
        reply = self.post(CHAT, {"messages": [{"role": "user", "content": "Where is Lindale?"}], "stream": True,
                                 "max_tokens": self.chance.randrange(1, 30)}, 200, 429)
        if reply and reply.status == 200:
            expect(reply.text.endswith("data: [DONE]\n\n"), "a whole stream", reply)

    def send(self, data):
        one = socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE)
        one.sendall(data)
        return one

    def request(self, body, length=None):
        data = json.dumps(body).encode() if not isinstance(body, bytes) else body
        head = f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length or len(data)}\r\n\r\n"
        return head.encode() + data

    def leave_stream(self):
        with self.send(self.request({**self.body(), "max_tokens": 400, "ignore_eos": True, "stream": True})) as one:
            one.recv(self.chance.randrange(1, 2000))

    def leave_whole(self):
        with self.send(self.request({**self.body(), "max_tokens": 400, "ignore_eos": True})) as one:
            one.settimeout(self.chance.random() * 0.2 + 0.01)
            try:
                one.recv(1)
            except TimeoutError:
                pass

    def bad_json(self):
        text = json.dumps(self.body()).encode()
        at = self.chance.randrange(len(text))
        broken = text[:at] + bytes([self.chance.randrange(256)]) + text[at + self.chance.randrange(3):]
        self.post(TEXT, broken, 200, 400, 429)

    def huge_body(self):
        self.post(TEXT, b"[" * 3_000_000, 413)

    def nested_body(self):
        depth = self.chance.choice([100, 10000, 100000])
        body = self.chance.choice([b"[" * depth, b'{"a":' * depth + b"1" + b"}" * depth])
        self.post(TEXT, body, 400)

    def half_a_body(self):
        with self.send(self.request(b'{"prompt": "Once', length=100000)) as one:
            one.settimeout(self.chance.random() * 2 + 0.01)
            try:
                one.recv(100)
            except TimeoutError:
                pass

    def half_a_head(self):
        with self.send(b"POST /v1/completions HTTP/1.1\r\nHost: local") as one:
            one.settimeout(self.chance.random() * 2 + 0.01)
            try:
                one.recv(100)
            except TimeoutError:
                pass

    def garbage(self):
        with self.send(self.chance.randbytes(self.chance.randrange(1, 5000)) + b"\r\n\r\n") as one:
            one.shutdown(socket.SHUT_WR)
            said = one.recv(100)
            expect(said == b"" or said.startswith(b"HTTP/1.1 4") or said.startswith(b"HTTP/1.1 5"), "an error", said)

    def wrong_value(self):
        name = self.chance.choice(["n", "temperature", "stop", "logit_bias", "max_tokens", "prompt"])
        wrong = [[-1]] if name == "prompt" else -5
        self.post(TEXT, {**self.body(), name: wrong}, 400)

    def embed(self):
        self.post("/v1/embeddings", {"input": ["a", "b c"], "pooling": "mean"}, 200, 429)

    def look(self):
        for path in ("/health", "/metrics", "/v1/models", "/version"):
            expect_equal(self.server.get(path).status, 200, path)


def resident_bytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def n_threads_and_descriptors(server):
    return tuple(len(os.listdir(f"/proc/{server.process.pid}/{kind}")) for kind in ("task", "fd"))


@test
def nothing_is_left_after_a_soak():
    with Server(DEMO_TARGET, "-t", 2, "--parallel", 8, "--kv-tokens", 512, "--max-queue", 8, "--max-priority", 2, "--max-body", 1000000,
                "--read-timeout", READ_TIMEOUT, "--write-timeout", 2) as server:
        before = n_threads_and_descriptors(server)
        memory = []
        numbers = iter(range(REQUESTS))
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    number = next(numbers, None)
                    if number == REQUESTS // 3:
                        memory.append(resident_bytes(server))
                if number is None:
                    return
                Client(server, number).act()

        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            for done in [pool.submit(work) for _ in range(WORKERS)]:
                done.result()
        server.wait_for_metric("infer_kv_blocks_used", lambda n: n == 0)
        server.wait_until(lambda: n_threads_and_descriptors(server) <= before)
        memory.append(resident_bytes(server))
        metrics = server.metrics()
        expect_equal((metrics["infer_requests_running"], metrics["infer_requests_waiting"]), (0, 0), "sequences")
        expect(memory[1] - memory[0] < GROWTH, f"memory stays, found {memory}")
        expect_equal(server.complete("Once", max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"], 2, "tokens")
        print(f"{REQUESTS} requests: memory {memory[0] >> 20} and {memory[1] >> 20} MiB, "
              f"{metrics['infer_preemptions_total']:.0f} preemptions, "
              f"{metrics['infer_cancelled_requests_total']:.0f} cancelled")
    expect_equal(server.code, 0, "exit code")


main()
