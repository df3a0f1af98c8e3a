"""Requests that `infer serve` refuses: each gets one clear error in OpenAI's form, and the server keeps running."""

import json
import socket
import tempfile
import time

from harness import PATIENCE, expect, expect_equal, main, run, test, test_each
from models import DEMO_TARGET, SPM
from serving import Server

CHAT, TEXT, EMBED = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
LIMITS = ("--max-body", 200000, "--max-head", 4096, "--read-timeout", PATIENCE, "--max-connections", 40)
SERVER = Server(DEMO_TARGET, "-t", 1, *LIMITS)


def chat(**fields):
    return {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, **fields}


def text(**fields):
    return {"prompt": "Once", "max_tokens": 1, **fields}


def message(content, role="user"):
    return {"messages": [{"role": role, "content": content}], "max_tokens": 1}


def expect_error(reply, status, param=None, code=None, *needles):
    expect_equal(reply.status, status, f"status of {reply}")
    error = reply.error
    expect_equal(sorted(error), ["code", "message", "param", "type"], "members of the error")
    expect_equal(error["param"], param, f"parameter of {error}")
    if code:
        expect_equal(error["code"], code, f"code of {error}")
    for needle in (param, *needles):
        expect(needle is None or needle in error["message"], f"the message names {needle!r}", error)


# Path, parameter named in the error, bodies with a wrong value for it.
WRONG = {
    "temperature": (CHAT, [chat(temperature=v) for v in (-1, 101, "1", True, [], {})]),
    "top_p": (CHAT, [chat(top_p=v) for v in (-0.1, 1.1, "x")]),
    "top_k": (CHAT, [chat(top_k=v) for v in (-2, 1.5, "x", 2**40, 2**70)]),
    "min_p": (TEXT, [text(min_p=v) for v in (-0.1, 2)]),
    "seed": (TEXT, [text(seed=v) for v in (1.5, "1", 2**64, [])]),
    "presence_penalty": (CHAT, [chat(presence_penalty=v) for v in (-2.1, 2.1, "x")]),
    "frequency_penalty": (CHAT, [chat(frequency_penalty=v) for v in (-2.1, 2.1, False)]),
    "repetition_penalty": (CHAT, [chat(repetition_penalty=v) for v in (0, -1, 1e9)]),
    "mirostat": (TEXT, [text(mirostat=v) for v in (1, 3, -1)]),
    "n": (CHAT, [chat(n=v) for v in (0, -1, 17, 1.5, "1", 2**62)]),
    "max_tokens": (CHAT, [chat(max_tokens=v) for v in (0, -2, 1.5, "1", 2**31)]),
    "max_completion_tokens": (CHAT, [chat(max_completion_tokens=v) for v in (0, 2**40)]),
    "stop": (CHAT, [chat(stop=v) for v in ("", [""], ["a"] * 129, 5, [5], ["x" * 257], {})]),
    "logit_bias": (CHAT, [chat(logit_bias=v) for v in ({"": 1}, {"-1": 1}, {"2048": 1}, {"1": 101}, {"1": "a"}, [1],
                                                       {"1": True}, {str(i): 0 for i in range(1025)})]),
    "logprobs": (TEXT, [text(logprobs=v) for v in (21, -1, 1.5, "1")]),
    "top_logprobs": (CHAT, [chat(top_logprobs=v, logprobs=True) for v in (21, -1, "1")] + [chat(top_logprobs=1)]),
    "stream": (CHAT, [chat(stream=v) for v in ("true", 1)]),
    "stream_options": (CHAT, [chat(stream_options={"include_usage": True}), chat(stream=True, stream_options=1)]),
    "stream_options.include_usage": (CHAT, [chat(stream=True, stream_options={"include_usage": 1})]),
    "samplers": (CHAT, [chat(samplers=v) for v in (["infill"], "kz", [5], 5)]),
    "stop_token_ids": (CHAT, [chat(stop_token_ids=v) for v in ([2048], [-1], ["a"], 5)]),
    "n_predict": (TEXT, [text(n_predict=v) for v in (-2, 1.5, "1")]),
    "cache_prompt": (TEXT, [text(cache_prompt=v) for v in (0, "no")]),
    "tool_choice": (CHAT, [chat(tool_choice=v) for v in ("required", {"type": "function"}, 1)]),
    "tools": (CHAT, [chat(tools=v) for v in ("x", [1], {})]),
    "priority": (CHAT, [chat(priority=v) for v in (101, -101, "1", 1)]),
    "cache_salt": (CHAT, [chat(cache_salt=v) for v in (1, "x" * 257)]),
    "model": (CHAT, [chat(model=1)]),
    "user": (TEXT, [text(user={})]),
    "chat_template_kwargs": (CHAT, [chat(chat_template_kwargs=v) for v in ("x", [1])]),
    "messages": (CHAT, [{}, {"messages": []}, {"messages": "x"}, {"messages": None}]),
    "messages[0]": (CHAT, [{"messages": ["x"]}]),
    "messages[0].role": (CHAT, [message("x", role=v) for v in ("robot", 1, None)]),
    "messages[0].content": (CHAT, [message(v) for v in (1, None, {})]),
    "messages[0].content[0]": (CHAT, [message(["x"])]),
    "messages[0].content[1].type": (CHAT, [message([{"type": "text", "text": "x"}, {"type": "image_url"}])]),
    "messages[0].content[0].text": (CHAT, [message([{"type": "text"}])]),
    "prompt": (TEXT, [{}, {"prompt": []}, {"prompt": [[]]}, {"prompt": [1, "x"]}, {"prompt": ["x", 1]}, {"prompt": 5},
                      {"prompt": [2048]}, {"prompt": [-1]}, {"prompt": [1.5]}, {"prompt": ["a"] * 17},
                      {"prompt": ["a"] * 9, "n": 2}]),
    "suffix": (TEXT, [text(suffix="x"), text(suffix=1)]),
    "best_of": (TEXT, [text(best_of=2)]),
    "echo": (TEXT, [text(echo="yes")]),
    "input": (EMBED, [{}, {"input": []}, {"input": ["a"] * 2049}, {"input": [[99999]]}, {"input": 1}, {"input": ""}]),
    "dimensions": (EMBED, [{"input": "x", "dimensions": v} for v in (0, 257, "256")]),
    "encoding_format": (EMBED, [{"input": "x", "encoding_format": "hex"}]),
    "pooling": (EMBED, [{"input": "x", "pooling": "max"}]),
    "content": ("/tokenize", [{}, {"content": 1}]),
    "tokens": ("/detokenize", [{}, {"tokens": "x"}, {"tokens": [2048]}, {"tokens": [-1]}, {"tokens": [[1]]}]),
}


@test_each(*WRONG)
def wrong_value_of(param):
    path, bodies = WRONG[param]
    for body in bodies:
        expect_error(SERVER.post(path, body), 400, param)


# What other servers of this protocol implement and this one does not: a value that requests it, and one that does not.
UNSUPPORTED = {
    "structural_tag": ("x", None), "guided_whitespace_pattern": (" ", None), "min_tokens": (3, 0), "include_stop_str_in_output": (True, False),
    "skip_special_tokens": (False, True), "truncate_prompt_tokens": (5, None), "best_of": (2, 1),
    "length_penalty": (0.5, 1.0), "use_beam_search": (True, False), "n_probs": (3, 0), "id_slot": (0, -1),
    "lora": ([{"id": 0, "scale": 1}], []), "service_tier": ("flex", "auto"),
}


@test_each(*UNSUPPORTED)
def unsupported_parameter(name):
    asking, neutral = UNSUPPORTED[name]
    for path, body in ((CHAT, chat()), (TEXT, text())):
        expect_error(SERVER.post(path, {**body, name: asking}), 400, name, "unsupported_parameter")
        expect_equal(SERVER.post(path, {**body, name: neutral}).status, 200, f"{name} that asks for nothing")


@test
def invalid_json():
    bodies = (b"", b"nonsense", b"[]", b"3", b'"x"', b'{"prompt": "a"', b'{"prompt": "a"}{}', b'{"a": 1e999}',
              b"\xff\xfe", b'{"prompt": "\xff"}', b"{" * 50, b"[" * 100000, b'{"a":' * 10000, b'{"prompt": NaN}', b"\0")
    for body in bodies:
        expect_error(SERVER.post(TEXT, body), 400, None, "invalid_json")


def expect_too_long(reply, param, n_tokens, message):
    error = reply.error
    expect_equal((reply.status, error["code"], error["param"]), (400, "context_length_exceeded", param), f"{error}")
    expect_equal((error["n_prompt_tokens"], error["n_ctx"]), (n_tokens, 1024), f"numbers of {error}")
    expect_equal(error["message"], message, "message")


@test
def prompts_that_do_not_fit():
    tokens = [5] * 1023
    expect_equal(SERVER.post(TEXT, text(prompt=tokens)).status, 200, "a prompt that leaves room for one token")
    way_out = "Shorten the prompt or raise the server's context with -c."
    expect_too_long(SERVER.post(TEXT, text(prompt=tokens + [5])), "prompt", 1024,
                    f"The prompt needs 1,025 tokens including one for the answer; the context holds 1,024. {way_out}")
    expect_equal(SERVER.post(TEXT, text(prompt=tokens + [5], max_tokens=0)).status, 200, "a prompt without an answer")
    expect_too_long(SERVER.post(TEXT, text(prompt=[5] * 28935, max_tokens=0)), "prompt", 28935,
                    f"The prompt needs 28,935 tokens; the context holds 1,024. {way_out}")
    long = "Once upon a time " * 600
    n = len(SERVER.post("/tokenize", {"content": long, "add_special": True}).json["tokens"])
    expect_too_long(SERVER.post(EMBED, {"input": ["x", long]}), "input", n,
                    f"The input needs {n:,} tokens; the context holds 1,024. "
                    "Shorten the input or raise the server's context with -c.")
    error = SERVER.post(CHAT, message(long)).error
    expect_equal((error["code"], error["param"]), ("context_length_exceeded", "messages"), "a conversation")
    expect(error["message"].startswith(f"The conversation needs {error['n_prompt_tokens'] + 1:,} tokens"), "message",
           error)


@test
def prompts_that_do_not_fit_the_cache():
    with Server(DEMO_TARGET, "--kv-tokens", 64, "-c", 1024) as server:
        error = server.post(TEXT, text(prompt=[5] * 100)).error
    expect_equal(error["n_ctx"], 64, "tokens of the cache")
    expect(error["message"].endswith("raise the server's --kv-tokens."), "message", error)


@test
def routes_that_are_not_there():
    expect_error(SERVER.get("/nowhere"), 404)
    expect_error(SERVER.post("/v1/chat", chat()), 404)
    expect_error(SERVER.get(CHAT), 405)
    expect_error(SERVER.post("/health", {}), 405)
    expect_error(SERVER.ask("DELETE", "/health"), 405)
    expect_error(SERVER.get("/" + "x" * 3000), 404)
    expect_error(SERVER.post(TEXT, b"--x", headers={"Content-Type": "multipart/form-data; boundary=x"}), 415)


@test
def bodies_and_heads_that_are_too_large():
    large = json.dumps(text(prompt="a" * 300000)).encode()
    expect_error(SERVER.post(TEXT, large), 413, None, None, "200,000")
    chunks = b"".join(b"2000\r\n" + b"a" * 0x2000 + b"\r\n" for _ in range(40)) + b"0\r\n\r\n"
    head = f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    expect(SERVER.raw(head + chunks).startswith("HTTP/1.1 413 "), "a chunked body that is too large")
    expect_error(SERVER.get("/health", headers={"X-Long": "a" * 5000}), 431)
    expect_error(SERVER.get("/health", headers={f"X-{i}": "a" for i in range(200)}), 431)
    expect_error(SERVER.get("/" + "x" * 6000), 431)


@test
def heads_that_are_not_http():
    end = "\r\n\r\n"
    for head, status in ((f"nonsense{end}", 400), (f"GET /health{end}", 400), (f"GET /health HTTP/1.1{end}", 400),
                         (f"GET /health HTTP/2.0\r\nHost: localhost{end}", 505),
                         (f"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost{end}", 400),
                         (f"GET /health HTTP/1.1\r\nHost: localhost\r\n folded: x{end}", 400),
                         (f"GET /health HTTP/1.1\r\nHost: localhost\r\nno colon{end}", 400),
                         (f"GET http://localhost/health HTTP/1.1\r\nHost: localhost{end}", 400),
                         (f"BREW /health HTTP/1.1\r\nHost: localhost{end}", 405),
                         (f"POST {TEXT} HTTP/1.1\r\nHost: localhost{end}", 411),
                         (f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: x{end}", 400),
                         (f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1{end}", 400),
                         (f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999{end}", 400),
                         (f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                          f"Content-Length: 6{end}", 400),
                         (f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                          f"Transfer-Encoding: chunked{end}", 400),
                         (f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip{end}", 501)):
        said = SERVER.raw(head.encode())
        expect(said.startswith(f"HTTP/1.1 {status} "), f"{head!r} is {status}", said)
        expect("error" in json.loads(said.split(end)[1]), "an error in the body", said)


@test
def slow_senders_are_dropped():
    """A head or a body that does not arrive in time: slowly, byte by byte, or not at all."""
    head = f"POST {TEXT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n".encode()
    with Server(DEMO_TARGET, "-t", 1, "--read-timeout", 1) as server:
        for data, slowly in ((b"GET /he", False), (head + b"\r\n{", False), (head, True)):
            with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as slow:
                slow.sendall(data)
                received = b""
                slow.settimeout(0.1 if slowly else PATIENCE)
                deadline = time.monotonic() + PATIENCE
                while time.monotonic() < deadline:
                    try:
                        if slowly:
                            slow.sendall(b"X")
                        chunk = slow.recv(4096)
                        if not chunk:
                            break
                        received += chunk
                    except TimeoutError:
                        continue
                    except OSError:
                        break
                expect(time.monotonic() < deadline, "the connection ends")
                expect(received == b"" or received.split()[1] in (b"408", b"400"), "an error", received)


@test
def connections_beyond_the_limit():
    """Connections without a request are dropped first; serve_wire_test has the rest."""
    idle = [socket.create_connection(("127.0.0.1", SERVER.port), timeout=PATIENCE) for _ in range(40)]
    try:
        said = SERVER.raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        expect(said.startswith("HTTP/1.1 200 "), "an answer", said)
        expect_equal(idle[0].recv(10), b"", "the oldest connection")
    finally:
        for one in idle:
            one.close()


@test
def connections_are_kept_and_pipelined():
    one = SERVER.connect()
    for body, status in ((text(), 200), (text(n=0), 400), (text(), 200)):
        expect_equal(SERVER.post(TEXT, body, connection=one).status, status, "status on a kept connection")
    port = one.sock.getsockname()[1]
    expect_equal(SERVER.get("/health", connection=one).status, 200, "health")
    expect_equal(one.sock.getsockname()[1], port, "the connection is the same")
    one.close()
    request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    expect_equal(SERVER.raw(request * 4 + last).count("HTTP/1.1 200 "), 5, "answers to five requests at once")


@test
def results_that_are_not_numbers():
    """A model with damaged weights fails its requests, with any number of choices, and nothing else."""
    inspected = json.loads(run("inspect", SPM, "--json").out)
    at = next(t["file_offset"] for t in inspected["tensors"] if t["name"] == "blk.1.ffn_up.weight")
    content = bytearray(SPM.read_bytes())
    content[at:at + 4] = b"\x00\x00\xc0\x7f"
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(content)
        file.flush()
        with Server(file.name, "-t", 1) as server:
            for n in (1, 3, 1):
                expect_error(server.post(TEXT, text(n=n)), 500, None, "engine_error", "inspect --verify")
            expect_equal(server.get("/health").status, 200, "health")
            expect_equal(server.metrics()["infer_kv_blocks_used"], 0, "blocks in use")


@test
def still_serves_after_all_that():
    expect_equal(SERVER.complete("Once", max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"], 2, "tokens")
    metrics = SERVER.metrics()
    expect(metrics['infer_responses_total{status="400"}'] > 0, "errors are counted")
    expect_equal(metrics["infer_kv_blocks_used"], 0, "blocks in use")


if __name__ == "__main__":
    with SERVER:
        main()
