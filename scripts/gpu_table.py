#!/usr/bin/env python3
"""Prompt and generation speed of a model with none, half and all of its layers on a device.

    gpu_table.py DEVICE MODEL.gguf

The share of the limit is of the device's (with no layers there: the CPU's) own read bandwidth, measured in the same run.
What a token takes at half beyond the mean of none and all is the time lost at the border between the devices.
"""

import json
import pathlib
import subprocess
import sys

INFER = str(pathlib.Path(__file__).resolve().parents[1] / "build" / "infer")


def infer(*arguments):
    done = subprocess.run([INFER, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def layers(model):
    metadata = infer("inspect", model, "--json")["metadata"]
    return int(next(entry["value"] for entry in metadata if entry["key"].endswith(".block_count")))


def measure(device, model, n):
    flags = ("-ngl", n, "--device", device) if n else ()
    results = infer("bench", "-m", model, "-p", 512, "-n", 64, "--json", *flags)["results"]
    return {result["test"]: result for result in results}


def share(result):
    fraction = result.get("fraction_of_limit")
    return f"{fraction:6.1%}" if fraction else "     -"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    device, model = sys.argv[1:]
    n_layer = layers(model)
    rows = [(n, measure(device, model, n)) for n in (0, (n_layer + 1) // 2, "all")]
    print(f"{pathlib.Path(model).name} on {device}, {n_layer} layers")
    print(f"{'-ngl':>5} {'prompt t/s':>11} {'limit':>6} {'decode t/s':>11} {'limit':>6} {'ms/token':>9}")
    times = []
    for n, found in rows:
        decode = found["decode"]["tokens_per_second"]
        times.append(1000 / decode)
        print(f"{n:>5} {found['prefill']['tokens_per_second']:11.1f} {share(found['prefill'])} "
              f"{decode:11.1f} {share(found['decode'])} {times[-1]:9.2f}")
    print(f"lost at the border at half: {times[1] - (times[0] + times[2]) / 2:.2f} ms per token")


main()
