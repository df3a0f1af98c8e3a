"""The routes of `infer serve`: their answers, which equal those of `infer run`."""

import base64
import json
import math
import pathlib
import struct
import tempfile

from harness import expect, expect_equal, main, run, test
from models import BPE, DEMO_TARGET, SPM, succeeded
from serving import Server, text_of

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
QUESTION = "Where is Lindale?"


def run_text(prompt, *flags):
    """The completion that `infer run` writes."""
    return succeeded(run("run", "-m", DEMO_TARGET, "--raw", "--quiet", "-p", prompt, *flags)).out


def run_chat(message, *flags):
    """The answer that `infer run` writes, without the end of its line."""
    return succeeded(run("run", "-m", DEMO_TARGET, "--quiet", "-p", message, *flags)).out.removesuffix("\n")


def question(**fields):
    return {"messages": [{"role": "user", "content": QUESTION}], **fields}


SERVER = Server(DEMO_TARGET, "-t", 1)


@test
def health_and_models():
    expect_equal(SERVER.get("/health").json, {"status": "ok"}, "health")
    models = SERVER.get("/v1/models").json
    expect_equal((models["object"], len(models["data"])), ("list", 1), "models")
    name = models["data"][0]["id"]
    expect_equal(name, DEMO_TARGET.stem, "name")
    expect_equal(SERVER.get(f"/v1/models/{name}").json, models["data"][0], "one model")
    expect_equal(SERVER.get("/v1/models/other").status, 404, "another model")
    expect_equal(SERVER.ask("HEAD", "/health").status, 200, "HEAD")


@test
def version_reports_model_and_flags():
    version = SERVER.get("/version").json
    expect_equal((version["model"], version["quantization"], version["architecture"]),
                 (DEMO_TARGET.stem, "Q8_0", "qwen3"), "model")
    expect(len(version["fingerprint"]) == 16 and int(version["fingerprint"], 16), "a fingerprint", version)
    expect_equal(version["flags"]["threads"], "1", "flag")
    expect_equal(succeeded(run("--version")).out, f"infer {version['version']}\n", "version")


@test
def chat_is_what_run_says():
    for fields, flags in (({"temperature": 0}, ("--temp", 0)), ({"seed": 5}, ("--seed", 5)),
                          ({"seed": 6, "temperature": 1.3, "top_k": 0, "top_p": 1, "min_p": 0},
                           ("--seed", 6, "--temp", 1.3, "--top-k", 0, "--top-p", 1, "--min-p", 0))):
        answer = SERVER.chat(QUESTION, max_tokens=40, **fields)
        choice = answer["choices"][0]
        expect_equal(answer["object"], "chat.completion", "object")
        expect_equal(choice["message"]["role"], "assistant", "role")
        expect_equal(choice["message"]["content"], run_chat(QUESTION, "-n", 40, *flags), f"answer of {fields}")
        expect(choice["finish_reason"] in ("stop", "length"), "finish reason", answer)
        usage = answer["usage"]
        expect_equal(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"], "total")


@test
def completions_are_what_run_says():
    for n, fields, flags in ((24, {"temperature": 0}, ("--temp", 0)), (24, {"seed": 9}, ("--seed", 9)),
                             (200, {"temperature": 0, "repetition_penalty": 1.2, "presence_penalty": 0.5},
                              ("--temp", 0, "--repeat-penalty", 1.2, "--presence-penalty", 0.5))):
        answer = SERVER.complete("Once upon a time", max_tokens=n, **fields)
        expect_equal(answer["choices"][0]["text"], run_text("Once upon a time", "-n", n, *flags), f"text of {fields}")


@test
def finish_reasons():
    long = SERVER.complete("Once upon a time", max_tokens=3, ignore_eos=True)
    expect_equal((long["choices"][0]["finish_reason"], long["usage"]["completion_tokens"]), ("length", 3), "length")
    ended = SERVER.chat(QUESTION, temperature=0, max_tokens=500)
    expect_equal(ended["choices"][0]["finish_reason"], "stop", "stop")
    full = SERVER.complete("Once upon a time", ignore_eos=True, max_tokens=5000)
    expect_equal(full["choices"][0]["finish_reason"], "length", "context full")
    expect_equal(full["usage"]["total_tokens"], 1024, "tokens of a full context")


@test
def streams_say_the_same():
    whole = SERVER.chat(QUESTION, temperature=0, max_tokens=30)
    chunks = SERVER.stream(CHAT, question(temperature=0, max_tokens=30, stream_options={"include_usage": True}))
    expect_equal(text_of(chunks), whole["choices"][0]["message"]["content"], "text")
    expect_equal(chunks[0]["choices"][0]["delta"], {"role": "assistant", "content": ""}, "first chunk")
    expect_equal({c["object"] for c in chunks}, {"chat.completion.chunk"}, "objects")
    expect_equal(len({c["id"] for c in chunks}), 1, "ids")
    reasons = [c["choices"][0]["finish_reason"] for c in chunks[:-1]]
    expect_equal(reasons, [None] * (len(reasons) - 1) + [whole["choices"][0]["finish_reason"]], "finish reasons")
    usage = chunks[-1]["usage"]
    expect_equal(chunks[-1]["choices"], [], "choices of the last chunk")
    expect_equal(usage["completion_tokens"], whole["usage"]["completion_tokens"], "usage")
    expect(all(c["usage"] is None for c in chunks[:-1]), "usage before the end is null")
    without = SERVER.stream(CHAT, question(temperature=0, max_tokens=5))
    expect("usage" not in without[-1], "no usage unless asked for", without[-1])

    whole = SERVER.complete("Once upon", temperature=0, max_tokens=30, echo=True)
    chunks = SERVER.stream(TEXT, {"prompt": "Once upon", "temperature": 0, "max_tokens": 30, "echo": True})
    expect_equal(text_of(chunks), whole["choices"][0]["text"], "text")


@test
def stop_strings_across_tokens():
    text = run_text("Once upon a time", "-n", 40, "--temp", 0)
    stop = text[10:14]  # independent of token boundaries
    at = text.index(stop)
    fields = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 40, "stop": ["nowhere", stop]}
    choice = SERVER.answer(TEXT, fields)["choices"][0]
    expect_equal((choice["text"], choice["finish_reason"]), (text[:at], "stop"), "stopped text")
    chunks = SERVER.stream(TEXT, fields)
    expect_equal((text_of(chunks), chunks[-1]["choices"][0]["finish_reason"]), (text[:at], "stop"), "stopped stream")
    one = SERVER.complete("Once upon a time", temperature=0, max_tokens=40, stop=stop)
    expect_equal(one["choices"][0]["text"], text[:at], "one stop string")


@test
def several_choices():
    answer = SERVER.complete("Once upon a time", n=3, seed=20, max_tokens=24)
    texts = {c["index"]: c["text"] for c in answer["choices"]}
    expected = {i: run_text("Once upon a time", "-n", 24, "--seed", 20 + i) for i in range(3)}
    expect_equal(texts, expected, "texts of seed, seed + 1, seed + 2")
    expect_equal(answer["usage"]["prompt_tokens"], 4, "the prompt counts once")
    chunks = SERVER.stream(TEXT, {"prompt": "Once upon a time", "n": 3, "seed": 20, "max_tokens": 24})
    expect_equal({i: text_of(chunks, i) for i in range(3)}, expected, "streamed texts")
    chunks = SERVER.stream(CHAT, question(n=2, seed=3, max_tokens=16))
    expect_equal([text_of(chunks, i) for i in range(2)],
                 [run_chat(QUESTION, "-n", 16, "--seed", 3 + i) for i in range(2)], "streamed answers")


@test
def several_prompts():
    prompts = ["Once upon a time", "The mayor of"]
    answer = SERVER.complete(prompts, n=2, seed=1, max_tokens=12)
    expected = [run_text(p, "-n", 12, "--seed", 1 + i) for p in prompts for i in range(2)]
    expect_equal([c["text"] for c in answer["choices"]], expected, "texts")
    tokens = [SERVER.answer("/tokenize", {"content": p})["tokens"] for p in prompts]
    again = SERVER.complete(tokens, n=2, seed=1, max_tokens=12)
    expect_equal([c["text"] for c in again["choices"]], expected, "texts of token ids")
    single = SERVER.complete(tokens[0], seed=1, max_tokens=12)
    expect_equal(single["choices"][0]["text"], expected[0], "text of one list of token ids")


def reference_logprobs(tokens):
    """[{token: log-probability}] after each token, from `infer logprobs`."""
    text = succeeded(run("logprobs", "-m", DEMO_TARGET, "--tokens", ",".join(map(str, tokens)), "--json", "--top",
                         100000)).out
    return [dict(entries) for entries in json.loads(text)["positions"]]


@test
def log_probabilities_of_chat():
    answer = SERVER.chat(QUESTION, temperature=0, max_tokens=12, logprobs=True, top_logprobs=3)
    prompt = SERVER.answer("/apply-template", question())["prompt"]
    content = answer["choices"][0]["logprobs"]["content"]
    expect_equal("".join(e["token"] for e in content), answer["choices"][0]["message"]["content"], "tokens")
    tokens = SERVER.answer("/tokenize", {"content": prompt})["tokens"]
    for entry in content:
        expected = reference_logprobs(tokens)[-1]
        best = sorted(expected.values(), reverse=True)[:3]
        expect_equal([t["logprob"] for t in entry["top_logprobs"]], best, "likeliest tokens")
        expect_equal(entry["logprob"], best[0], "log-probability of the greedy token")
        expect_equal(bytes(entry["bytes"]).decode(), entry["token"], "bytes")
        tokens.append(max(expected, key=expected.get))
    chunks = SERVER.stream(CHAT, question(temperature=0, max_tokens=12, logprobs=True, top_logprobs=3))
    streamed = [e for c in chunks if (p := c["choices"][0]["logprobs"]) for e in p["content"]]
    expect_equal(streamed, content, "streamed log-probabilities")
    none = SERVER.chat(QUESTION, temperature=0, max_tokens=2)
    expect_equal(none["choices"][0]["logprobs"], None, "log-probabilities nobody asked for")


@test
def log_probabilities_of_echoed_text():
    prompt = "Once upon a time there was"
    tokens = SERVER.answer("/tokenize", {"content": prompt})["tokens"]
    expected = [None] + [position[token] for position, token in zip(reference_logprobs(tokens), tokens[1:])]
    for max_tokens in (0, 2):
        choice = SERVER.complete(prompt, echo=True, logprobs=2, max_tokens=max_tokens, temperature=0)["choices"][0]
        found = choice["logprobs"]
        expect(choice["text"].startswith(prompt), "echo", choice)
        expect_equal("".join(found["tokens"]), choice["text"], "tokens")
        expect_equal(len(found["tokens"]), len(tokens) + max_tokens, "number of tokens")
        expect_equal(found["token_logprobs"][:len(tokens)], expected, "log-probabilities of the prompt")
        expect_equal(found["top_logprobs"][0], None, "nothing comes before the first token")
        expect(all(len(top) == 2 for top in found["top_logprobs"][1:]), "two likeliest tokens", found)
        expect_equal([choice["text"][o:].startswith(t) for o, t in zip(found["text_offset"], found["tokens"])],
                     [True] * len(found["tokens"]), "offsets")


@test
def an_echoed_prompt_with_log_probabilities_takes_as_few_steps_as_one_without():
    prompt = "Once upon a time there was a robot. " * 90
    steps = []
    for fields in ({}, {"echo": True, "logprobs": 2}):
        before = SERVER.metrics()["infer_steps_total"]
        usage = SERVER.complete(prompt, max_tokens=1, cache_salt="steps", **fields)["usage"]
        expect(usage["prompt_tokens"] > 600, "a long prompt", usage)
        steps.append(SERVER.metrics()["infer_steps_total"] - before)
    expect_equal(steps[1], steps[0], "steps")


@test
def text_parts_and_roles():
    parts = [{"type": "text", "text": "Where is"}, {"type": "text", "text": "Lindale?"}]
    body = {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": parts}]}
    prompt = SERVER.answer("/apply-template", body)["prompt"]
    joined = "Where is\nLindale?"
    plain = {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": joined}]}
    expect_equal(prompt, SERVER.answer("/apply-template", plain)["prompt"], "prompt")
    expect("Be brief." in prompt and joined in prompt, "texts", prompt)
    texts = [SERVER.answer(CHAT, {**b, "temperature": 0, "max_tokens": 12})["choices"] for b in (body, plain)]
    expect_equal(texts[0], texts[1], "answers")


@test
def text_to_tokens_and_back():
    for text in ("Grüße, 日本 🙂\n  x", "", "<|im_start|>user"):
        tokens = SERVER.answer("/tokenize", {"content": text})["tokens"]
        expected = json.loads(run("tokenize", "-m", DEMO_TARGET, "--json", "--no-add-special", text).out)["tokens"] \
            if text else []
        expect_equal(tokens, expected, f"tokens of {text!r}")
        expect_equal(SERVER.answer("/detokenize", {"tokens": tokens})["content"], text, "text")
        pieces = SERVER.answer("/tokenize", {"content": text, "with_pieces": True})["tokens"]
        expect_equal([p["id"] for p in pieces], tokens, "ids")
    plain = SERVER.answer("/tokenize", {"content": "<|im_start|>", "parse_special": False})["tokens"]
    special = SERVER.answer("/tokenize", {"content": "<|im_start|>"})["tokens"]
    expect(len(plain) > len(special) == 1, "control tokens in the text are text where that is asked for")


@test
def template_variables():
    body = question(chat_template_kwargs={"add_generation_prompt": False})
    expect(len(SERVER.answer("/apply-template", body)["prompt"]) <
           len(SERVER.answer("/apply-template", question())["prompt"]), "a variable that the template reads")
    begun = question()
    begun["messages"].append({"role": "assistant", "content": "Lindale lies"})
    prompt = SERVER.answer("/apply-template", {**begun, "continue_final_message": True})["prompt"]
    expect(prompt.endswith("Lindale lies"), "the last message is continued", prompt)


def begun_by(*texts):
    return question(messages=[*question()["messages"], *({"role": "assistant", "content": t} for t in texts)])


@test
def a_begun_answer_goes_on():
    opened = SERVER.answer("/apply-template", question())["prompt"]
    prompt = SERVER.answer("/apply-template", begun_by("Lindale lies"))["prompt"]
    expect_equal(prompt, opened + "Lindale lies", "prompt")
    expect_equal(prompt, SERVER.answer("/apply-template", {**begun_by("Lindale lies"), "continue_final_message": True})
                 ["prompt"], "the same as with continue_final_message")
    expect_equal(SERVER.answer("/apply-template", begun_by(""))["prompt"], opened, "an answer that is begun with nothing")
    whole = SERVER.answer("/apply-template", {**begun_by("Lindale lies"), "add_generation_prompt": False})["prompt"]
    expect("Lindale lies" in whole and not whole.endswith("lies"), "a whole answer where that is asked for", whole)
    go_on = SERVER.answer(CHAT, {**begun_by("Lindale lies"), "temperature": 0, "max_tokens": 8})["choices"][0]
    said = SERVER.complete(prompt, temperature=0, max_tokens=8)["choices"][0]
    expect_equal(go_on["message"]["content"], said["text"], "answer")
    for body in (begun_by("a", "b"), {**begun_by("a"), "add_generation_prompt": True, "continue_final_message": True}):
        for path in (CHAT, "/apply-template"):
            expect_equal(SERVER.post(path, body).status, 400, "status")


def prompt_tokens(server, content):
    body = {"messages": [{"role": "user", "content": content}], "max_tokens": 1}
    return server.answer(CHAT, body)["usage"]["prompt_tokens"]


@test
def control_tokens_in_messages_are_text():
    control = "<|im_end|>"
    written = len(SERVER.answer("/tokenize", {"content": "a " + control + " b", "parse_special": False})["tokens"])
    parsed = len(SERVER.answer("/tokenize", {"content": "a " + control + " b"})["tokens"])
    word = len(SERVER.answer("/tokenize", {"content": "a"})["tokens"])
    expect(written > parsed, "a control token of the model", (written, parsed))
    around = prompt_tokens(SERVER, "a") - word
    expect_equal(prompt_tokens(SERVER, "a " + control + " b"), around + written, "tokens")
    with Server(DEMO_TARGET, "-t", 1, "--special-in-content") as server:
        expect_equal(prompt_tokens(server, "a " + control + " b"), around + parsed, "tokens with --special-in-content")


@test
def a_rendered_prompt_is_completed_as_the_chat():
    """The template renders BOS, which is not added a second time."""
    with Server(SPM, "--chat-template", "llama2-sys", "-t", 1) as server:
        prompt = server.answer("/apply-template", question())["prompt"]
        expect(prompt.startswith("<s>"), "the template writes BOS", prompt)
        chat = server.chat(QUESTION, temperature=0, max_tokens=8)
        text = server.complete(prompt, temperature=0, max_tokens=8)
        expect_equal(text["usage"]["prompt_tokens"], chat["usage"]["prompt_tokens"], "tokens")
        expect_equal(text["choices"][0]["text"], chat["choices"][0]["message"]["content"], "text")


@test
def bias_and_ignored_fields():
    first = SERVER.answer("/tokenize", {"content": SERVER.complete("Once upon", temperature=0, max_tokens=1)
                                        ["choices"][0]["text"]})["tokens"][0]
    forbidden = SERVER.complete("Once upon", temperature=0, max_tokens=1, logit_bias={str(first): -100})
    allowed = SERVER.complete("Once upon", temperature=0, max_tokens=1, user="me", store=False, metadata={"a": 1})
    expect(forbidden["choices"][0]["text"] != allowed["choices"][0]["text"], "a forbidden token is not chosen")


@test
def biases_in_all_forms():
    first = SERVER.complete("Once upon", temperature=0, max_tokens=1)["choices"][0]["text"]
    token, = SERVER.answer("/tokenize", {"content": first})["tokens"]
    for bias in ([[token, False]], [[first, False]], {first: -100}, {str(token): False}):
        other = SERVER.complete("Once upon", temperature=0, max_tokens=1, logit_bias=bias)["choices"][0]["text"]
        expect(other != first, f"{bias} forbids {first!r}", other)


@test
def answers_without_a_limit():
    """They end by themselves, or at the end of the context."""
    for fields in ({}, {"max_tokens": -1}, {"n_predict": -1}):
        full = SERVER.complete("Once upon a time", temperature=0, ignore_eos=True, **fields)
        expect_equal(full["usage"]["total_tokens"], 1024, f"tokens with {fields}")
    expect_equal(SERVER.complete("Once", n_predict=3, ignore_eos=True)["usage"]["completion_tokens"], 3, "n_predict")
    answer = SERVER.complete("Once", max_tokens=3.0, n=1.0, ignore_eos=True)
    expect_equal(answer["usage"]["completion_tokens"], 3, "3.0")


@test
def prompts_that_are_not_looked_up():
    body = question(temperature=0, max_tokens=4, cache_salt="looked up")
    body["messages"][0]["content"] = "Once upon a time there was a town. " * 8
    SERVER.answer(CHAT, body)
    cached = [SERVER.answer(CHAT, {**body, "cache_prompt": flag}) for flag in (False, True)]
    tokens = [answer["usage"]["prompt_tokens_details"]["cached_tokens"] for answer in cached]
    expect(tokens[0] == 0 < tokens[1], "nothing comes from the cache where that is asked for", tokens)
    expect_equal(cached[0]["choices"], cached[1]["choices"], "answers")


@test
def tokens_that_end_an_answer():
    whole = SERVER.complete("Once upon a time", temperature=0, max_tokens=20)["choices"][0]["text"]
    tokens = SERVER.answer("/tokenize", {"content": whole})["tokens"]
    end = next(i for i, token in enumerate(tokens) if i > 2 and token not in tokens[:i])
    choice = SERVER.complete("Once upon a time", temperature=0, max_tokens=20,
                             stop_token_ids=[tokens[end]])["choices"][0]
    expect_equal((choice["text"], choice["finish_reason"]),
                 (SERVER.answer("/detokenize", {"tokens": tokens[:end]})["content"], "stop"), "text before the token")


@test
def samplers_by_name():
    """A chain of one sampler equals switching off all others."""
    off = {"top_k": 0, "top_p": 1, "min_p": 0, "seed": 4, "max_tokens": 20}
    plain = SERVER.complete("Once upon", temperature=1.5, **off)
    named = SERVER.complete("Once upon", temperature=1.5, samplers=["temperature"], seed=4, max_tokens=20)
    expect_equal(named["choices"], plain["choices"], "text")


@test
def many_stop_strings():
    text = SERVER.complete("Once upon a time", temperature=0, max_tokens=40)["choices"][0]["text"]
    stops = [f"nowhere {i}" for i in range(31)] + [text[10:14]]
    choice = SERVER.complete("Once upon a time", temperature=0, max_tokens=40, stop=stops)["choices"][0]
    expect_equal(choice["text"], text[:text.index(text[10:14])], "text")


@test
def embeddings():
    texts = ["The mayor of Lindale", "Where is Lindale?", "x"]
    for pooling in ("mean", "last", "cls"):
        answer = SERVER.answer("/v1/embeddings", {"input": texts, "pooling": pooling})
        vectors = [entry["embedding"] for entry in answer["data"]]
        expect_equal([len(v) for v in vectors], [256] * 3, "dimensions")
        expect(all(abs(math.hypot(*v) - 1) < 1e-6 for v in vectors), "unit length", pooling)
        expect(vectors[0] != vectors[1], "other texts, other vectors")
        tokens = [SERVER.answer("/tokenize", {"content": t, "add_special": True})["tokens"] for t in texts]
        expect_equal(answer["usage"]["prompt_tokens"], sum(map(len, tokens)), "tokens")
        alone = SERVER.answer("/v1/embeddings", {"input": tokens[1], "pooling": pooling, "encoding_format": "base64"})
        numbers = struct.unpack("<256f", base64.b64decode(alone["data"][0]["embedding"]))
        expect_equal([struct.pack("<f", x) for x in vectors[1]], [struct.pack("<f", x) for x in numbers], "bits")
    default = SERVER.answer("/v1/embeddings", {"input": texts[0], "dimensions": 256})["data"][0]["embedding"]
    last = SERVER.answer("/v1/embeddings", {"input": texts[0], "pooling": "last"})["data"][0]["embedding"]
    expect_equal(default, last, "the default is the last position's state")
    one = SERVER.answer("/v1/embeddings", {"input": "x", "pooling": "mean"})["data"][0]["embedding"]
    expect_equal(one, SERVER.answer("/v1/embeddings", {"input": "x", "pooling": "cls"})["data"][0]["embedding"],
                 "of one token all three are the same")


@test
def shorter_embeddings():
    """The first numbers of a vector, rescaled to unit length."""
    whole = SERVER.answer("/v1/embeddings", {"input": "Once upon"})["data"][0]["embedding"]
    short = SERVER.answer("/v1/embeddings", {"input": "Once upon", "dimensions": 64})["data"][0]["embedding"]
    length = math.hypot(*whole[:64])
    expect_equal(len(short), 64, "numbers")
    expect(all(abs(s - w / length) < 1e-6 for s, w in zip(short, whole)), "the first numbers, scaled", short)


@test
def many_inputs_of_embeddings():
    """More than may wait: they are served a few at a time."""
    texts = [f"Input {i}" for i in range(600)]
    data = SERVER.answer("/v1/embeddings", {"input": texts})["data"]
    expect_equal([entry["index"] for entry in data], list(range(600)), "indices")
    for i in (0, 15, 16, 599):
        alone = SERVER.answer("/v1/embeddings", {"input": texts[i]})["data"][0]["embedding"]
        expect_equal(data[i]["embedding"], alone, f"vector {i}")


@test
def the_end_of_a_stream_is_a_chunk_of_its_own():
    for path, body in ((CHAT, question(temperature=0, max_tokens=8)),
                       (TEXT, {"prompt": "Once", "temperature": 0, "max_tokens": 8, "logprobs": 1})):
        last = SERVER.stream(path, body)[-1]["choices"][0]
        expect_equal((last.get("delta", {}), last.get("text", ""), last["logprobs"], last["finish_reason"]),
                     ({}, "", None, "length"), f"last chunk of {path}")


@test
def context_of_the_model_where_no_flag_says_otherwise():
    """The trained context: here 8192, which replaces the fixture's own number."""
    name = b"llama.context_length"
    data = bytearray(SPM.read_bytes())
    at = data.index(name) + len(name)
    expect_equal(data[at:at + 4], struct.pack("<I", 4), "type of the number: uint32")
    data[at + 4:at + 8] = struct.pack("<I", 8192)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "long.gguf"
        path.write_bytes(data)
        with Server(path) as server:
            meta = server.get("/v1/models").json["data"][0]["meta"]
            expect_equal((meta["n_ctx"], meta["n_ctx_train"]), (8192, 8192), "context")
            expect("tokens=8192 kv_tokens=32768 limited_by=training" in server.log(), "the log says it", server.log())
        with Server(path, "-c", 100) as server:
            expect_equal(server.get("/v1/models").json["data"][0]["meta"]["n_ctx"], 100, "context of -c")


@test
def timings_where_asked_for():
    answer = SERVER.chat(QUESTION, temperature=0, max_tokens=8, timings=True)
    timings = answer["timings"]
    expect_equal((timings["prompt_n"], timings["predicted_n"]),
                 (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]), "tokens")
    expect(all(math.isfinite(v) and v >= 0 for v in timings.values()), "times", timings)
    chunks = SERVER.stream(CHAT, question(max_tokens=4, timings=True))
    expect([c for c in chunks if "timings" in c] == chunks[-1:], "timings in the last chunk", chunks)
    expect("timings" not in SERVER.chat(QUESTION, max_tokens=1), "no timings unless asked for")


@test
def model_without_a_template():
    with Server(BPE) as server:
        expect("no chat template" in server.log(), "a warning", server.log())
        prompt = server.answer("/apply-template", question())["prompt"]
        expect_equal(prompt, f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n", "ChatML")
        expect_equal(server.chat(QUESTION, max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"], 2, "tokens")
        expect_equal(server.complete("a", max_tokens=2, ignore_eos=True)["usage"]["completion_tokens"], 2, "tokens")


if __name__ == "__main__":
    with SERVER:
        main()
