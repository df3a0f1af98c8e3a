"""On the CPU a token's values do not depend on how they were computed: threads, chunks of the prompt, instruction set.

Compares the JSON text of the log-probabilities of the whole vocabulary at every position: equal text is equal bits.
"""

import json
import re
import subprocess
import sys

from accelerators import FULL
from harness import SOURCE_DIR, expect, expect_equal, main, run, test, test_each
from models import (BPE, DEMO, DEMO_DRAFT, DEMO_DRAFT_F16, DEMO_TARGET, F32_CACHE, SPM, cpu_levels, differences,
                    f32_models, logprobs, logprobs_text, reference_model, succeeded)

OWN = {"own-spm": SPM, "own-bpe": BPE}
REFERENCE = [*f32_models()]
QUANTIZED = [
    "quant-bf16", "quant-f16", "quant-1bit-q1_0", "quant-iq2_xs", "quant-iq4_xs", "quant-nvfp4", "quant-q2_k", "quant-q3_k", "quant-q4_0", "quant-q4_1", "quant-q4_k",
    "quant-q5_0", "quant-q5_k", "quant-q6_k", "quant-q8_0",
]
MODELS = [*OWN, *REFERENCE, *QUANTIZED]
THREADS = (1, 2, 3)
CHUNKS = (1, 5, 32, 48)  # tokens per step


def model_and_tokens(name):
    """48 tokens for any model."""
    if name in OWN:
        return OWN[name], [(7 * i * i + 3 * i + 1) % 300 for i in range(48)]
    model, recorded = reference_model(name)
    return model, recorded["tokens"]


def expect_same_text(texts):
    """texts: {what was varied: JSON text}; all must be equal."""
    (first, expected), *others = texts.items()
    document = json.loads(expected)
    expect(len(document["positions"]) == len(document["tokens"]) >= 48, "a position for each token")
    for what, text in others:
        expect(text == expected, f"the bits with {what} differ from those with {first}")


@test_each(*MODELS)
def threads_chunks_and_instruction_sets_do_not_matter(name):
    """Every number of threads, chunk size and instruction set occurs, varied together to need few runs. With
    INFER_TEST_FULL=1 each is varied alone too, which shows whose fault a difference is."""
    model, tokens = model_and_tokens(name)
    levels = cpu_levels()
    expect(len(levels) > 0, "this machine runs at least one level")
    variations = [({"INFER_CPU": levels[-1 - i % len(levels)]},
                   ("-t", THREADS[max(0, i - 1) % 3], "--ubatch-size", CHUNKS[i % 4]))
                  for i in range(max(len(levels), len(CHUNKS)))]
    if FULL:
        variations += [({}, ())] + [({}, ("-t", n)) for n in THREADS] + [({}, ("--ubatch-size", n)) for n in CHUNKS]
        variations += [({"INFER_CPU": level}, ()) for level in levels]
    expect_same_text({f"{env} {flags}": logprobs_text(model, tokens, *flags, env=env) for env, flags in variations})


@test_each("q8_0/q8_0", "q4_0/q4_0", "q8_0/q4_0", "f16/q8_0", "q5_1/q4_1", "q4_1/q5_0", "q5_0/iq4_nl", "iq4_nl/q5_1",
           "q5_1/q5_1")
def quantized_caches_do_not_depend_on_these_either(types):
    """Each head of a token is quantized by itself, so chunks, threads and instruction sets cannot matter."""
    key_type, value_type = types.split("/")
    tokens = [(7 * i * i + 3 * i + 1) % 300 for i in range(48)]
    texts = {}
    for i, level in enumerate(cpu_levels()):
        flags = ("-ctk", key_type, "-ctv", value_type, "-t", THREADS[i % 3], "--ubatch-size", CHUNKS[i % 4])
        texts[f"INFER_CPU={level} {flags}"] = logprobs_text(DEMO_TARGET, tokens, *flags, env={"INFER_CPU": level})
    expect_same_text(texts)
    expect(logprobs_text(DEMO_TARGET, tokens) not in texts.values(), "another cache than the default one")
    found = logprobs(DEMO_TARGET, tokens, "-ctk", key_type, "-ctv", value_type)
    expected = [list(position.items())[:20] for position in logprobs(DEMO_TARGET, tokens)]
    off = differences(found, expected)
    bound = 0.5 if "4" in types else 0.2 if "5" in types else 0.05
    expect(sum(off) / len(off) < bound, "close to an F16 cache", sum(off) / len(off))


@test_each("own-spm", "llama-gqa", "quant-q4_k")
def the_comparison_can_fail(name):
    """Another cache type changes the values slightly, which the text must show."""
    model, tokens = model_and_tokens(name)
    expect(logprobs_text(model, tokens) != logprobs_text(model, tokens, *F32_CACHE), "an F32 cache changes the bits")


@test_each("own-spm", "own-bpe", "llama-gqa", "qwen3moe", "quant-q4_k", "quant-q8_0")
def layers_move_one_by_one_to_another_device(name):
    """-ngl N for every N, from the CPU alone to the other device alone: the function is always the same."""
    model, tokens = model_and_tokens(name)
    inspected = json.loads(succeeded(run("inspect", model, "--json")).out)
    n_layer = next(entry["value"] for entry in inspected["metadata"] if entry["key"].endswith(".block_count"))
    cpu_text = logprobs_text(model, tokens, *F32_CACHE)
    ref_text = logprobs_text(model, tokens, "--device", "ref", *F32_CACHE)
    cpu = json.loads(cpu_text)["positions"]
    ref = [dict(entries) for entries in json.loads(ref_text)["positions"]]
    # Quantized matmuls round activations on the CPU and not on ref.
    limit = 1.5 * max(differences(ref, cpu)) if name.startswith("quant-") else 1e-3
    last = n_layer + 2  # the layers, the head, and the embedding with the last of them
    for n in range(last + 1):
        flags = ("--device", "ref", "-ngl", n, *F32_CACHE)
        if n == 0:
            expect(logprobs_text(model, tokens, *flags) == cpu_text, "-ngl 0 is the CPU alone")
        elif n == last:
            expect(logprobs_text(model, tokens, *flags) == ref_text, f"-ngl {n} is the other device alone")
        else:
            worst = max(differences(logprobs(model, tokens, *flags), cpu))
            expect(worst <= limit, f"-ngl {n}: differs from the CPU by {worst:.6f}, at most {limit:.6f} expected")


def generated(model, *flags, env=None):
    """(text, hash of the last logits) of a greedy completion."""
    result = succeeded(run("run", "-m", model, "-p", "once upon a time", "-n", 24, "--temp", 0, "--ignore-eos", "-v", *flags,
                           env=env))
    line = result.err.splitlines()[-1]
    hashes = re.findall(r" · logits ([0-9a-f]{16})$", line)
    expect_equal(len(hashes), 1, f"hashes in {line!r}")
    return result.out_bytes, hashes[0]


def expect_same_generation(model):
    """Levels and threads are varied together, because each run measures the memory bandwidth."""
    expected = generated(model)
    for i, level in enumerate(cpu_levels()):
        n = THREADS[i % 3]
        found = generated(model, "-t", n, env={"INFER_CPU": level})
        expect_equal(found, expected, f"text and logits with INFER_CPU={level} -t {n}")


@test_each("own-spm", "own-bpe", "qwen3moe", "quant-q4_k", "quant-q8_0")
def generation_ends_with_the_same_logits(name):
    expect_same_generation(model_and_tokens(name)[0])


@test_each(DEMO_TARGET.stem, DEMO_DRAFT.stem, DEMO_DRAFT_F16.stem)
def generation_of_trained_models_ends_with_the_same_logits(name):
    expect_same_generation(DEMO / f"{name}.gguf")


@test
def hash_of_the_logits_distinguishes_runs():
    expect(generated(SPM)[1] != generated(SPM, *F32_CACHE)[1], "an F32 cache changes the hash")


@test
def fixtures_are_what_their_script_writes():
    done = subprocess.run([sys.executable, SOURCE_DIR / "scripts" / "make_fixtures.py", "--check"],
                          capture_output=True, text=True, check=False)
    expect_equal(done.returncode, 0, f"make_fixtures.py --check: {done.stdout}{done.stderr}")


main()
