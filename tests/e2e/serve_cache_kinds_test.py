"""Answers to many clients at once, with cached prefixes, forks and preempted sequences, equal those to one alone for a
model of each kind of cache and each mix of kinds that models have.

INFER_TEST_FULL=1 takes more requests and longer answers with caches on a GPU.
"""

import concurrent.futures
import random
import time

from accelerators import FULL
from harness import expect, expect_equal, main, test_each
from models import reference_model
from serving import Server
from vulkan_devices import on_device

# gemma3: window and full; deepseek2-mla: latent; kimi-linear: latent and states; qwen3next and lfm2: full and states;
# glm-dsa: latent with index keys; minimax-m3: full with index keys; qwen4exp: the same and states; deepseek4: window,
# compressed entries with index keys, and states.
CACHED = ["gemma3", "deepseek2-mla", "kimi-linear", "qwen3next", "lfm2", "glm-dsa", "minimax-m3", "qwen4exp", "deepseek4"]
ONLY_STATES = ["mamba2", "rwkv7"]  # whose sequences need no blocks, so that none is preempted
# The layers on a GPU: some, or all except the operations that it lacks, such as the n-grams of qwen4exp, whose state
# stays on the CPU although the layer's other states do not.
GPU_LAYERS = {"deepseek2-mla": "all", "glm-dsa": "all", "qwen3next": 3, "rwkv7": 3, "qwen4exp": "all"}
CONCURRENCY = 12
# Few blocks: sequences are preempted and prompts are split into chunks.
SMALL = ("-c", 256, "--parallel", 8, "--ubatch-size", 24, "--max-queue", 100)


def cases(tokens, chance, prefixes, lengths):
    """Bodies of distinct requests, most of which share the beginnings of their prompts."""
    for prefix in (tokens * 2, tokens, tokens[:34], tokens + tokens[:20])[:prefixes]:
        for fields in ({"temperature": 0}, {"temperature": 1.1, "top_k": 0}, {"temperature": 0.7, "n": 3}):
            ending = [chance.choice(tokens) for _ in range(chance.randrange(1, 12))]
            yield {"prompt": prefix + ending, "max_tokens": chance.randrange(*lengths), "ignore_eos": True, "logprobs": 3,
                   "seed": chance.randrange(1 << 60), **fields}


def choices(server, body, salt, delay=0):
    time.sleep(delay)
    return server.answer("/v1/completions", {**body, "cache_salt": salt})["choices"]


def check_at_once_as_alone(name, requests, prefixes, lengths, *flags):
    """`requests` at once, of three per prefix, with `lengths` of answers."""
    model, recorded = reference_model(name)
    chance = random.Random(name)
    bodies = list(cases(recorded["tokens"], chance, prefixes, lengths))
    with Server(model, *SMALL, *flags) as server, concurrent.futures.ThreadPoolExecutor(CONCURRENCY) as pool:
        alone = [choices(server, body, f"alone {i}") for i, body in enumerate(bodies)]
        before = server.metrics()
        asked = [(chance.randrange(len(bodies)), chance.random() * 0.02) for _ in range(requests)]
        answers = pool.map(lambda ask: choices(server, bodies[ask[0]], "at once", ask[1]), asked)
        for (which, _), found in zip(asked, answers):
            expect_equal(found, alone[which], f"choices of {bodies[which]}")
        after = server.metrics()
        grown = {key: after[key] - before.get(key, 0) for key in after if "_bucket" not in key}
        expect(grown["infer_prefix_hit_tokens_total"] > 0, "some prefix was found", grown)
        expect(name in ONLY_STATES or grown["infer_preemptions_total"] > 0, "some sequence was preempted", grown)
        expect_equal(after["infer_kv_blocks_used"], 0, "blocks in use at the end")
    expect_equal(server.code, 0, "exit code")


@test_each(*CACHED, *ONLY_STATES)
def at_once_as_alone(name):
    threads = ("-t", 2) if name in ("deepseek4", "rwkv7") else ()
    check_at_once_as_alone(name, 40, 4, (20, 100), "--kv-tokens", 288, *threads)


@test_each(*GPU_LAYERS)
def with_caches_on_a_gpu(name):
    """The device copies blocks and states of its layers, for prefixes and choices."""
    size = (20, 4, (20, 100)) if FULL else (9, 2, (16, 40))
    check_at_once_as_alone(name, *size, "--kv-tokens", 288 if FULL else 192, *on_device(GPU_LAYERS[name]), "--deterministic")


main()
