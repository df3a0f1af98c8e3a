"""Vulkan devices for tests: the first of this machine, and simulated failures and device kinds."""

import functools
import json
import os
import pathlib

from harness import BINARY, Failure, run, skip
from models import succeeded

FULL = os.environ.get("INFER_TEST_FULL") == "1"
LAYERS = pathlib.Path(BINARY).resolve().parent / "layers"  # has tests/support/vulkan_faults.cpp


@functools.cache
def device():
    """The name of the first Vulkan device; without one the test is skipped, or fails if INFER_REQUIRE names it."""
    names = [d["name"] for d in json.loads(succeeded(run("devices", "--json")).out)["devices"]]
    found = [name for name in names if name.startswith("vulkan")]
    if found:
        return found[0]
    if "vulkan" in os.environ.get("INFER_REQUIRE", "").split(","):
        raise Failure("INFER_REQUIRE asks for vulkan, and no such device was found")
    return skip("no Vulkan device")


def on_device(n):
    return ("--device", device(), "-ngl", n)


def driver(kind="discrete", memory=0, lost=0):
    """The environment for a program that names no device, in which all Vulkan devices are of one kind (discrete, integrated,
    software), the memory-th call that may run out of memory does so, and the lost-th submission loses the device."""
    device()
    if not (LAYERS / "libvulkan_faults.so").is_file():
        skip("the layer of tests/support/vulkan_faults.cpp is not built")
    return {"VK_LAYER_PATH": str(LAYERS), "VK_INSTANCE_LAYERS": "VK_LAYER_INFER_faults", "INFER_DEVICE": "",
            "INFER_FAULTS_TYPE": kind, "INFER_FAULTS_MEMORY": str(memory), "INFER_FAULTS_LOST": str(lost)}
