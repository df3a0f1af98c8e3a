#!/usr/bin/env python3
"""Prompt and generation speed of a model with none, half and all of its layers on a device.

    gpu_table.py DEVICE MODEL.gguf|SHAPE:TYPE [--prompt 512] [--tokens 64] [--repetitions 3]

SHAPE:TYPE is a well-known shape with random weights (infer bench --help lists them): tinyllama-1.1b:Q4_K_M. Fractions
are of the limits of the devices involved, measured in the same run; GB/s are of weights read. With half the layers, the
time lost at the border is a token's time less what the bytes on each side take when all layers are on that side.
"""

import argparse
import json
import os
import pathlib
import subprocess

INFER = os.environ.get("INFER_BINARY") or str(pathlib.Path(__file__).resolve().parents[1] / "build" / "infer")


def infer(*arguments):
    command = [INFER, *map(str, arguments), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, "INFER_DEVICE": ""})
    if not done.stdout:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}")
    return json.loads(done.stdout)


def measure(options, model, flags):
    document = infer("bench", *model, *flags, "-p", options.prompt, "-n", options.tokens, "-r", options.repetitions)
    results = {result["test"]: result for result in document["results"]}
    return results, document["machine"]["read_bandwidth"]


def share(result):
    fraction = result.get("fraction_of_limit")
    return f"{fraction:6.1%}" if fraction else "     -"


def gigabytes(result, bandwidth):
    fraction = result.get("fraction_of_limit")
    return f"{fraction * bandwidth / 1e9:6.1f}" if fraction and bandwidth else "     -"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    shape, _, kind = options.model.partition(":")
    model = ("-m", options.model) if options.model.endswith(".gguf") else ("--shape", shape, "--type", kind or "Q4_K_M")

    n_layer = infer("plan", *model, "-ngl", 0)["devices"][0]["layers"]
    half = n_layer // 2 + 1  # and the output, which counts as a layer
    print(f"{pathlib.Path(options.model).name} on {options.device}: {n_layer} layers, prompts of {options.prompt} tokens")
    print(f"{'-ngl':>5} {'prompt t/s':>11} {'limit':>6} {'decode t/s':>11} {'limit':>6} {'GB/s':>6} {'ms/token':>9}", flush=True)
    times = []
    for n in (0, half, "all"):
        flags = ("-ngl", n, "--device", options.device) if n else ("--device", "cpu")
        found, bandwidth = measure(options, model, flags)
        decode, prefill = found["decode"], found["prefill"]
        times.append(1000 / decode["tokens_per_second"])
        print(f"{n:>5} {prefill['tokens_per_second']:11.1f} {share(prefill)} {decode['tokens_per_second']:11.1f} "
              f"{share(decode)} {gigabytes(decode, bandwidth)} {times[-1]:9.2f}", flush=True)
    weights = [d["weights"] for d in infer("plan", *model, "-ngl", half, "--device", options.device)["devices"]]
    moved = weights[1] / sum(weights)
    lost = times[1] - times[0] * (1 - moved) - times[2] * moved
    print(f"lost at the border at {half} ({moved:.0%} of the weights on {options.device}): {lost:.2f} ms per token")


main()
