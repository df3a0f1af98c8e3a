#!/usr/bin/env python3
"""Hashes a program's results, to show that a code change does not change a single bit of them.

Each line is a run and a SHA-256 of the log-probabilities of the whole vocabulary at 48 positions, in hexadecimal digits
of which 16 are shown: every weight type and architecture of the reference models that the program runs, its own models
quantized by itself, each instruction-set level, 1 and 2 threads, the reference device, Vulkan with --deterministic.

    INFER_BINARY=old/infer scripts/logit_hashes.py > before
    INFER_BINARY=new/infer scripts/logit_hashes.py > after && diff before after
"""

import hashlib
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "e2e"))

from harness import Failure, run, shared_folder
from models import DEMO_DRAFT_F16, DEMO_TARGET, cpu_levels, f32_models, logprobs_text, reference_model

TYPES = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
         "IQ4_XS", "MXFP4", "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_M", "IQ3_XXS", "IQ3_S", "TQ1_0", "TQ2_0", "Q1_0",
         "Q2_0")
GIVEN = [(7 * i * i + 3 * i + 1) % 300 for i in range(48)]


def report(name, model, tokens, *flags, env=None):
    try:
        text = logprobs_text(model, tokens, *flags, env=env)
        print(f"{name:<40} {hashlib.sha256(text.encode()).hexdigest()[:16]}", flush=True)
    except Failure as failure:
        print(f"{name:<40} failed: {str(failure).splitlines()[-1]}", flush=True)


def report_types(folder):
    """The project's own F16 model in every type, and the recorded models with further types."""
    for kind in TYPES:
        path = pathlib.Path(folder, f"{kind}.gguf")
        made = run("quantize", "--pure", DEMO_DRAFT_F16, path, "Q3_K_M" if kind == "Q3_K" else kind)
        if made.code != 0:
            print(f"{'type ' + kind:<40} failed: {made.err.strip()}", flush=True)
            continue
        report(f"type {kind}", path, GIVEN)
        report(f"type {kind} -t 1", path, GIVEN, "-t", "1")
    for path in sorted((shared_folder() / "goldens" / "arch").glob("quant-*.gguf")) if shared_folder() else []:
        model, recorded = reference_model(path.stem)
        if run("inspect", model, "--json").code == 0:
            report(path.stem, model, recorded["tokens"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        report_types(folder)
    runs = {"demo": (DEMO_TARGET, GIVEN)}
    for name in f32_models():
        model, recorded = reference_model(name)
        runs[name] = (model, recorded["tokens"])
    for name, (model, tokens) in runs.items():
        for threads in ("1", "2"):
            report(f"{name} -t {threads}", model, tokens, "-t", threads)
        for level in cpu_levels():
            report(f"{name} INFER_CPU={level}", model, tokens, env={"INFER_CPU": level})
        report(f"{name} --device ref", model, tokens, "--device", "ref")
        report(f"{name} on vulkan0", model, tokens, "--device", "vulkan0", "-ngl", "all", "--deterministic")
        report(f"{name} half on vulkan0", model, tokens, "--device", "vulkan0", "-ngl", "2", "--deterministic")


if __name__ == "__main__":
    main()
