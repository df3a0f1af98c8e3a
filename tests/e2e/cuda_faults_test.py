"""Without --device a CUDA device takes what fits, and each failure is one clear line. On a simulated machine
(tests/cuda_stand_in), with build/bin/infer_cuda_stand_in. INFER_TEST_FULL=1 fails every allocation in turn, otherwise
some.
"""

import json

from accelerators import FULL
from cuda_devices import SAID, devices, layers_folder, machine
from harness import PATIENCE, expect, expect_equal, main, run, skip, test
from models import DEMO_TARGET, SPM, succeeded
from serving import Server

FAILED, WRONG_USAGE = 1, 2
QUESTION = ("run", "-m", SPM, "--temp", 0, "-n", 4, "-p", "once upon a time", "-c", 512)
NO_CHECKS = {"INFER_CUDA_STAND_IN_CHECKS": "0"}


def plan(*flags, env, model=DEMO_TARGET):
    return json.loads(succeeded(run("plan", "-m", model, "-c", 512, "--json", *flags, env=env)).out)


def notes(result):
    return [line for line in result.err.splitlines() if line.startswith("note:")]


def expect_one_line(result, *needles, code=FAILED, has_begun=False):
    lines = [line for line in result.err.splitlines() if line and not line.startswith(SAID)]
    expect(result.code == code and (has_begun or not result.out) and len(lines) == 1, "one line", result)
    for needle in needles:
        expect(needle in lines[0], f"the line says {needle!r}", result)


def cpu_answer():
    return succeeded(run(*QUESTION, "--device", "cpu")).out


# Choice of the device and its layers

@test
def a_gpu_takes_the_model_where_no_device_is_named():
    env = machine()
    document = plan(env=env)
    expect_equal([d["device"] for d in document["devices"]], ["cpu", "cuda0"], "devices")
    expect(document["reasons"]["layers"].endswith("on cuda0: -ngl auto, they fit"), "the reason", document)
    result = succeeded(run(*QUESTION, env={**env, **NO_CHECKS}))
    expect_equal((result.out, notes(result)), (cpu_answer(), []), "the answer")


@test
def a_small_memory_takes_what_fits_and_says_why():
    seen = set()
    for megabytes in (3, 5, 8, 64):
        env = machine(memory_mb=megabytes)
        document = plan(env=env)
        gpu = document["devices"][1]
        expect(gpu["needed"] <= 0.9 * (megabytes << 20), "less than the memory", document)
        expect(gpu["embedding"] or "one more would need" in document["reasons"]["layers"], "the reason", document)
        seen.add(gpu["layers"] + gpu["embedding"] + gpu["output"])
    expect(len(seen) >= 3, "memories of different use", seen)


@test
def devices_report_their_memory_and_capability():
    listed = devices(env=machine(devices=2, memory_mb=64, capability="9.0"))
    for name in ("cuda0", "cuda1"):
        expect("compute capability 9.0" in listed[name]["description"], "capability", listed)
        expect_equal((listed[name]["memory_total"], listed[name]["memory_free"]), (64 << 20, 64 << 20), "memory")
    expect(listed["cuda0"]["card"] != listed["cuda1"]["card"], "two cards", listed)


def with_vulkan(**settings):
    """The environment in which lavapipe claims to be a GPU; skips the test if there is none."""
    layers = layers_folder() or skip("the layer of tests/support/vulkan_faults.cpp is not built")
    env = {**machine(**settings), "VK_LAYER_PATH": str(layers), "VK_INSTANCE_LAYERS": "VK_LAYER_INFER_faults",
           "INFER_FAULTS_TYPE": "discrete"}
    if "vulkan0" not in devices(env):
        skip("no Vulkan device besides the simulated one")
    return env


@test
def cuda_comes_before_vulkan():
    expect_equal([d["device"] for d in plan(env=with_vulkan())["devices"]], ["cpu", "cuda0"], "with both")
    for settings in ({"driver": 0}, {"driver": 11040}, {"capability": "6.1"}):
        found = [d["device"] for d in plan(env=with_vulkan(**settings))["devices"]]
        expect_equal(found, ["cpu", "vulkan0"], f"with {settings}")


@test
def a_card_is_not_used_by_both():
    env = with_vulkan(uuid=devices(with_vulkan())["vulkan0"]["card"])
    listed = devices(env)
    expect_equal(listed["cuda0"]["card"], listed["vulkan0"]["card"], "one card")
    expect("the same card as cuda0" in succeeded(run("devices", env=env)).out, "the list")
    result = run(*QUESTION, "--device", "cuda0,vulkan0", env=env)
    expect_one_line(result, "cuda0 and vulkan0 are the same card", code=WRONG_USAGE)


# What is missing

@test
def without_a_driver_nothing_is_printed():
    for settings in ({"driver": 0}, {"devices": 0}):
        env = machine(**settings)
        expect("cuda0" not in devices(env), "no device", settings)
        expect("NVIDIA" not in succeeded(run("devices", env=env)).out, "nothing about it", settings)
        result = succeeded(run(*QUESTION, env=env))
        expect_equal((result.out, notes(result)), (cpu_answer(), []), "the answer")


@test
def a_missing_device_is_one_line():
    for settings, needles in (({"driver": 0}, ["There is no NVIDIA driver", "Install one"]),
                              ({"devices": 0}, ["finds no GPU", "CUDA_VISIBLE_DEVICES"]),
                              ({"driver": 11040}, ["CUDA 11.4", "13.0 or later", "Update the driver"]),
                              ({"capability": "6.1"}, ["stand-in", "6.1", "7.5", "Use another device"])):
        expect_one_line(run(*QUESTION, "--device", "cuda0", env=machine(**settings)), "[cuda0]", *needles)
    expect_one_line(run(*QUESTION, "--device", "cuda1", env=machine()), "cuda0", "found cuda1", code=WRONG_USAGE)


@test
def a_gpu_that_cannot_be_used_is_reported():
    for settings, words in (({"driver": 11040}, "Update the driver"), ({"capability": "6.1"}, "compute capability 6.1")):
        env = machine(**settings)
        expect(words in succeeded(run("devices", env=env)).out, "the list")
        expect(words in json.loads(succeeded(run("devices", "--json", env=env)).out)["problems"][0], "as JSON")
        result = succeeded(run(*QUESTION, env=env))
        expect(result.out == cpu_answer() and len(notes(result)) == 1 and words in notes(result)[0], "one note", result)
        quiet = succeeded(run(*QUESTION, "-ngl", 0, env=env))
        expect_equal(notes(quiet), [], "nothing was asked for")


# Failures

@test
def without_memory_at_any_call_there_are_fewer_layers_or_one_clear_line():
    expected = cpu_answer()
    fewer, call, step = 0, 1, 1 if FULL else 7
    while True:
        result = run(*QUESTION, env={**machine(fail_allocation=call), **NO_CHECKS})
        if SAID not in result.err:  # there are not that many calls
            expect_equal((result.code, result.out, notes(result)), (0, expected, []), f"without a fault\n{result}\n")
            break
        if result.code == 0:
            expect_equal(result.out, expected, f"call {call}: the text")
            fewer += len(notes(result))
        else:
            expect_one_line(result, "[cuda0]", "memory")
        call += step
    expect(call > 20 and fewer > 0, "calls of all kinds", (call, fewer))


@test
def too_little_memory_says_what_to_do():
    result = run("run", "-m", DEMO_TARGET, "-p", "a", "-n", 1, "-c", 512, "--device", "cuda0", "-ngl", "all",
                 "--strict-offload", env=machine(memory_mb=4))
    expect_one_line(result, "cuda0", "found memory for", "Lower -ngl or -c")
    # The plan is right, but the driver refuses.
    result = run(*QUESTION, "--device", "cuda0", "-ngl", "all", "--strict-offload", env=machine(fail_allocation=4))
    expect_one_line(result, "[cuda0]", "could not be allocated", "is free", "Lower -ngl or -c")


@test
def a_lost_device_is_one_clear_line():
    for kernel in (1, 10, 100):
        result = run(*QUESTION, env={**machine(lost=kernel), **NO_CHECKS})
        expect(SAID in result.err, f"kernel {kernel}", result)
        expect_one_line(result, "[cuda0] the device was lost: unspecified launch failure", "Restart the program",
                        has_begun=True)


@test
def a_server_whose_device_is_lost_tells_its_clients_and_ends():
    server = Server(SPM, "-t", 1, "-c", 512, env={**machine(lost=400), **NO_CHECKS})
    with server:
        reply = server.ask("POST", "/v1/completions", {"prompt": "once", "max_tokens": 200, "ignore_eos": True})
        expect(reply.status >= 500 and "error" in reply.json, "the answer", reply)
        server.process.wait(timeout=PATIENCE)
    expect_equal(server.code, FAILED, f"exit code\n{server.err}\n")
    expect("engine_failed" in server.err and "the device was lost" in server.err, "the log", server.err)


@test
def a_driver_without_memory_pools_gives_the_same():
    result = succeeded(run(*QUESTION, env=machine(pools=0)))
    expect_equal((result.out, notes(result)), (cpu_answer(), []), "the answer")


main()
