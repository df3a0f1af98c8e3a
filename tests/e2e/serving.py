"""A running `infer serve` and a client for it; uses only Python's standard library."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import threading

from harness import PATIENCE, Background, Failure, expect_equal, pauses

# For tests that need a request which is still running later on: with these flags, this many tokens take minutes,
# however long the test has to wait for a processor. Nobody waits for their end: the client leaves.
SLOW, ENDLESS = ("--device", "ref", "-c", 16384), 16000

SECONDS = PATIENCE  # without a byte or, while a whole answer is pending, without a step of the server


class Reply:
    """A whole response: status, headers (names in lower case), text; `json` and `error` parse it."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode("utf-8")

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def error(self):
        return self.json["error"]

    def __str__(self):
        return f"{self.status} {self.headers}\n{self.text[:2000]}"


class Server(Background):
    """`infer serve` on a free port of 127.0.0.1, ready to answer inside the `with` block. `headers` are sent with each
    request of `ask`, in addition to its own."""

    def __init__(self, model, *arguments, env=None, headers=None, tls=None):
        super().__init__("serve", "-m", model, "--port", 0, *arguments, env=env)
        self.headers = headers or {}
        self.tls = tls
        self.port = 0

    def __enter__(self):
        super().__enter__()
        try:
            self.wait_until(lambda: re.search(r"url=\S+:(\d+)\s", self.log()) or '"url":' in self.log())
            self.port = int(re.search(r'url"?[=:]\S+?:(\d+)["\s]', self.log())[1])
            self.wait_until(lambda: self.get("/health").status == 200)
        except BaseException:
            super().__exit__()
            raise
        return self

    @contextlib.contextmanager
    def paused(self):
        """The server does not run inside the `with` block; the system accepts connections and data for it."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def connect(self, timeout=SECONDS):
        if self.tls:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Sends `body` (an object as JSON, or bytes unchanged) and returns the Reply."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        one = connection or self.connect()
        try:
            one.request(method, path, data, {**self.headers, **(headers or {})})
            return Reply(one.getresponse())
        finally:
            if connection is None:
                one.close()

    def get(self, path, **how):
        return self.ask("GET", path, **how)

    def post(self, path, body, **how):
        return self.ask("POST", path, body, **how)

    def patiently(self, connection, receive):
        """The result of receive() for a request that was sent. It may take as long as the server keeps computing steps:
        on a busy machine an answer that waits for many others may take minutes."""
        one, ended, stuck = connection.sock, threading.Event(), []

        def watch():
            before = None
            while not ended.wait(SECONDS):
                try:
                    steps = self.metrics()["infer_steps_total"]
                except (OSError, http.client.HTTPException):
                    steps = before
                if steps == before:
                    stuck.append(steps)
                    one.shutdown(socket.SHUT_RDWR)
                    return
                before = steps

        one.settimeout(None)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            return receive()
        except (OSError, http.client.HTTPException) as error:
            if stuck:
                raise Failure(f"no answer, and no step for {SECONDS} s after {stuck[0]}: {self.log()[-2000:]}") from error
            raise
        finally:
            ended.set()
            watcher.join()
            if one.fileno() >= 0:  # whatever else is read from it
                one.settimeout(SECONDS)

    def answer(self, path, body):
        """The JSON of a request that succeeds."""
        connection = self.connect()
        try:
            connection.request("POST", path, json.dumps(body).encode(), self.headers)
            reply = self.patiently(connection, lambda: Reply(connection.getresponse()))
        finally:
            connection.close()
        if reply.status != 200:
            raise Failure(f"{path} {body}: {reply}")
        return reply.json

    def chat(self, text, **fields):
        return self.answer("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **fields})

    def complete(self, prompt, **fields):
        return self.answer("/v1/completions", {"prompt": prompt, **fields})

    def open_stream(self, path, body):
        """(connection, response) for a streamed request, after the response's head has arrived."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}).encode(), self.headers)
        response = self.patiently(connection, connection.getresponse)
        if response.status != 200:
            raise Failure(f"{path} {body}: {Reply(response)}")
        return connection, response

    def stream(self, path, body):
        """The chunks of a streamed answer, which must end as such streams do."""
        connection, response = self.open_stream(path, body)
        try:
            expect_equal(response.getheader("content-type"), "text/event-stream", "content type")
            events = self.patiently(connection, response.read).decode("utf-8").split("\n\n")
        finally:
            connection.close()
        expect_equal(events[-2:], ["data: [DONE]", ""], "end of the stream")
        for event in events[:-2]:
            if not event.startswith("data: ") or "\n" in event:
                raise Failure(f"no event: {event!r}")
        return [json.loads(event[len("data: "):]) for event in events[:-2]]

    def raw(self, data, timeout=SECONDS):
        """The server's reply to these bytes, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as one:
            one.sendall(data)
            received = b""
            while chunk := one.recv(65536):
                received += chunk
        return received.decode("utf-8", "replace")

    def metrics(self):
        """{name or name{labels}: value}"""
        lines = [line for line in self.get("/metrics").text.splitlines() if line and not line.startswith("#")]
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines}

    def wait_for_metric(self, name, wanted, timeout=PATIENCE):
        """Polls until `wanted(value)` holds."""
        for _ in pauses(timeout, 0.02):
            if wanted(value := self.metrics()[name]):
                return
        raise Failure(f"{name} is {value} after {timeout} s\n{self.log()[-2000:]}")


def leave(connection, response):
    """Closes the connection like a client that disconnects."""
    connection.sock.close()
    response.close()


def text_of(chunks, index=0):
    """The content of one choice of streamed chat or text."""
    pieces = []
    for chunk in chunks:
        for choice in chunk["choices"]:
            if choice["index"] == index:
                pieces.append(choice["text"] if "text" in choice else choice["delta"].get("content", ""))
    return "".join(pieces)
