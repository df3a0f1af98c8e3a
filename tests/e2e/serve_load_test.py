"""`infer serve` under overload: refusals, disconnecting clients, shutdown under load, metrics."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import socket
import threading

from harness import PATIENCE, expect, expect_equal, main, test, test_each
from models import DEMO_TARGET
from serving import ENDLESS, SLOW, Reply, Server, leave

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"


def story(tokens, **fields):
    """A request for exactly this many tokens."""
    return {"prompt": "Once upon a time", "max_tokens": tokens, "ignore_eos": True, **fields}


def resident_bytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024


def n_threads(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def n_descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


@test
def four_times_the_queue():
    """Accepted requests are answered completely, the others are told when to retry, and nothing accumulates."""
    parallel, queue = 2, 6
    with Server(DEMO_TARGET, "-t", 1, "--parallel", parallel, "--max-queue", queue) as server:
        n = 4 * (parallel + queue)
        memory = []
        for _ in range(4):
            connections = [server.connect() for _ in range(n)]
            with server.paused():  # so that it finds all of them at once
                for i, connection in enumerate(connections):
                    connection.request("POST", TEXT, json.dumps(story(60 + i % 3, seed=i)).encode())
            with concurrent.futures.ThreadPoolExecutor(n) as pool:
                replies = list(pool.map(lambda connection: Reply(connection.getresponse()), connections))
            for connection in connections:
                connection.close()
            statuses = [reply.status for reply in replies]
            expect_equal(set(statuses), {200, 429}, "statuses")
            expect(statuses.count(200) >= parallel + queue, "as many are accepted as there is room for", statuses)
            for i, reply in enumerate(replies):
                if reply.status == 200:
                    expect_equal(reply.json["usage"]["completion_tokens"], 60 + i % 3, "tokens of an accepted request")
                else:
                    expect_equal(reply.error["code"], "queue_full", "code")
                    expect(1 <= int(reply.headers["retry-after"]) <= 60, "Retry-After", reply)
            memory.append(resident_bytes(server))
        expect(memory[-1] - memory[0] < 8 << 20, "memory stays flat", memory)
        metrics = server.metrics()
        expect_equal(metrics['infer_rejected_requests_total{reason="queue_full"}'],
                     metrics['infer_responses_total{status="429"}'], "rejects")
        expect_equal(metrics["infer_kv_blocks_used"], 0, "blocks in use")


@test
def a_hundred_clients_wait_with_the_defaults():
    """The same for one request with more prompts or choices than there are places."""
    n = 100
    with Server(DEMO_TARGET, "-t", 1) as server:
        barrier = threading.Barrier(n)

        def ask(i):
            barrier.wait()
            return server.post(TEXT, story(20, seed=i)).status

        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            expect_equal(set(pool.map(ask, range(n))), {200}, "statuses")
        for count in (73, 256):
            reply = server.post("/v1/embeddings", {"input": [f"number {i}" for i in range(count)]})
            expect_equal(reply.status, 200, f"status of {count} inputs")
            expect_equal([item["index"] for item in reply.json["data"]], list(range(count)), "vectors")
    with Server(DEMO_TARGET, "-t", 1, "--parallel", 4, "--max-queue", 0) as server:
        for fields in ({"prompt": ["Once"] * 5}, {"prompt": "Once", "n": 5}, {"prompt": ["Once"] * 5, "n": 3}):
            reply = server.post(TEXT, {**story(5), **fields})
            expect_equal(reply.status, 200, f"status of {fields}")


@test
def tokens_that_may_wait():
    with Server(DEMO_TARGET, *SLOW, "--parallel", 1, "--max-queue", 50, "--max-queue-tokens", 100) as server:
        running = server.open_stream(TEXT, story(ENDLESS))
        server.wait_for_metric("infer_generated_tokens_total", lambda n: n > 0)
        long = {"prompt": "Once upon a time " * 16, "max_tokens": 1}
        connection, response = server.open_stream(TEXT, long)
        reply = server.post(TEXT, long)
        expect_equal((reply.status, reply.error["code"]), (429, "queue_tokens_full"), f"{reply}")
        leave(*running)
        expect(b"[DONE]" in response.read(), "the one that waited ends as it should")
        connection.close()
        expect_equal(server.post(TEXT, long).status, 200, "when nothing waits")


@test
def clients_that_leave():
    """During a streamed answer, a whole answer, waiting, and the computation of the prompt."""
    with Server(DEMO_TARGET, *SLOW, "--parallel", 1, "--ubatch-size", 1) as server:
        def wait_until_free():
            server.wait_for_metric("infer_kv_blocks_used", lambda n: n == 0)
            metrics = server.metrics()
            expect_equal((metrics["infer_requests_running"], metrics["infer_requests_waiting"]), (0, 0), "sequences")

        before = n_threads(server), n_descriptors(server)
        connection, response = server.open_stream(TEXT, story(ENDLESS))
        response.read(100)
        leave(connection, response)
        wait_until_free()

        body = json.dumps(story(ENDLESS)).encode()
        whole = server.connect()
        whole.request("POST", TEXT, body)
        server.wait_for_metric("infer_kv_blocks_used", lambda n: n > 0)
        waiting = server.connect()
        waiting.request("POST", TEXT, body)
        server.wait_for_metric("infer_requests_waiting", lambda n: n == 1)
        waiting.sock.close()
        server.wait_for_metric("infer_requests_waiting", lambda n: n == 0)
        expect_equal(server.metrics()["infer_requests_running"], 1, "the other still runs")
        whole.sock.close()
        wait_until_free()

        prompt = server.connect()
        prompt.request("POST", TEXT, json.dumps(story(1, prompt="x " * (ENDLESS // 2))).encode())
        server.wait_for_metric("infer_kv_blocks_used", lambda n: n > 0)
        prompt.sock.close()
        wait_until_free()
        server.wait_for_metric("infer_cancelled_requests_total", lambda n: n == 4)
        expect_equal(server.metrics()["infer_prompt_tokens_total"], 8, "the long prompt was never complete")
        server.wait_until(lambda: (n_threads(server), n_descriptors(server)) <= before)


@test
def clients_that_take_nothing():
    """An answer that nobody reads ends after the client has read nothing for a while."""
    with Server(DEMO_TARGET, "--parallel", 8, "--write-timeout", 1) as server:
        body = json.dumps(story(900, n=8, logprobs=20, stream=True)).encode()
        head = f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        with socket.socket() as idle:
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            idle.connect(("127.0.0.1", server.port))
            idle.sendall(head + body)
            server.wait_for_metric("infer_cancelled_requests_total", lambda n: n == 1)
        server.wait_for_metric("infer_kv_blocks_used", lambda n: n == 0)


@test
def requests_that_take_too_long():
    with Server(DEMO_TARGET, *SLOW, "--request-timeout", 1, "--ubatch-size", 8) as server:
        reply = server.post(TEXT, story(ENDLESS))
        expect_equal((reply.status, reply.error["code"]), (504, "timeout"), f"{reply}")
        # The time may be up even before the stream begins.
        while (reply := server.post(TEXT, story(ENDLESS, stream=True))).status == 504:
            expect_equal(reply.error["code"], "timeout", "code")
        events = reply.text.split("\n\n")
        expect_equal(json.loads(events[-2].removeprefix("data: "))["error"]["code"], "timeout", "last event")
        server.wait_for_metric("infer_kv_blocks_used", lambda n: n == 0)


def answers_in_full(i, server, n, ready):
    """Whether a request for n tokens, begun before the server was told to stop, got them all."""
    if i % 2:
        connection, response = server.open_stream(TEXT, story(n, stream_options={"include_usage": True}))
        ready.release()
        events = response.read().decode().split("\n\n")
        connection.close()
        return json.loads(events[-3].removeprefix("data: "))["usage"]["completion_tokens"] == n
    connection = server.connect()
    connection.request("POST", TEXT, json.dumps(story(n)).encode())
    ready.release()
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["usage"]["completion_tokens"] == n


@test_each("SIGTERM", "SIGINT")
def told_to_stop_under_load(name):
    """No accepted request is lost, no new ones are accepted, and the exit code is 0."""
    n = 12
    flags = ("-t", 1, "--parallel", 4, "--drain-timeout", PATIENCE)
    with Server(DEMO_TARGET, *flags) as server, concurrent.futures.ThreadPoolExecutor(n) as pool:
        kept = server.connect()
        server.get("/health", connection=kept)
        ready = threading.Semaphore(0)
        answers = [pool.submit(answers_in_full, i, server, 250, ready) for i in range(n)]
        for _ in range(n):
            ready.acquire()

        def n_accepted():  # some may have ended already
            metrics = server.metrics()
            return (metrics["infer_requests_running"] + metrics["infer_requests_waiting"]
                    + metrics.get('infer_finished_total{reason="max_tokens"}', 0))

        server.wait_until(lambda: n_accepted() == n)
        server.process.send_signal(getattr(signal, name))
        server.wait_until(lambda: "stopping" in server.log())
        try:
            late = server.post(TEXT, story(1))
            expect_equal(late.status, 503, "a late request")
        except OSError:
            pass
        expect_equal([answer.result() for answer in answers], [True] * n, "answers in full")
        expect_equal(server.process.wait(PATIENCE), 0, "exit code")


@test
def told_to_stop_twice_or_for_too_long():
    for flags, again in ((("--drain-timeout", 600), True), (("--drain-timeout", 0), False)):
        with Server(DEMO_TARGET, *SLOW, *flags) as server:
            connection, response = server.open_stream(TEXT, story(ENDLESS))
            server.process.send_signal(signal.SIGTERM)
            server.wait_until(lambda: "stopping" in server.log())
            if again:
                server.process.send_signal(signal.SIGTERM)
            events = response.read().decode().split("\n\n")
            connection.close()
            expect_equal(json.loads(events[-2].removeprefix("data: "))["error"]["code"], "stopping", "last event")
            expect_equal(server.process.wait(PATIENCE), 0, "exit code")


@test
def priority_goes_first():
    with Server(DEMO_TARGET, *SLOW, "--parallel", 1, "--max-priority", 1) as server, \
            concurrent.futures.ThreadPoolExecutor(2) as pool:
        running = server.open_stream(TEXT, story(ENDLESS))
        server.wait_for_metric("infer_requests_running", lambda n: n == 1)

        def ask(priority):
            answer = server.answer(TEXT, story(2, prompt="The mayor of Lindale. " * 10, priority=priority))
            return answer["usage"]["prompt_tokens_details"]["cached_tokens"]

        low = pool.submit(ask, -1)
        server.wait_for_metric("infer_requests_waiting", lambda n: n == 1)
        high = pool.submit(ask, 1)
        server.wait_for_metric("infer_requests_waiting", lambda n: n == 2)
        leave(*running)
        # The later of the two finds the prompt of the other in the cache.
        expect_equal(high.result(), 0, "cached tokens of the one that goes first")
        expect(low.result() > 0, "cached tokens of the other", low.result())


@test
def what_is_counted():
    with Server(DEMO_TARGET, "-t", 1, "--parallel", 4) as server:
        for i in range(3):
            server.answer(TEXT, story(10 + i, n=2))
        server.post(TEXT, {"prompt": 1})
        text = server.get("/metrics").text
        metrics = server.metrics()
    for line in text.splitlines():
        expect(re.fullmatch(r"# (HELP|TYPE) infer_\w+ .+|infer_\w+(\{\w+=\"[^\"]+\"(,\w+=\"[^\"]+\")*\})? \S+", line), "a line", line)
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    expect_equal(names, {line.split()[2] for line in text.splitlines() if line.startswith("# HELP")}, "names")
    for name, value in (("generated_tokens_total", 66), ("prompt_tokens_total", 12), ("requests_running", 0),
                        ("requests_waiting", 0), ("kv_blocks_used", 0), ("cancelled_requests_total", 0),
                        ("kv_group_blocks{group=\"0\",kind=\"full\",state=\"used\"}", 0),
                        ("kv_group_evictions_total{group=\"0\",kind=\"full\"}", 0),
                        ("finished_total{reason=\"max_tokens\"}", 6), ("responses_total{status=\"400\"}", 1),
                        ("time_to_first_token_seconds_count", 6), ("time_per_output_token_seconds_count", 6),
                        ("queue_time_seconds_count", 3), ("request_duration_seconds_count", 3),
                        ("prompt_length_tokens_sum", 12), ("output_length_tokens_sum", 66),
                        ("output_length_tokens_bucket{le=\"4\"}", 0), ("output_length_tokens_bucket{le=\"16\"}", 6),
                        ("backend_fallbacks_total", 0), ("preemptions_total", 0)):
        expect_equal(metrics["infer_" + name], value, name)
    expect_equal(metrics["infer_kv_blocks_total"],
                 metrics["infer_kv_blocks_used"] + metrics["infer_kv_blocks_cached"] + metrics["infer_kv_blocks_free"],
                 "blocks")
    expect_equal(metrics["infer_step_batch_size_count"], metrics["infer_steps_total"], "steps")
    for name in (n for n in names if f"{n}_count" in metrics):
        buckets = [value for key, value in metrics.items() if key.startswith(name + "_bucket")]
        expect(buckets == sorted(buckets) and buckets[-1] == metrics[f"{name}_count"], f"buckets of {name}", buckets)


main()
