#!/usr/bin/env python3
"""Speed of a large shape with random weights, all of it on one device, for each type of weights: prompts of two lengths,
and generation in 1, 8 and 64 streams and after a long context.

    gpu_streams.py DEVICE [--shape llama-3.1-8b] [--types Q4_K_M,Q8_0,F16] [--seconds N]

Fractions are of the device's own limits, measured in the same run: generation of its read bandwidth, prompts of its
rate of fp16 matrix multiplications where the backend measures one. A type that does not fit the device's memory is
skipped, and so is a run that does not end within N seconds.
"""

import argparse
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
INFER = os.environ.get("INFER_BINARY") or str(ROOT / "build" / "infer")
DEMO = str(ROOT / "models" / "infer-demo-5m-q8_0.gguf")
# Flags of one run of infer bench; each run generates new weights.
RUNS = (("-p", "512,4096", "-n", 32, "-b", 1), ("-p", 0, "-n", 32, "-b", "8,64"), ("-p", 0, "-n", 32, "-b", 1, "-d", 16384))


def infer(*arguments, seconds=None):
    """Standard output, or None if the program failed or took too long."""
    command = [INFER, *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds,
                              env={**os.environ, "INFER_DEVICE": ""})
    except subprocess.TimeoutExpired:
        print(f"  not measured, the time is up: {' '.join(command)}", flush=True)
        return None
    if done.returncode != 0:
        print(f"  failed: {' '.join(command)}: {done.stderr.strip()}", flush=True)
        return None
    return done.stdout


def describe(result):
    if result["test"] == "prefill":
        return f"prompt of {result['n_prompt']}"
    where = f", after {result['depth']}" if result["depth"] > 1 else ""
    return f"{result['batch']} stream{'s' if result['batch'] > 1 else ''}{where}"


def show(kind, report):
    machine, one = report["machine"], None
    limits = [f"{machine[key] / scale:.0f} {unit}" for key, scale, unit in
              (("read_bandwidth", 1e9, "GB/s"), ("int8_operations_per_second", 1e12, "Top/s")) if machine[key]]
    print(f"  {kind}: limits {', '.join(limits) or 'not known'}")
    for result in report["results"]:
        fraction = result["fraction_of_limit"]
        share = f"{fraction:6.1%} of the limit" if fraction else ""
        print(f"  {kind:8} {describe(result):24} {result['tokens_per_second']:10.1f} tokens/s {share}", flush=True)


def free_memory(device):
    listed = json.loads(infer("devices", "--json"))["devices"]
    return next(entry["memory_free"] for entry in listed if entry["name"] == device)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("device")
    parser.add_argument("--shape", default="llama-3.1-8b")
    parser.add_argument("--types", default="Q4_K_M,Q8_0,F16")
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    placed = ("--device", options.device, "-ngl", "all", "--strict-offload")

    started = time.monotonic()
    if infer("run", "-m", DEMO, "-p", "Once", "-n", 1, *placed) is None:
        raise SystemExit(1)
    print(f"  {time.monotonic() - started:.2f} s from the start of the program to the end of the first token (demo model)")
    ok = True
    for kind in options.types.split(","):
        model = ("--shape", options.shape, "--type", kind)
        plan = json.loads(infer("plan", *model, *placed, "-c", 16384 + 64, "--json") or "{}")
        needed = next((d["needed"] for d in plan.get("devices", []) if d["device"] == options.device), None)
        free = free_memory(options.device)
        if needed is None or needed > free:
            print(f"  {kind}: left out, needs {(needed or 0) >> 20} MiB of the {free >> 20} MiB that are free")
            continue
        for flags in RUNS:
            left = end - time.monotonic()
            if left < 10:
                print(f"  {kind}: not measured, the time is up: infer bench {' '.join(map(str, (*model, *flags)))}")
                continue
            out = infer("bench", *model, *placed, *flags, "-r", 1, "--json", seconds=left)
            ok = ok and (out is not None or end <= time.monotonic())
            if out:
                show(kind, json.loads(out))
    raise SystemExit(0 if ok else 1)


main()
