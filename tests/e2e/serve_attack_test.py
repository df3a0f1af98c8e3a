"""24 hostile clients of every kind at once, and some fair ones, on a server with little memory. The server keeps running,
fair clients get the same answers as alone, and afterwards nothing is left of the others.

20 seconds and 600 requests at most; three minutes and 20,000 with INFER_TEST_FULL=1.
"""

import concurrent.futures
import http.client
import json
import os
import random
import re
import resource
import socket
import threading
import time

from harness import PATIENCE, expect, expect_equal, main, test
from models import DEMO_TARGET
from serving import Server

TEXT, CHAT = "/v1/completions", "/v1/chat/completions"
CLIENTS = 24
FULL = os.environ.get("INFER_TEST_FULL") == "1"
SECONDS, REQUESTS = (180, 20000) if FULL else (20, 600)
MEMORY = 1792 << 20  # of address space beyond what the server has when ready: 64 MiB per thread's heap
MIB = 1 << 20
# The statuses of any request: the server has no room for it, or it arrived too slowly, as on a busy machine.
NOT_NOW = (503, 408)

FAIR = [{"prompt": f"Once upon a time {who}", "temperature": 0, "max_tokens": n, "ignore_eos": True, **more}
        for who, n, more in (("a robot", 12, {}), ("the mayor", 20, {"logprobs": 2}), ("Donny", 7, {"echo": True}),
                             ("a cat", 16, {"n": 2, "seed": 5, "temperature": 1}), ("it", 30, {"stop": ["."]}))]


def essence(answer):
    return [(c["text"], c["finish_reason"], c["logprobs"] and c["logprobs"]["token_logprobs"])
            for c in answer["choices"]]


class Client:
    def __init__(self, server, seed, alone, seconds):
        self.server, self.alone, self.seconds = server, alone, seconds
        self.chance = random.Random(seed)

    def act(self):
        kinds = {self.fair: 8, self.leave: 4, self.read_slowly: 2, self.close_own_side: 3, self.bad_chunks: 3,
                 self.good_chunks: 2, self.huge: 1, self.many_keys: 1, self.many_pieces: 1, self.silent: 3,
                 self.half_a_request: 3, self.garbage: 2, self.wrong: 3}
        try:
            self.chance.choices(list(kinds), list(kinds.values()))[0]()
        except (OSError, http.client.HTTPException):
            pass  # the server may close any connection when it is short of memory or places

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE)

    def body(self):
        chance = self.chance
        return {"prompt": "x " * chance.randrange(1, 200), "max_tokens": chance.randrange(1, 60), "ignore_eos": True,
                "n": chance.choice([1, 1, 2, 5]), "logprobs": chance.choice([None, 5]), "echo": chance.random() < 0.3,
                "stop": chance.choice([None, ["a"], ["the", "."]]), "priority": chance.randrange(-5, 6),
                "stream": chance.random() < 0.5, "cache_salt": chance.choice([None, "s"])}

    def request(self, body, path=TEXT, length=None):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length or len(data)}\r\n\r\n"
        return head.encode() + data

    def receive(self, one):
        received = b""
        while chunk := one.recv(65536):
            received += chunk
        return received

    def fair(self):
        i = self.chance.randrange(len(FAIR))
        begin = time.monotonic()
        reply = self.server.post(TEXT, FAIR[i])
        expect(reply.status in (200, 429, *NOT_NOW), "an answer or no room", reply)
        if reply.status == 200:
            self.seconds.append(time.monotonic() - begin)
            expect_equal(essence(reply.json), self.alone[i], f"the answer to {FAIR[i]}")

    def leave(self):
        with self.connect() as one:
            one.sendall(self.request({**self.body(), "max_tokens": 400}))
            one.settimeout(self.chance.random() * 0.3 + 0.01)
            try:
                one.recv(self.chance.randrange(1, 3000))
            except TimeoutError:
                pass

    def read_slowly(self):
        with self.connect() as one:
            one.sendall(self.request({**self.body(), "n": 4, "logprobs": 20, "stream": True}))
            for _ in range(self.chance.randrange(20)):
                if not one.recv(200):
                    break
                time.sleep(0.02)

    def close_own_side(self):
        i = self.chance.randrange(len(FAIR))
        with self.connect() as one:
            one.sendall(self.request(FAIR[i]))
            one.shutdown(socket.SHUT_WR)
            received = self.receive(one)
        if received.startswith(b"HTTP/1.1 200"):
            expect_equal(essence(json.loads(received.split(b"\r\n\r\n", 1)[1])), self.alone[i], "after half a close")

    def chunked(self, chunks):
        with self.connect() as one:
            one.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                        b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
            return self.receive(one)

    def bad_chunks(self):
        said = self.chunked(self.chance.choice([b"10zz\r\nxx", b"0x5\r\nhello\r\n0\r\n\r\n", b"5\nhello\n0\n\n",
                                                b"0" * 5000, b"5\r\nhelloXX0\r\n\r\n", b"0\r\n: x\r\n\r\n",
                                                b"ffffffffffffffffff\r\n", b"1;" + b"x" * 5000 + b"\r\na\r\n"]))
        expect(said[9:12] in (b"400", b"503", b"408", b""), "an error", said)

    def good_chunks(self):
        said = self.chunked(b"1\r\n{\r\n12;x\r\n\"content\": \"hello\"\r\n1\r\n}\r\n0\r\nX: y\r\n\r\n")
        expect(said[9:12] in (b"200", b"503", b"408", b""), "an answer", said)

    def huge(self):
        text = "a" * self.chance.randrange(5 * MIB, 15 * MIB)
        body = self.chance.choice([{"prompt": text}, {"prompt": [text, text[:10]]}, {"prompt": "x", "user": text}])
        status = self.server.post(TEXT, {**body, "max_tokens": 1}).status
        expect(status in (200, 400, 413, 429, *NOT_NOW), "a huge body", status)

    def many_keys(self):
        n = self.chance.choice([4000, 5000, 200000])
        body = b'{"prompt":"x","max_tokens":1,' + b",".join(b'"k%d":[{}]' % i for i in range(n)) + b"}"
        expect(self.server.post(TEXT, body).status in (200, 400, 429, *NOT_NOW), "many keys")

    def many_pieces(self):
        with self.connect() as one:
            one.sendall(self.request({"content": "ab" * MIB, "with_pieces": True}, "/tokenize"))
            for _ in range(self.chance.randrange(30)):
                if not one.recv(65536):
                    break

    def silent(self):
        with self.connect() as one:
            one.settimeout(self.chance.random() * 2)
            try:
                one.recv(1)
            except TimeoutError:
                pass

    def half_a_request(self):
        whole = self.request(self.body())
        with self.connect() as one:
            one.sendall(whole[:self.chance.randrange(1, len(whole))])
            one.settimeout(self.chance.random())
            try:
                one.recv(100)
            except TimeoutError:
                pass

    def garbage(self):
        with self.connect() as one:
            one.sendall(self.chance.randbytes(self.chance.randrange(1, 20000)) + b"\r\n\r\n")
            one.shutdown(socket.SHUT_WR)
            self.receive(one)

    def wrong(self):
        name, value = self.chance.choice([("n", -1), ("stop", [1]), ("priority", 1e9), ("prompt", [[-1]]), ("echo", 3)])
        expect(self.server.post(TEXT, {**self.body(), name: value}).status in (400, *NOT_NOW), name)


def times_of_fair(server, alone, clients, requests):
    """Seconds that fair requests take when nobody else is there, sorted."""
    seconds = []
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        for done in [pool.submit(Client(server, i, alone, seconds).fair) for i in range(requests)]:
            done.result()
    return sorted(seconds)


def in_words(seconds):
    if not seconds:
        return "none answered"
    return f"median {seconds[len(seconds) // 2]:.3f} s, slowest {seconds[-1]:.3f} s"


def n_of(server, kind):
    return len(os.listdir(f"/proc/{server.process.pid}/{kind}"))


@test
def nothing_is_left_of_an_attack():
    with Server(DEMO_TARGET, "-t", 2, "--parallel", 4, "--kv-tokens", 2048, "--max-queue", 12, "--max-connections", 40,
                "--read-timeout", 2, "--write-timeout", 2, "--idle-timeout", 5) as server:
        alone = [essence(server.answer(TEXT, body)) for body in FAIR]
        one_client, six_clients = (times_of_fair(server, alone, clients, 10 * clients) for clients in (1, 6))
        before = n_of(server, "fd"), n_of(server, "task")
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            size = int(re.search(r"VmSize:\s+(\d+) kB", status.read())[1]) * 1024
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))
        seconds = []  # how long fair requests took
        numbers, lock = iter(range(REQUESTS)), threading.Lock()
        end = time.monotonic() + SECONDS

        def work():
            n = 0
            while time.monotonic() < end:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    break
                Client(server, number, alone, seconds).act()
                n += 1
            return n

        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            n_requests = sum(done.result() for done in [pool.submit(work) for _ in range(CLIENTS)])
        expect(server.process.poll() is None, "the server keeps running", server.log()[-3000:])
        for name in ("kv_blocks_used", "requests_running", "requests_waiting"):
            server.wait_for_metric(f"infer_{name}", lambda n: n == 0)
        server.wait_until(lambda: n_of(server, "fd") <= before[0] and n_of(server, "task") <= before[1])
        expect_equal(server.get("/stats").status, 200, "/stats")
        expect_equal([essence(server.answer(TEXT, body)) for body in FAIR], alone, "answers afterwards")
        statuses = {key[len('infer_responses_total{status="'):-2]: int(value)
                    for key, value in server.metrics().items() if key.startswith("infer_responses_total")}
        print(f"{n_requests} requests, responses by status: {statuses}; {len(seconds)} fair ones: "
              f"{in_words(sorted(seconds))} (of one client alone: {in_words(one_client)}; of six: "
              f"{in_words(six_clients)})")
    expect_equal(server.code, 0, "exit code")


main()
