"""Without --device a GPU takes what fits, and failures lead to fewer layers or one clear line.

A Vulkan layer (tests/support/vulkan_faults.cpp) makes this machine's first device claim to be a GPU, fail to allocate
at a given call, or get lost. INFER_TEST_FULL=1 fails every call in turn, otherwise some.
"""

import json
import pathlib
import re
import tempfile

from accelerators import FULL
from harness import PATIENCE, expect, expect_equal, main, run, test, test_each
from models import DEMO_TARGET, SPM, succeeded
from serving import Server
from vulkan_devices import device, driver

FAILED, WRONG_USAGE = 1, 2
QUESTION = ("run", "-m", DEMO_TARGET, "--temp", 0, "-n", 12, "-p", "What is your name?", "-c", 512)
SAID = "vulkan_faults: "  # how the layer's own lines begin


def plan(*flags, env):
    return json.loads(succeeded(run("plan", "-m", DEMO_TARGET, "-c", 512, "--json", *flags, env=env)).out)


def notes(result):
    return [line for line in result.err.splitlines() if line.startswith("note:")]


def cpu_answer():
    return succeeded(run(*QUESTION, "--device", "cpu")).out


# Choice of the device and its layers

@test_each("discrete", "integrated")
def a_gpu_takes_the_model_where_no_device_is_named(kind):
    env = driver(kind)
    document = plan(env=env)
    expect_equal([d["device"] for d in document["devices"]], ["cpu", device()], "devices")
    expect(document["reasons"]["layers"].endswith(f"on {device()}: -ngl auto, they fit"), "the reason", document)
    expect(document["devices"][1]["embedding"] and document["devices"][1]["output"], "both ends", document)
    result = succeeded(run(*QUESTION, env=env))
    expect_equal((result.out, notes(result)), (cpu_answer(), []), "the answer")


@test
def a_software_renderer_is_used_only_when_named():
    env = driver("software")
    document = plan(env=env)
    expect_equal([d["device"] for d in document["devices"]], ["cpu"], "devices")
    expect(document["reasons"]["layers"].endswith("no usable GPU was found"), "the reason", document)
    expect_equal([d["device"] for d in plan("--device", device(), env=env)["devices"]], ["cpu", device()], "by name")
    expect_equal([d["device"] for d in plan(env={**env, "INFER_DEVICE": device()})["devices"]], ["cpu", device()],
                 "by environment")
    result = succeeded(run(*QUESTION, "-ngl", 3, env=env))
    expect(len(notes(result)) == 1 and "no GPU was found" in result.err, "layers were asked for", result)
    result = run(*QUESTION, "-ngl", 3, "--strict-offload", env=env)
    expect(result.code == FAILED and "no GPU was found" in result.err and not result.out, "strict", result)


@test
def one_flag_selects_the_cpu_alone():
    for flags in (("--device", "cpu"), ("-ngl", 0)):
        expect_equal([d["device"] for d in plan(*flags, env=driver())["devices"]], ["cpu"], f"devices with {flags}")


@test
def a_small_budget_takes_what_fits_and_says_why():
    seen = set()
    for budget in (1, 3, 4, 5, 6, 8, 64):  # MiB; the model is one of 5
        env = {**driver(), "INFER_VULKAN_BUDGET_MB": str(budget)}
        document = plan(env=env)
        gpu, reason = document["devices"][1], document["reasons"]["layers"]
        expect(gpu["needed"] <= 0.9 * (budget << 20), "less than the budget", document)
        result = succeeded(run(*QUESTION, env=env))
        expect_equal(result.out, cpu_answer(), "the answer")
        parts = gpu["layers"] + gpu["embedding"] + gpu["output"]
        seen.add(parts)
        if gpu["embedding"]:
            expect("they fit" in reason and not notes(result), "nothing to note", result)
        else:
            shortage = re.search(r"one more would need .* [KM]iB of the .* [KM]iB that \w+ has free less a margin", reason)
            expect(shortage, "why no more", reason)
            expect_equal(notes(result), [f"note: [offload] -ngl auto on {device()}: {parts} of "
                                         f"{document_parts(document)} layers fit; {shortage[0]}"], "the note")
    expect(len(seen) >= 3, "budgets of different use", seen)


def document_parts(document):
    return sum(d["layers"] for d in document["devices"]) + 2


@test
def the_plan_of_a_server_is_reported():
    with Server(DEMO_TARGET, "-t", 1, "-c", 512, env={**driver(), "INFER_VULKAN_BUDGET_MB": "4"}) as server:
        gpu = server.get("/stats").json["devices"][1]
        expect_equal(gpu["device"], device(), "the device")
        expect("layers fit; one more would need" in server.log(), "why", server.log())


# Failures

@test
def a_gpu_that_cannot_be_opened_is_not_used():
    result = succeeded(run(*QUESTION, env=driver(memory=1)))
    expect_equal(result.out, cpu_answer(), "the answer")
    expect(len(notes(result)) == 1 and "all on the CPU, since" in result.err and device() in result.err, "why", result)
    for flags in (("--strict-offload",), ("--device", device())):
        result = run(*QUESTION, *flags, env=driver(memory=1))
        expect(result.code == FAILED and f"[{device()}]" in result.err and not result.out, f"{flags}", result)


@test
def without_memory_at_any_call_there_are_fewer_layers_or_one_clear_line():
    command = ("run", "-m", SPM, "-p", "once upon", "-n", 3, "--temp", 0)
    expected = succeeded(run(*command, "--device", device())).out
    fewer, call, step = 0, 2, 1 if FULL else 9
    while True:
        result = run(*command, env=driver(memory=call))
        own = [line for line in result.err.splitlines() if not line.startswith(SAID)]
        if SAID not in result.err:  # there are not that many calls
            expect_equal((result.code, result.out, notes(result)), (0, expected, []), f"without a fault\n{result}\n")
            break
        expect(result.code in (0, FAILED), f"call {call}", result)
        if result.code == 0:
            expect_equal(result.out, expected, f"call {call}: the text")
            fewer += len(notes(result))
        else:
            expect(len(own) == 1 and f"[{device()}]" in own[0] and "memory" in own[0], f"call {call}: one line", result)
        call += step
    expect(call > 100 and fewer > 20 // step, "calls of all kinds", (call, fewer))


@test
def a_lost_device_is_one_clear_line():
    for submission in (1, 2, 7):
        result = run("run", "-m", SPM, "-p", "once upon", "-n", 8, env=driver(lost=submission))
        own = [line for line in result.err.splitlines() if not line.startswith(SAID)]
        expect(result.code == FAILED and SAID in result.err, f"submission {submission}", result)
        expect(len(own) == 1 and f"[{device()}]" in own[0] and "the device was lost" in own[0], "the line", result)


@test
def work_is_split_into_submissions_that_no_driver_aborts():
    """The 50th submission loses the device; with more work per submission there are not that many."""
    command = ("run", "-m", SPM, "-p", "once upon a time there was a " * 12, "-n", 1, "--temp", 0)
    whole = succeeded(run(*command, env=driver(lost=50)))
    expect(SAID not in whole.err, "few submissions", whole)
    little = {"INFER_VULKAN_SUBMISSION_MFLOP": "1"}
    cut = run(*command, env={**driver(lost=50), **little})
    expect(cut.code == FAILED and "the device was lost" in cut.err, "many submissions", cut)
    expect_equal(succeeded(run(*command, env={**driver(), **little})).out, whole.out, "the answer")


@test
def a_server_whose_device_is_lost_tells_its_clients_and_ends():
    server = Server(SPM, "-t", 1, env=driver(lost=12))
    with server:
        reply = server.ask("POST", "/v1/completions", {"prompt": "once", "max_tokens": 50, "ignore_eos": True})
        expect(reply.status >= 500 and "error" in reply.json, "the answer", reply)
        server.process.wait(timeout=PATIENCE)
    expect_equal(server.code, FAILED, f"exit code\n{server.err}\n")
    expect("engine_failed" in server.err and "the device was lost" in server.err, "the log", server.err)


# Without Vulkan

@test
def without_a_loader_or_a_driver_the_same_program_runs_on_the_cpu():
    """Where the loader is looked for first, there is a file that is not a library."""
    expected = cpu_answer()
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "libvulkan.so.1").write_text("no library")
        for env in ({"LD_LIBRARY_PATH": folder}, {"VK_DRIVER_FILES": "/dev/null", "VK_ICD_FILENAMES": "/dev/null"}):
            env["INFER_DEVICE"] = ""
            names = [d["name"] for d in json.loads(succeeded(run("devices", "--json", env=env)).out)["devices"]]
            expect_equal(names, ["cpu", "ref"], f"devices with {env}")
            result = succeeded(run(*QUESTION, env=env))
            expect_equal((result.out, notes(result)), (expected, []), f"the answer with {env}")
            result = run(*QUESTION, "--device", "vulkan0", env=env)
            expect(result.code == WRONG_USAGE and "vulkan0" in result.err, "what is not there", result)


@test
def variables_with_wrong_values_are_refused():
    for name in ("INFER_VULKAN_BUDGET_MB", "INFER_VULKAN_FAIL_ALLOCATION", "INFER_VULKAN_SUBMISSION_MFLOP"):
        result = run(*QUESTION, "--device", device(), env={name: "x"})
        expect(result.code == WRONG_USAGE and name in result.err and not result.out, name, result)


main()
