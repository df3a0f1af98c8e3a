"""What the commands promise to users and scripts: flags, pipes, interrupts, machine-readable JSON."""

import itertools
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from harness import BINARY, PATIENCE, SOURCE_DIR, expect, expect_equal, main, run, test, test_each
from models import BPE, DEMO_TARGET, SPM, cpu_levels, reference_model, succeeded

GREEDY = ("--temp", 0, "--ignore-eos")
EOS = 2  # of SPM


def completion(*arguments, model=SPM, **how):
    """--raw: exactly the bytes of the text."""
    return succeeded(run("run", "--raw", "-m", model, *arguments, **how))


def text_of(*arguments, **how):
    return completion("--quiet", *arguments, **how).out


def n_generated(result):
    """From the line of timings."""
    return int(re.search(r"answer (\d+) tokens?", result.err.splitlines()[-1])[1])


# infer run

@test
def run_is_the_default_command():
    flags = ("-m", SPM, "-p", "once", "-n", 10, "--quiet", *GREEDY)
    expect(succeeded(run(*flags)).out == succeeded(run("run", *flags)).out != "", "same text without `run`")


@test
def flags_are_written_as_people_write_them():
    expected = text_of("-p", "once", "-n", "10", "--temp", "0", "-t", "2", "-ngl", "1", "-c", "64")
    for flags in (["-p", "once", "-n=10", "--temp=0", "-t=2", "-ngl=1", "-c=64"],
                  ["--prompt=once", "--predict=10", "--temperature=0", "--threads=2", "--n-gpu-layers=1",
                   "--ctx-size=64"]):
        expect_equal(text_of(*flags), expected, f"text with {flags}")


@test
def n_limits_the_text():
    texts = []
    for n in (0, 1, 2, 17):
        result = completion("-p", "once", "-n", n, *GREEDY)
        expect_equal(n_generated(result), n, "tokens generated")
        texts.append(result.out)
    expect_equal(texts[0], "", "text of no tokens")
    for shorter, longer in itertools.pairwise(texts):
        expect(longer.startswith(shorter) and longer != shorter, f"{longer!r} continues {shorter!r}")


@test
def a_full_context_ends_the_text_and_is_reported():
    for limit in ((), ("-n", 1000)):
        result = completion("-p", "once", "-c", 20, *limit, *GREEDY)
        expect(0 < n_generated(result) < 20, "ends in the context", result)
        expect("The context of 20 tokens is full; the text ends here." in result.err, "and says so", result)
    expect("full" not in completion("-p", "once", "-c", 20, "-n", 3, *GREEDY).err, "not where -n ends it")


@test
def context_beyond_the_trained_one_is_noted():
    for context, noted in ((512, False), (513, True)):
        result = completion("-p", "once", "-n", 1, "-c", context)
        expect_equal("trained with 512" in result.err, noted, f"note about a context of {context}: {result}")


@test
def quiet_says_nothing():
    expect_equal(completion("-p", "once", "-c", 20, "--quiet").err, "", "standard error")
    expect_equal(completion("-p", "once", "-n", 3, "-q").err, "", "standard error")


@test
def timings_are_one_line():
    rates = r"prompt 2 tokens, [\d.]+/s · answer 5 tokens, [\d.]+/s"
    bandwidth = r" · weights read at [\d.]+ GB/s \(memory bandwidth [\d.]+ GB/s\)"
    logits = r" · logits [0-9a-f]{16}"
    for flags, pattern in (((), rates), (("-v",), rates + logits), (("--stats",), rates + bandwidth)):
        result = completion("-p", "once", "-n", 5, *GREEDY, *flags)
        expect(re.fullmatch(pattern + "\n", result.err), f"standard error with {flags}", result)


@test
def memory_bandwidth_is_measured_on_request_only():
    """The probe reads 256 MiB, which shows in the program's peak memory."""
    def peak(*flags):
        command = [BINARY, *map(str, ("run", "-m", SPM, "-p", "once", "-n", 5, *GREEDY, *flags))]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        expect_equal(process.returncode, 0, "exit code")
        return usage.ru_maxrss // 1024  # MiB

    plain = peak()
    expect(plain < 128, f"{plain} MiB without --stats")
    expect(peak("--stats") > plain + 128, "--stats measures")


@test
def text_ends_its_line_unless_raw():
    flags = ("run", "-m", SPM, "-p", "once", "-n", 5, *GREEDY, "-q")
    text = succeeded(run(*flags, "--raw")).out
    expect(text and not text.endswith("\n"), "a text without the end of a line", text)
    expect_equal(succeeded(run(*flags)).out, text + "\n", "the text of a pipe")
    # A text that ends its line gets no second line end.
    newline = json.loads(succeeded(run("tokenize", "-m", SPM, "--json", "--no-add-special", "\n")).out)["tokens"][-1]
    forced = ("--logit-bias", f"{newline}+1000")
    ended = succeeded(run(*flags, *forced, "--raw")).out
    expect(ended.endswith("\n"), "a text that ends with a line feed", ended)
    expect_equal(succeeded(run(*flags, *forced)).out, ended, "the same text")
    # No text, no output.
    expect_equal(succeeded(run(*flags, "--logit-bias", f"{EOS}+1000")).out, "", "an empty text")


@test
def piped_output_holds_no_control_characters():
    result = completion("-p", "once upon a time", "-n", 100, *GREEDY)
    for what, text in (("standard output", result.out), ("standard error", result.err)):
        expect(text.replace("\n", "").isprintable(), f"{what} is printable", result)


@test
def output_is_valid_text_whatever_bytes_the_model_says():
    """The model with byte-level tokens generates bytes that are not valid UTF-8."""
    out = completion("-p", "once", "-n", 100, "--quiet", *GREEDY, model=BPE).out_bytes
    expect("\ufffd" in out.decode("utf-8", "strict"), "such bytes are replaced")


@test
def end_of_text_ends_it_unless_ignored():
    always = ("-p", "once", "-n", 10, "--logit-bias", f"{EOS}+1000")
    ended, ignored = completion(*always), completion(*always, "--ignore-eos")
    expect_equal((ended.out, n_generated(ended)), ("", 1), "text and tokens")
    expect_equal(n_generated(ignored), 10, "tokens with --ignore-eos")


@test
def seeds():
    def sampled(*flags):
        return text_of("-p", "once", "-n", 30, "--temp", 2, "--ignore-eos", *flags)

    expect_equal(sampled("--seed", 7), sampled("-s", 7), "text with the same seed")
    expect_equal(sampled("--seed", 7, "-t", 1), sampled("--seed", 7, "-t", 3), "text with other threads")
    expect_equal(len({sampled("--seed", seed) for seed in (0, 7, 8, 2**32 + 7, 2**64 - 1)}), 5, "texts of 5 seeds")
    for random in ((), ("--seed", -1)):
        expect(sampled(*random) != sampled(*random), f"two texts of random seeds {random} differ")


@test
def weights_in_memory_say_the_same():
    mapped, read = (text_of("-p", "once", "-n", 20, *GREEDY, *flags) for flags in ((), ("--no-mmap",)))
    expect_equal(read, mapped, "text with --no-mmap")


@test
def greedy_needs_no_seed():
    expect_equal(len({text_of("-p", "once", "-n", 20, *GREEDY, "--seed", seed) for seed in (1, 2, 3)}), 1, "texts")
    expect_equal(text_of("-p", "once", "-n", 20, "--top-k", 1, "--seed", 5, "--ignore-eos"),
                 text_of("-p", "once", "-n", 20, *GREEDY), "text of the best token alone")


@test
def logit_bias_forbids_and_forces():
    forced = text_of("-p", "once", "-n", 5, "--logit-bias", "300+1000")
    piece = succeeded(run("logprobs", "-m", SPM, "--tokens", "300", "--top", 1)).out.split("\t")[1]
    expect_equal(forced, piece * 5, "text of one token")
    first = text_of("-p", "once", "-n", 1, *GREEDY)
    best = max_token("once")
    expect(text_of("-p", "once", "-n", 1, *GREEDY, "--logit-bias", f"{best}-1000") != first, "another first token")


def max_token(prompt):
    result = succeeded(run("logprobs", "-m", SPM, "-p", prompt, "--top", 1, "--json"))
    return json.loads(result.out)["positions"][-1][0][0]


@test
def prompt_comes_from_flag_file_and_pipe():
    flags = ("-n", 12, *GREEDY)
    whole = text_of("-p", "once\n\nupon\n\na time", *flags)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "prompt.txt")
        path.write_text("upon")
        expect_equal(text_of("-p", "once", "-f", path, *flags, stdin="a time"), whole, "text")
        expect_equal(text_of("-f", path, *flags, stdin="a time"), text_of("-p", "upon\n\na time", *flags), "text")
        expect_equal(text_of("-f", path, *flags), text_of("-p", "upon", *flags), "text")
    expect_equal(text_of(*flags, stdin="once"), text_of("-p", "once", *flags), "text")


@test
def empty_prompt_starts_from_bos():
    result = completion("-p", "", "-n", 3, *GREEDY)
    expect("prompt 1 token," in result.err and result.out, "text after BOS", result)


@test
def interrupt_ends_the_text_cleanly():
    flags = ["run", "-m", SPM, "-p", "once", "-c", 100000, *GREEDY]
    command = [BINARY, *map(str, flags), "-n", "99000"]
    pipe = subprocess.PIPE
    # Unbuffered: communicate() would skip what a buffer has read beyond the first bytes.
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, bufsize=0) as process:
        out = process.stdout.read(10)
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=PATIENCE)
    text, err = (out + rest).decode(), err.decode()
    expect_equal(process.returncode, 130, f"exit code, with standard error {err!r}")
    others = [line for line in err.splitlines()[:-1] if not line.startswith("note: ")]
    expect(not others and err.endswith("\n"), f"notes and one line of timings: {err!r}")
    n = int(re.search(r"answer (\d+) tokens?", err)[1])
    expect(0 < n < 99000, f"{n} tokens were generated")
    expect_equal(text, succeeded(run(*flags, "-n", n, "--quiet")).out, "the text so far")


@test
def model_that_ends_by_itself():
    """A trained model stops before -n or the context is reached."""
    flags = ("--raw", "-p", "Once upon a time", "-c", 500, "-n", 450, "--temp", 0)
    model = DEMO_TARGET
    ended, ignored = completion(*flags, model=model), completion(*flags, "--ignore-eos", model=model)
    expect(20 < n_generated(ended) < 450 and "full" not in ended.err, "ends at the end of the story", ended)
    expect_equal(n_generated(ignored), 450, "tokens with --ignore-eos")
    expect(ignored.out.startswith(ended.out), "which continues the same text", ignored)


# infer tokenize

TEXTS = ["", "once", "once upon a time", " two  blanks ", "line\nfeed\ttab", "naïve ☃ 🦙", "<s>", "</s>once", "\u0000",
         "x" * 3000]


def tokens_of(text, *flags, model=SPM):
    return json.loads(succeeded(run("tokenize", "-m", model, "--json", *flags, stdin=text)).out)["tokens"]


@test_each("spm", "bpe")
def jsonl_tokenizes_each_line_as_alone(name):
    model = {"spm": SPM, "bpe": BPE}[name]
    cases = [(text, add, parse) for text in TEXTS for add in (True, False) for parse in (True, False)]
    lines = [json.dumps({"text": text, "add_special": add, "parse_special": parse}) for text, add, parse in cases]
    # Blank lines, Windows line ends and a missing last line end make no difference.
    answers = succeeded(run("tokenize", "-m", model, "--jsonl", stdin="\n\r\n".join(lines))).out.splitlines()
    expect_equal(len(answers), len(cases), "answers")
    for answer, (text, add, parse) in zip(answers, cases):
        flags = ([] if add else ["--no-add-special"]) + ([] if parse else ["--no-parse-special"])
        expect_equal(json.loads(answer), {"tokens": tokens_of(text, *flags, model=model)}, f"tokens of {text[:40]!r}")


@test
def special_tokens_are_added_and_parsed_unless_told():
    expect_equal(tokens_of("</s>"), [1, EOS], "tokens")
    expect_equal(tokens_of("</s>", "--no-add-special"), [EOS], "tokens without BOS")
    expect(EOS not in tokens_of("</s>", "--no-parse-special"), "as text")


@test
def text_to_tokenize_comes_from_argument_file_or_pipe():
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("once upon\n")
        file.flush()
        expected = tokens_of("once upon\n")
        expect_equal(tokens_of("other", "--file", file.name), expected, "tokens of a file")
        expect_equal(tokens_of("other", "once upon\n"), expected, "tokens of an argument")


@test
def tokens_are_shown_with_their_text():
    lines = succeeded(run("tokenize", "-m", SPM, "once\x1b[31m")).out.splitlines()
    ids = [int(line.split("\t")[0]) for line in lines]
    expect_equal(ids, tokens_of("once\x1b[31m"), "tokens")
    expect(all(line.replace("\t", "").isprintable() for line in lines), f"safe for a terminal: {lines}")


# infer logprobs

@test_each("spm", "bpe")
def logprobs_are_a_distribution(name):
    model = {"spm": SPM, "bpe": BPE}[name]
    document = json.loads(succeeded(run("logprobs", "-m", model, "-p", "once upon a time", "--top", 100000,
                                        "--json")).out)
    expect_equal(document["tokens"], tokens_of("once upon a time", model=model), "tokens")
    expect_equal(len(document["positions"]), len(document["tokens"]), "positions")
    for entries in document["positions"]:
        tokens, values = zip(*entries)
        expect_equal(sorted(tokens), list(range(len(tokens))), "tokens of the vocabulary")
        expect(list(values) == sorted(values, reverse=True), "best first")
        total = math.fsum(map(math.exp, values))
        expect(abs(total - 1) < 1e-5, f"probabilities sum up to {total}")


@test
def top_cuts_the_list():
    whole = json.loads(succeeded(run("logprobs", "-m", SPM, "-p", "once", "--top", 100000, "--json")).out)
    default = json.loads(succeeded(run("logprobs", "-m", SPM, "-p", "once", "--json")).out)
    expect_equal(default["positions"], [entries[:20] for entries in whole["positions"]], "20 likeliest")


@test
def logprobs_as_text():
    lines = succeeded(run("logprobs", "-m", SPM, "-p", "once upon", "--top", 3)).out.splitlines()
    expect_equal([line.split("\t")[0] for line in lines], ["0", "1", "2"], "positions")
    expect(all(len(line.split("\t")) == 5 for line in lines), f"three tokens each: {lines}")


# infer inspect

@test_each("own", "quant-q4_k", "qwen3moe")
def inspect_adds_up(name):
    model = SPM if name == "own" else reference_model(name)[0]
    document = json.loads(succeeded(run("inspect", model, "--json")).out)
    tensors = document["tensors"]
    totals = {
        "n_tensors": len(tensors),
        "n_parameters": sum(math.prod(t["shape"]) for t in tensors),
        "n_bytes": sum(t["n_bytes"] for t in tensors),
    }
    for key, value in totals.items():
        expect_equal(document["totals"][key], value, key)
        expect_equal(sum(of_type[key] for of_type in document["types"].values()), value, f"{key} by type")
    expect_equal(document["file_bytes"], pathlib.Path(model).stat().st_size, "bytes of the file")
    expect(max(t["file_offset"] + t["n_bytes"] for t in tensors) <= document["file_bytes"], "data lies in the file")
    keys = {entry["key"]: entry.get("value") for entry in document["metadata"]}
    expect(keys["general.architecture"] in ("llama", "qwen3moe"), "architecture")


@test
def inspect_for_people():
    result = succeeded(run("inspect", SPM, "--tensors"))
    for needle in ("llama.block_count", "token_embd.weight", "blk.1.ffn_down.weight", "120896"):
        expect(needle in result.out, f"names {needle}", result)
    expect(result.out.replace("\n", "").isprintable(), "printable", result)


@test
def architectures_are_listed_for_people_and_programs():
    listed = json.loads(succeeded(run("inspect", "--architectures", "--json")).out)["architectures"]
    lines = succeeded(run("inspect", "--architectures")).out.splitlines()
    expect_equal([line.split(None, 1) for line in lines], [[e["name"], e["models"]] for e in listed], "the text")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", (SOURCE_DIR / "docs" / "architectures.md").read_text(), re.M)
    expect_equal(rows[2:], [(e["name"], e["models"]) for e in listed], "docs/architectures.md")
    for args in ((), ("--architectures", SPM), ("--architectures", "--tensors"), ("--architectures", "--verify")):
        result = run("inspect", *args)
        expect_equal(result.code, 2, f"exit code of {args}")
        expect(result.out == "" and "--architectures" in result.err, "says what to give", result)


@test
def verify_finds_what_is_not_finite():
    expect_equal(run("inspect", SPM, "--verify").code, 0, "exit code of a good model")
    document = json.loads(succeeded(run("inspect", SPM, "--json")).out)
    damaged = next(t for t in document["tensors"] if t["name"] == "blk.1.ffn_up.weight")
    content = bytearray(SPM.read_bytes())
    at = damaged["file_offset"] + 4 * (3 * damaged["shape"][1] + 5)
    content[at:at + 4] = b"\x00\x00\xc0\x7f"  # NaN
    with tempfile.NamedTemporaryFile(suffix=".gguf") as file:
        file.write(content)
        file.flush()
        result = run("inspect", file.name, "--verify")
        expect_equal(result.code, 1, "exit code of a damaged one")
        expect("blk.1.ffn_up.weight" in result.out and "[3, 5]" in result.out, "names the place", result)
        expect_equal(run("inspect", file.name).code, 0, "exit code without --verify")


# infer devices

@test
def devices_as_json():
    devices = {device["name"]: device for device in json.loads(succeeded(run("devices", "--json")).out)["devices"]}
    expect(set(devices) >= {"cpu", "ref"}, f"devices {list(devices)}")
    expect_equal(devices["cpu"]["levels"][0], "scalar", "the first level")
    for device in devices.values():
        expect(0 <= device["memory_free"] <= device["memory_total"], f"memory of {device}")
    operations = json.loads(succeeded(run("devices", "--json", "--ops")).out)["devices"]
    for device in operations:
        expect({"F32", "Q4_K", "Q8_0"} <= set(device["product_types"]), f"types of {device['name']}")
        expect(device["operations"]["matmul"] is True, f"operations of {device['name']}")


@test
def forced_level_is_the_one_in_use():
    for level in cpu_levels():
        devices = json.loads(succeeded(run("devices", "--json", env={"INFER_CPU": level})).out)["devices"]
        expect(f", {level}," in devices[0]["description"], f"{level} in {devices[0]['description']!r}")


@test
def devices_for_people():
    result = succeeded(run("devices", "--ops"))
    for needle in ("cpu", "ref", "iB free", "INFER_CPU", "paged_attention", "Q4_K"):
        expect(needle in result.out, f"names {needle}", result)
    expect(result.out.replace("\n", "").isprintable(), "printable", result)


main()
