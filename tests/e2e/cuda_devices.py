"""CUDA devices for tests, and a simulated machine with NVIDIA's driver (tests/cuda_stand_in/settings.h)."""

import functools
import json
import pathlib

from accelerators import first_device
from harness import BINARY, run, skip
from models import succeeded

SAID = "cuda stand-in: "  # how the stand-in's own lines begin


def device():
    return first_device("cuda")


def on_device(n):
    return ("--device", device(), "-ngl", n)


def devices(env=None):
    """{name: what `infer devices` says of it}."""
    listed = json.loads(succeeded(run("devices", "--json", env=env)).out)["devices"]
    return {entry["name"]: entry for entry in listed}


@functools.cache
def is_stand_in():
    return "stand-in" in devices().get(device(), {}).get("description", "")


def machine(**settings):
    """The environment for a program that names no device on a simulated machine, such as machine(devices=2, lost=7)."""
    if not is_stand_in():
        skip("the program runs on a GPU")
    return {"INFER_DEVICE": "", **{f"INFER_CUDA_STAND_IN_{name.upper()}": str(value) for name, value in settings.items()}}


def layers_folder():
    """The folder of the Vulkan layer of tests/support/vulkan_faults.cpp, next to the program or above it."""
    return next((folder for folder in (pathlib.Path(BINARY).resolve().parent / "layers",
                                       pathlib.Path(BINARY).resolve().parents[1] / "layers") if folder.is_dir()), None)
