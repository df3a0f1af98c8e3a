"""What infer quantize refuses; it never leaves a partly written file."""

import math
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time

from harness import BINARY, PATIENCE, Result, expect, expect_equal, main, run, skip, test
from models import succeeded
from quantizing import FAILED, INTERRUPTED, WRONG_USAGE, fixtures, folder, make_model, model, quantized, refused


# Refusals

@test
def output_that_is_the_input():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        shutil.copy(model(), out / "m.gguf")
        (out / "link.gguf").symlink_to("m.gguf")
        (out / "hard.gguf").hardlink_to(out / "m.gguf")
        for target in ("m.gguf", "link.gguf", "hard.gguf", "./m.gguf"):
            refused(WRONG_USAGE, ["input"], out / "m.gguf", f"{out}/{target}", "Q8_0", folder_of=out)
        expect((out / "m.gguf").read_bytes() == model().read_bytes(), "the input is as it was")


@test
def wrong_arguments():
    out = folder() / "never.gguf"
    refused(WRONG_USAGE, ["NONSENSE", "Q4_K_M", "IQ4_XS"], model(), out, "NONSENSE")
    refused(WRONG_USAGE, ["required"])
    for arguments in ((model(),), (model(), out)):
        refused(WRONG_USAGE, ["TYPE", "missing"], *arguments)
    for flag in ("--output-tensor-type", "--token-embedding-type"):
        for value in ("", "Q4_K_M", "Q8_K", "I32", "nonsense"):
            refused(WRONG_USAGE, [flag], model(), out, "Q8_0", flag, value)
    for value in ("", "Q8_0", "=Q8_0", "a=", "a=nonsense", "a(b=Q8_0", "[=Q8_0", "a" * 5000 + "=Q8_0"):
        refused(WRONG_USAGE, [], model(), out, "Q4_K_M", "--tensor-type", value)
    for value in ("0", "-1", "x", "", "100000"):
        refused(WRONG_USAGE, ["threads"], model(), out, "Q8_0", "-t", value)
    refused(WRONG_USAGE, ["keep-split"], model(), out, "Q8_0", "--keep-split", "--split-size", "1G")
    expect(not out.exists(), "nothing is written")


@test
def places_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        refused(FAILED, ["there is no folder"], model(), out / "no" / "m.gguf", "Q8_0", folder_of=out)
        refused(FAILED, ["it is a folder"], model(), out, "Q8_0", folder_of=out)
        refused(FAILED, [], model(), "/proc/m.gguf", "Q8_0")


@test
def input_that_is_damaged():
    content = model().read_bytes()
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        path = out / "in.gguf"
        for length in (0, 3, 100, 20000, len(content) // 2, len(content) - 1):
            path.write_bytes(content[:length])
            refused(FAILED, ["in.gguf"], path, out / "m.gguf", "Q8_0", folder_of=out)
        refused(FAILED, ["No such file"], out / "none.gguf", out / "m.gguf", "Q8_0", folder_of=out)


@test
def values_that_are_not_finite():
    for tensor, bad, shown in (("blk.1.ffn_up.weight", math.nan, "NaN"), ("output.weight", -math.inf, "-infinity"),
                               ("output_norm.weight", math.inf, "infinity")):
        def change(tensors, tensor=tensor, bad=bad):
            tensors[tensor][1][77] = bad
        with tempfile.TemporaryDirectory() as name:
            out = pathlib.Path(name)
            (out / "in.gguf").write_bytes(make_model(change))
            for type_name in ("Q4_K_M", "F16", "F32"):
                place = "[77]" if "norm" in tensor else "[0, 77]"
                refused(FAILED, [tensor, place, shown], out / "in.gguf", out / "m.gguf", type_name, folder_of=out)


@test
def values_beyond_f16():
    def change(tensors):
        tensors["blk.0.attn_k.weight"][1][256] = 70000.0
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        (out / "in.gguf").write_bytes(make_model(change))
        refused(FAILED, ["blk.0.attn_k.weight", "[1, 0]", "F16"], out / "in.gguf", out / "m.gguf", "F16", folder_of=out)
        succeeded(run("quantize", out / "in.gguf", out / "m.gguf", "BF16"))


@test
def quantizing_twice_must_be_asked_for():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        refused(WRONG_USAGE, ["--allow-requantize", "Q8_0"], quantized("Q8_0"), out / "m.gguf", "Q4_K_M", folder_of=out)
        succeeded(run("quantize", quantized("Q8_0"), out / "m.gguf", "Q4_K_M", "--allow-requantize"))
        # Nothing needs quantizing, so --allow-requantize is not needed.
        succeeded(run("quantize", quantized("Q8_0"), out / "same.gguf", "Q8_0"))
        expect((out / "same.gguf").read_bytes() == quantized("Q8_0").read_bytes(), "the same file")


# Interrupted in the middle

def big_model(path):
    """Four billion zeros: a sparse file, and more work than is done before the test looks, however busy the machine."""
    n = 1 << 32
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + fixtures.string("blk.0.ffn_up.weight")
    head += struct.pack("<IQQIQ", 2, 1024, n // 1024, 1, 0)
    head += bytes(-len(head) % 32)
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(len(head) + 2 * n)


@test
def interrupt_leaves_nothing():
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        big_model(out / "big.gguf")
        (out / "m.gguf").write_text("old")
        command = [BINARY, "quantize", str(out / "big.gguf"), str(out / "m.gguf"), "Q4_0", "-t", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            while len(list(out.iterdir())) < 3 and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            out_bytes, err_bytes = process.communicate(timeout=PATIENCE)
        result = Result(command, process.returncode, out_bytes, err_bytes)
        expect_equal(process.returncode, INTERRUPTED, f"exit code of\n{result}\n")
        expect_equal(sorted(p.name for p in out.iterdir()), ["big.gguf", "m.gguf"], "files")
        expect_equal((out / "m.gguf").read_text(), "old", "the old file")


@test
def killed_at_any_moment():
    """The name refers to the old file or to the complete new one."""
    expected = quantized("IQ4_NL").read_bytes()
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        finished = killed = 0
        delay = 0.0
        while finished < 3 and delay < 120:
            (out / "m.gguf").write_text("old")
            command = [BINARY, "quantize", str(model()), str(out / "m.gguf"), "IQ4_NL", "-t", "2"]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
                time.sleep(delay)
                process.kill()
                process.wait()
            content = (out / "m.gguf").read_bytes()
            expect(content in (b"old", expected), f"{len(content)} bytes of neither, killed after {delay} s")
            killed += content == b"old"
            finished += content == expected
            # However slowly the machine runs it, the program is killed at many moments and in the end comes first.
            delay += max(0.004, delay / 30)
        expect(killed > 0 and finished > 0, f"killed early {killed} times, late {finished} times")


@test
def full_disk():
    """A limit on file sizes makes a write fail half way, as a full disk does."""
    with tempfile.TemporaryDirectory() as name:
        out = pathlib.Path(name)
        (out / "m.gguf").write_text("old")

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (200000, 200000))

        command = [BINARY, "quantize", str(model()), str(out / "m.gguf"), "Q8_0"]
        done = subprocess.run(command, capture_output=True, preexec_fn=limit, check=False)
        result = Result(command, done.returncode, done.stdout, done.stderr)
        expect_equal((result.code, result.out), (FAILED, ""), f"exit code and output of\n{result}\n")
        expect("m.gguf" in result.err and "File too large" in result.err and result.err.count("\n") == 1,
               "one line that names file and reason", result)
        expect_equal([p.name for p in out.iterdir()], ["m.gguf"], "files")
        expect_equal((out / "m.gguf").read_text(), "old", "the old file")


@test
def disk_that_is_too_small():
    script = ('mount -t tmpfs -o size=500k none "$1" || exit 77; "$2" quantize "$3" "$1/m.gguf" Q8_0; code=$?; '
              'ls -A "$1"; exit $code')
    with tempfile.TemporaryDirectory() as name:
        command = ["unshare", "-rm", "sh", "-c", script, "sh", name, BINARY, str(model())]
        try:
            done = subprocess.run(command, capture_output=True, check=False)
        except OSError:
            skip("no unshare")
        if done.returncode == 77 or b"unshare" in done.stderr:
            skip("no tmpfs can be mounted here")
        result = Result(command, done.returncode, done.stdout, done.stderr)
        expect_equal((result.code, result.out), (FAILED, ""), f"exit code and files left of\n{result}\n")
        expect("of free space" in result.err and result.err.count("\n") == 1, "one line", result)


main()
