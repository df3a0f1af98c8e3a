"""The answers of `infer serve` to many clients at once equal those of `infer run`."""

import concurrent.futures
import json
import random
import time

from accelerators import first_device
from harness import expect, expect_equal, main, run, test, test_each
from models import DEMO_TARGET, succeeded
from serving import ENDLESS, Server, leave, text_of

REQUESTS, CONCURRENCY = 200, 32
# Few blocks: sequences are preempted and prompts are split into chunks.
SMALL = ("-c", 512, "--parallel", 16, "--ubatch-size", 40, "--max-queue", 200, "--kv-tokens")

STORY = ("Once upon a time there was a small duck named Donny. He lived by the river near the old mill of Lindale, and "
         "every morning he swam to the bridge to see who was crossing it. ")
PREFIXES = [STORY, STORY * 4, STORY * 2 + "The mayor of Lindale had a garden. ", "The mayor of Lindale had a garden. "]
ENDINGS = ["One day", "Then the duck said", "The mayor asked: where is", "In the end", "A robot"]


def cases(chance):
    """Distinct requests: (prompt, sampling fields, the same as flags, tokens, n)."""
    for prefix in PREFIXES:
        for ending in ENDINGS:
            sampled = {"seed": chance.randrange(1 << 60), "temperature": 1.1, "top_k": 0, "top_p": 0.97}
            for fields in ({"temperature": 0}, sampled):
                n = 3 if "seed" in fields and chance.random() < 0.4 else 1
                yield prefix + ending, fields, chance.randrange(20, 120), n


def expected_texts(model, prompt, fields, max_tokens, n):
    """`model`: the file, and more flags."""
    flags = [f"--{name.replace('temperature', 'temp').replace('_', '-')}={value}"
             for name, value in fields.items() if name != "seed"]
    texts = []
    for i in range(n):
        seed = [f"--seed={fields['seed'] + i}"] if "seed" in fields else []
        texts.append(succeeded(run("run", "--raw", "--quiet", "--ignore-eos", "-t", 1, "-p", prompt, "-n", max_tokens,
                                   *flags, *seed, "-m", *model)).out)
    return texts


def served_texts(server, case, stream, delay):
    time.sleep(delay)
    prompt, fields, max_tokens, n = case
    body = {"prompt": prompt, "max_tokens": max_tokens, "n": n, "ignore_eos": True, **fields}
    if stream:
        chunks = server.stream("/v1/completions", body)
        return [text_of(chunks, i) for i in range(n)]
    return [c["text"] for c in server.answer("/v1/completions", body)["choices"]]


def answer_at_once_as_alone(model, kv_tokens, all_cases, n_requests, chance):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        expected = list(pool.map(lambda case: expected_texts(model, *case), all_cases))
    expect(len({tuple(texts) for texts in expected}) > len(all_cases) // 2, "the answers differ", expected)
    with Server(*model, "-t", 2, *SMALL, kv_tokens) as server, \
            concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as pool:
        asked = [(chance.randrange(len(all_cases)), chance.random() < 0.5, chance.random() * 0.05)
                 for _ in range(n_requests)]
        answers = pool.map(lambda ask: served_texts(server, all_cases[ask[0]], *ask[1:]), asked)
        for (which, stream, _), texts in zip(asked, answers):
            expect_equal(texts, expected[which], f"answer to {all_cases[which]}, stream {stream}")
        metrics = {name: value for name, value in server.metrics().items() if "_bucket" not in name}
        expect(metrics["infer_preemptions_total"] > 0, "some sequence was preempted", metrics)
        expect(metrics["infer_prefix_hit_tokens_total"] > 0, "some prefix was found", metrics)
        expect_equal(metrics["infer_kv_blocks_used"], 0, "blocks in use at the end")
    expect_equal(server.code, 0, "exit code")


@test
def two_hundred_requests_at_once_answer_as_one_alone():
    chance = random.Random(5)
    answer_at_once_as_alone([DEMO_TARGET], 640, list(cases(chance)), REQUESTS, chance)


@test_each("vulkan", "cuda")
def with_half_of_the_layers_on_a_device_too(kind):
    """Fewer requests and blocks, since the GPU may be a software renderer."""
    chance = random.Random(6)
    some = [(prompt, fields, min(max_tokens, 40), n) for prompt, fields, max_tokens, n in cases(chance)][::7]
    answer_at_once_as_alone([DEMO_TARGET, *half_on(kind), "--deterministic"], 256, some, 14, chance)


def half_on(kind):
    n_layer = json.loads(succeeded(run("plan", "-m", DEMO_TARGET, "--json")).out)["devices"][0]["layers"]
    return ("--device", first_device(kind), "-ngl", n_layer // 2 + 1)  # the output counts as a layer


@test_each("vulkan", "cuda")
def log_probabilities_on_a_device_do_not_depend_on_the_neighbours(kind):
    """Text hardly shows differences in these. The second round finds nothing from the first in the cache. It is one
    request, and steps are not shortened to meet a latency, so that its prompts are computed together however busy the
    machine is."""
    with Server(DEMO_TARGET, *half_on(kind), "--deterministic", "-t", 2, "-c", 512, "--parallel", 8,
                "--ubatch-size", 40, "--max-itl-ms", 0) as server:
        def choices(prompt, salt):
            body = {"prompt": prompt, "max_tokens": 12, "temperature": 0, "logprobs": 5, "ignore_eos": True}
            answer = server.answer("/v1/completions", {**body, "cache_salt": salt})
            return [{**choice, "index": 0} for choice in answer["choices"]]

        prompts = [(STORY * 2)[:30 + 35 * i] for i in range(8)]
        alone = [choice for prompt in prompts for choice in choices(prompt, "alone")]
        before = server.metrics()
        at_once = choices(prompts, "at once")
        sizes = {name: server.metrics()[name] - before[name] for name in before if "step_batch_size" in name}
        expect(sizes["infer_step_batch_size_sum"] > 3 * sizes["infer_step_batch_size_count"], "batches", sizes)
        expect_equal(at_once, alone, "choices")
    expect_equal(server.code, 0, "exit code")


@test
def a_shared_system_prompt_comes_from_the_cache():
    """Even while the request that computed it is still running."""
    system = "You know the valley of Lindale, its eight villages and whoever lives there. " * 32
    with Server(DEMO_TARGET, "-t", 2, "--parallel", 4, "-c", ENDLESS) as server:
        def body(question, **fields):
            messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
            return {"messages": messages, "temperature": 0, "max_tokens": 2, "ignore_eos": True, **fields}

        n_system = len(server.answer("/tokenize", {"content": system})["tokens"])
        expect(n_system >= 400, f"a system prompt of 400 tokens, found {n_system}")
        long = body("Where is Lindale?", max_tokens=ENDLESS - 1000)
        connection, first = server.open_stream("/v1/chat/completions", long)
        server.wait_for_metric("infer_generated_tokens_total", lambda n: n >= 1)
        second = server.answer("/v1/chat/completions", body("Who is the mayor?"))
        expect(second["usage"]["prompt_tokens_details"]["cached_tokens"] >= 384, "cached tokens", second["usage"])
        running = server.metrics()
        expect_equal(running["infer_requests_running"], 1, "the first still runs")
        leave(connection, first)
        third = server.answer("/v1/chat/completions", body("Who is the mayor?", cache_salt="mine"))
        expect_equal(third["usage"]["prompt_tokens_details"]["cached_tokens"], 0, "cached tokens of another salt")
        again = server.answer("/v1/chat/completions", body("And now?"))
        expect(again["usage"]["prompt_tokens_details"]["cached_tokens"] >= 384, "cached tokens", again["usage"])


main()
