"""Vulkan devices for tests: the first of this machine, and simulated failures and device kinds."""

import pathlib

from accelerators import first_device
from harness import BINARY, skip

LAYERS = pathlib.Path(BINARY).resolve().parent / "layers"  # has tests/support/vulkan_faults.cpp


def device():
    return first_device("vulkan")


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
