"""Wrong input: one line on standard error that names the problem, and nothing on standard output.

The exit code is 2 if the command line is wrong, and 1 for problems with a file, memory or the machine.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile

from harness import BINARY, PATIENCE, Result, expect, expect_equal, main, run, skip, test, test_each
from models import BPE, SPM, VOCAB_ONLY, succeeded

COMMANDS = ["run", "serve", "template", "quantize", "imatrix", "perplexity", "bench", "bench-serve", "plan",
            "tokenize", "logprobs", "inspect", "devices"]
WRONG_USAGE, FAILED = 2, 1


def expect_refusal(result, code, *needles):
    """One line without control characters, the exit code, no output; the line contains all of `needles`."""
    expect_equal(result.code, code, f"exit code of\n{result}\n")
    expect_equal(result.out, "", "standard output")
    line = result.err.removesuffix("\n")
    expect(result.err.endswith("\n") and line and line.isprintable(), "one printable line on standard error", result)
    expect(line.startswith("infer"), "the line says who speaks", result)
    for needle in needles:
        expect(str(needle) in line, f"the line names {str(needle)!r}", result)


def refused(code, needles, *arguments, **how):
    expect_refusal(run(*arguments, **how), code, *needles)


def with_model(*arguments):
    """The arguments of a short, valid completion, and further ones."""
    return ("run", "-m", SPM, "-p", "once", "-n", 2, *arguments)


@test
def more_threads_than_processors():
    n = len(os.sched_getaffinity(0))
    noted = succeeded(run(*with_model("-t", n + 1))).err
    expect(noted.startswith(f"note: -t {n + 1} is more than the {n} processor"), "a note", noted)
    expect("note" not in succeeded(run(*with_model("-t", n))).err, "none for as many as there are")


# Model files

@test
def missing_model():
    for arguments in (("run", "-p", "a", "-m"), ("logprobs", "-p", "a", "-m"), ("tokenize", "a", "-m"), ("inspect",)):
        refused(FAILED, ["no/such.gguf", "No such file"], *arguments, "no/such.gguf")
    refused(WRONG_USAGE, ["--model"], "-m", "", "-p", "a")


@test
def model_that_is_a_folder():
    with tempfile.TemporaryDirectory() as folder:
        refused(FAILED, ["directory"], "-m", folder, "-p", "a")


@test
def file_that_is_not_a_model():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "some.gguf")
        for content, needle in ((b"", "empty"), (b"Dear Sir or Madam,\n\x1b[31m" * 20, "expected a GGUF file")):
            path.write_bytes(content)
            refused(FAILED, ["some.gguf", needle], "-m", path, "-p", "a")
            refused(FAILED, ["some.gguf", needle], "inspect", path)


@test
def model_that_is_cut_off():
    content = SPM.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "cut.gguf")
        for length in (1, 4, 7, 8, 23, 24, 25, 100, 1000, 5000, 9000, 10000, 100000, len(content) - 1):
            path.write_bytes(content[:length])
            refused(FAILED, ["cut.gguf"], "-m", path, "-p", "a")
            refused(FAILED, ["cut.gguf"], "inspect", path)


@test
def architecture_that_is_not_there():
    content = SPM.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "other.gguf")
        path.write_bytes(content.replace(b"llama", b"lhama", 1))
        refused(FAILED, ["lhama", "general.architecture", "llama"], "-m", path, "-p", "a")


@test
def damaged_weights():
    """A NaN among the weights makes every logit NaN; no text is generated from that."""
    inspected = json.loads(run("inspect", SPM, "--json").out)
    at = next(t["file_offset"] for t in inspected["tensors"] if t["name"] == "blk.1.ffn_up.weight")
    content = bytearray(SPM.read_bytes())
    content[at:at + 4] = b"\x00\x00\xc0\x7f"
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(content)
        file.flush()
        refused(FAILED, ["NaN", "infer inspect --verify"], "-m", file.name, "-p", "once")


@test
def vocabulary_without_a_model():
    refused(FAILED, ["token_embd.weight"], "-m", VOCAB_ONLY, "-p", "a")
    expect_equal(run("tokenize", "-m", VOCAB_ONLY, "--json", "once").out,
                 run("tokenize", "-m", SPM, "--json", "once").out, "tokens")


# The command line

@test
def unknown_names():
    refused(WRONG_USAGE, ["frobnicate", "infer --help"], "frobnicate")
    refused(WRONG_USAGE, ["--frobnicate", "--help"], *with_model("--frobnicate"))
    refused(WRONG_USAGE, ["extra"], *with_model("extra"))
    refused(WRONG_USAGE, ["bad\\n\\x1B[31m"], "bad\n\x1b[31m")
    refused(FAILED, ["[gguf] no\\\\file: cannot open"], "-m", "no\\file", "-p", "a")  # one backslash becomes two


@test
def no_arguments_show_the_help():
    result = run()
    expect_equal((result.code, result.out), (WRONG_USAGE, ""), "exit code and standard output")
    expect_equal(result.err, run("--help").out, "standard error")


@test
def missing_arguments():
    refused(WRONG_USAGE, ["--model"], "run")
    refused(WRONG_USAGE, ["--model"], "-p", "a")
    refused(WRONG_USAGE, ["--model"], "-m")
    refused(WRONG_USAGE, ["--prompt"], "-m", SPM, "-p")
    refused(WRONG_USAGE, ["--model"], "tokenize", "a")
    refused(WRONG_USAGE, ["--model"], "logprobs", "-p", "a")
    refused(WRONG_USAGE, ["file"], "inspect")
    refused(WRONG_USAGE, ["--tokens", "-p"], "logprobs", "-m", SPM)
    refused(WRONG_USAGE, ["--tokens", "-p"], "logprobs", "-m", SPM, "-p", "a", "--tokens", "1")
    refused(WRONG_USAGE, ["--json", "--jsonl"], "tokenize", "-m", SPM, "--json", "--jsonl", "a")


# Wrong values, by flag. Every flag also refuses the empty value of an unset shell variable.
WRONG_VALUES = {
    "--ctx-size": ["-1", "x", "1.5", "", "4k"],
    "--predict": ["-2", "-5", "x", "", "1.5", "99999999999"],
    "--threads": ["0", "-1", "x", "", "100000"],
    "--seed": ["x", "", "-2", "1.5", "18446744073709551616"],
    "--temp": ["nan", "inf", "x", "", "1e99", "-inf", "0,8"],
    "--top-k": ["x", "", "1.5", "99999999999"],
    "--top-p": ["-0.1", "1.1", "nan", "x", ""],
    "--min-p": ["-0.1", "1.1", "nan", "x", ""],
    "--typical": ["-0.1", "1.1", "nan", ""],
    "--repeat-penalty": ["0", "-1", "nan", ""],
    "--repeat-last-n": ["-2", "x", ""],
    "--presence-penalty": ["nan", "inf", ""],
    "--xtc-probability": ["-0.1", "1.1", "nan", ""],
    "--mirostat": ["1", "3", "-1", "x", ""],
    "--dry-base": ["0.5", "nan", ""],
    "--logit-bias": ["", "x", "5", "+5", "5+", "5+x", "5*2", "5+nan", "5+1e99", "-1+1", "99999+1", "5+1,6+1"],
    "--device": ["", "nonsense", "cuda:x", "CPU "],
    "--n-gpu-layers": ["", "x", "-2", "1.5", "5x", "99999999999"],
    "--cache-type-k": ["", "x", "q4_k", "i32"],
    "--cache-type-v": ["", "x"],
}
SHORT = {"--ctx-size": "-c", "--predict": "-n", "--threads": "-t", "--seed": "-s", "--n-gpu-layers": "-ngl",
         "--cache-type-k": "-ctk", "--cache-type-v": "-ctv"}


@test_each(*WRONG_VALUES)
def wrong_value_of(flag):
    for value in WRONG_VALUES[flag]:
        for arguments in ((f"{flag}={value}",), (SHORT.get(flag, flag), value)):
            result = run("run", "-m", SPM, "-p", "once", *arguments)
            expect_refusal(result, WRONG_USAGE)
            name = flag[2:].replace("-", "_")
            expect(name in result.err.replace("-", "_"), f"the line names {name}", result)


@test
def a_cache_type_that_cannot_hold_the_heads():
    for flag, what in (("-ctk", "keys"), ("-ctv", "values")):  # heads of 16, blocks of 32
        refused(WRONG_USAGE, [what, "16", "Q8_0", "32"], *with_model(flag, "q8_0"))


@test
def the_last_of_a_repeated_flag_counts():
    given = (("-n", 1), ("-n", 5, "-n", 1), ("-n", 5))
    texts = [succeeded(run(*with_model("--temp", 0, *flags))).out for flags in given]
    expect(texts[0] == texts[1] != texts[2], "the text of the last flag", texts)


@test
def wrong_values_of_logprobs():
    for tokens in ("x", "1,2,x", "1,,2", "1,", ",1", " ", "1 2", "1.5", "99999999999", "-1", "366", "1,2,2147483647"):
        refused(WRONG_USAGE, ["token", "found"], "logprobs", "-m", SPM, "--json", "--tokens", tokens)
    for flag, value in (("--top", "0"), ("--top", ""), ("--top", "x"), ("--ubatch-size", "0"),
                        ("--ubatch-size", "100000")):
        refused(WRONG_USAGE, [flag], "logprobs", "-m", SPM, "--tokens", "1", flag, value)


@test
def unknown_cpu_level():
    for arguments in (("devices",), with_model()):
        refused(WRONG_USAGE, ["INFER_CPU", "nonsense", "scalar"], *arguments, env={"INFER_CPU": "nonsense"})


@test
def level_of_another_machine():
    other = "neon" if os.uname().machine == "x86_64" else "avx2"
    refused(WRONG_USAGE, ["INFER_CPU", other], "devices", env={"INFER_CPU": other})


# Prompts and memory

@test
def context_larger_than_memory():
    refused(FAILED, ["memory", "-c"], *with_model("-c", 99999999999))
    refused(FAILED, ["memory"], *with_model("-c", 10**18))
    refused(FAILED, ["memory"], "logprobs", "-m", SPM, "-p", "a", "-c", 10**18)


@test
def prompt_longer_than_the_context():
    for command in ("run", "logprobs"):
        refused(WRONG_USAGE, ["prompt", "context", "4"], command, "-m", SPM, "-p", "a b c d e f g h", "-c", 4)


@test
def empty_prompt_without_bos():
    refused(WRONG_USAGE, ["prompt"], "run", "-m", BPE, "-p", "")
    refused(WRONG_USAGE, ["prompt"], "run", "-m", BPE)
    refused(WRONG_USAGE, ["token"], "logprobs", "-m", BPE, "-p", "")


@test
def prompt_file_that_cannot_be_read():
    with tempfile.TemporaryDirectory() as folder:
        refused(FAILED, ["No such file"], "-m", SPM, "-f", f"{folder}/none.txt")
        refused(FAILED, ["directory"], "-m", SPM, "-f", folder)
        refused(FAILED, ["No such file"], "tokenize", "-m", SPM, "--file", f"{folder}/none.txt")


@test
def bad_lines_of_jsonl_are_numbered():
    good = '{"text": "once"}'
    for bad in ("nonsense", "[]", "3", '{"text": 5}', "{}", '{"text": "a", "add_special": 1}', "[" * 100000,
                '{"text": "a"', '{"text":"a"}{"text":"b"}'):
        result = run("tokenize", "-m", SPM, "--jsonl", stdin=f"{good}\n\n{bad}\n{good}\n")
        expect_equal(result.code, WRONG_USAGE, f"exit code of\n{result}\n")
        expect("line 3" in result.err and result.err.count("\n") == 1, "one line that names line 3", result)
        expect(result.out.count("\n") <= 1, "nothing after the bad line", result)
    result = run("tokenize", "-m", SPM, "--jsonl", stdin=b'{"text": "\xff"}\n')
    expect_refusal(result, WRONG_USAGE, "line 1")


# Output that cannot be written

@test
def full_disk():
    if not os.path.exists("/dev/full"):
        skip("no /dev/full")
    commands = [("--help",), ("--version",), ("run", "--help"), ("devices",), ("devices", "--json", "--ops"),
                ("inspect", SPM), ("inspect", SPM, "--json"), ("tokenize", "-m", SPM, "a"),
                ("tokenize", "-m", SPM, "--json", "a"), ("logprobs", "-m", SPM, "-p", "a"), with_model()]
    for arguments in commands:
        with open("/dev/full", "wb") as full:
            command = [BINARY, *map(str, arguments)]
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, check=False)
        expect_refusal(Result(command, done.returncode, b"", done.stderr), FAILED, "standard output")


@test
def reader_that_goes_away():
    """`infer ... | head -c 1`: the program ends soon and prints nothing more."""
    command = [BINARY, *map(str, ("run", "-m", SPM, "-p", "once", "-c", 100000, "-n", 99000, "--temp", 0,
                                     "--ignore-eos", "--quiet"))]  # more text than fits in a pipe
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.read(1)
        process.stdout.close()
        code = process.wait(timeout=PATIENCE)
        expect(code != 0, f"exit code {code}")
        expect_equal(process.stderr.read(), b"", "standard error")


# Help

@test_each(*COMMANDS)
def help_of(command):
    for flag in ("--help", "-h"):
        result = run(command, flag)
        expect_equal((result.code, result.err), (0, ""), f"exit code and standard error of {flag}")
        expect("--help" in result.out and "\x1b" not in result.out, "the flags are listed", result)


@test
def help_of_the_program():
    for flag in ("--help", "-h", "help"):
        result = run(flag)
        expect_equal((result.code, result.err), (0, ""), f"exit code and standard error of {flag}")
        for command in COMMANDS:
            expect(re.search(rf"^  infer {command} ", result.out, re.MULTILINE), f"{command} is listed", result)


@test
def version():
    result = run("--version")
    expect_equal((result.code, result.err), (0, ""), "exit code and standard error")
    expect(re.fullmatch(r"infer \d+\.\d+\.\d+\n", result.out), "a version", result)


main()
