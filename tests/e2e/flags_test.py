"""How the command line is read: an option must be known by its whole name, and takes one value."""

import json
import os
import pty
import re

import llama_cpp_options
from harness import BINARY, expect, expect_equal, main, run, test, test_each
from models import SPM, succeeded
from serving import Server

COMMANDS = ["run", "serve", "template", "quantize", "imatrix", "perplexity", "bench", "bench-serve", "plan",
            "tokenize", "logprobs", "inspect", "devices"]
WRONG_USAGE = 2


def options_of(command):
    """The names that a command's --help lists."""
    listed = re.findall(r"^  (-[^ ]+)", succeeded(run(command, "--help")).out, re.MULTILINE)
    return {name for names in listed for name in names.split(",")}


def expect_unknown(flag, result):
    """Refused by name, in one sentence, without doing anything."""
    expect_equal(result.code, WRONG_USAGE, f"exit code of\n{result}\n")
    expect_equal(result.out, "", f"standard output of\n{result}\n")
    expect(f"Unknown option {flag}. " in result.err, f"{flag} is refused by its name", result)
    expect_equal(result.err.count("\n"), 1, f"lines on standard error of\n{result}\n")


def as_typed(option):
    return (option.name,) if option.value is None else (option.name, option.value)


@test_each("run", "serve")
def options_of_llama_cpp_that_work_are_listed(command):
    listed = options_of(command)
    missing = [option.name for option in llama_cpp_options.of(command, "works") if option.name not in listed]
    expect_equal(missing, [], "options that --help does not list")
    others = {option.name for option in llama_cpp_options.OPTIONS} - {
        option.name for option in llama_cpp_options.of(command, "works")}
    expect_equal(sorted(others & listed & {option.name for outcome in ("nothing", "refused")
                                           for option in llama_cpp_options.of(command, outcome)}), [],
                 "options that --help lists although they do nothing")


@test_each("run", "serve")
def options_of_llama_cpp_that_cannot_be_done_are_refused_by_name(command):
    refused = llama_cpp_options.of(command, "refused")
    expect(len(refused) > 100, "the table has options that are refused", len(refused))
    for option in refused:
        result = run(command, "-m", SPM, *as_typed(option))
        expect_equal((result.code, result.out), (WRONG_USAGE, ""), f"exit code and output of\n{result}\n")
        line = result.err.removesuffix("\n")
        found = re.fullmatch(rf"infer {command}: {re.escape(option.name)}( \S+)? is not supported\. (.+)\.", line)
        expect(found and len(found[2]) > 6, f"{option.name} is refused with a reason", result)


def expect_all_named(options, text):
    for option in options:
        expect(f"{option.name} has nothing to do: " in text, f"-v names {option.name}", text)


@test
def options_of_llama_cpp_with_nothing_to_do_are_accepted():
    options = llama_cpp_options.of("run", "nothing")
    flags = [argument for option in options for argument in as_typed(option)]
    short = ("-m", SPM, "-p", "once", "-n", 3, "--temp", 0)
    plain, verbose = succeeded(run(*short, *flags)), succeeded(run(*short, *flags, "-v"))
    expect_equal(plain.out, succeeded(run(*short)).out, "the text")
    expect("nothing to do" not in plain.err, "nothing about them without -v", plain)
    expect_all_named(options, verbose.err)
    options = llama_cpp_options.of("serve", "nothing")
    with Server(SPM, *(argument for option in options for argument in as_typed(option)), "-v") as server:
        expect_all_named(options, server.log())


@test
def no_option_of_llama_cpp_is_read_as_another():
    """Those of the other program too: known with their own name, or refused."""
    for command in ("run", "serve"):
        here = {option.name for option in llama_cpp_options.OPTIONS if command in option.programs}
        for option in llama_cpp_options.OPTIONS:
            if option.name in here:
                continue
            result = run(command, "-m", SPM, *as_typed(option), "--no-such-option")
            expect_equal((result.code, result.out), (WRONG_USAGE, ""), f"exit code and output of\n{result}\n")
            expect(any(f"Unknown option {name}." in result.err for name in (option.name, "--no-such-option")),
                   f"{option.name} is unknown, or known by its own name", result)


@test_each(*COMMANDS)
def several_letters_are_one_option(command):
    for flag in ("-rex", "-fx", "-hx", "-nx", "-cx", "-sx", "-tx", "-mx", "-qh", "-jx", "-hh"):
        expect_unknown(flag, run(command, flag, "off"))


@test
def misspelled_names_get_the_nearest_one():
    for wrong, right in (("--tmep", "--temp"), ("--ctx-sise", "--ctx-size"), ("--theads", "--threads"),
                         ("-ngk", "-ngl"), ("--no-mmpa=1", "--no-mmap")):
        result = run("run", "-m", SPM, wrong, 1)
        expect(f"Unknown option {wrong}. Did you mean {right}? " in result.err, right, result)
    expect("Did you mean" not in run("run", "--frobnicate").err, "nothing is near")
    for wrong, right in (("quantise", "quantize"), ("sevre", "serve"), ("benhc", "bench")):
        for arguments in ((wrong,), ("help", wrong)):
            result = run(*arguments)
            expect_equal((result.code, result.out), (WRONG_USAGE, ""), f"exit code and output of\n{result}\n")
            expect(f"Unknown command {wrong}. Did you mean {right}? " in result.err, right, result)


@test
def help_and_version_are_commands():
    expect_equal(succeeded(run("version")).out, succeeded(run("--version")).out, "the version")
    expect_equal(succeeded(run("run", "--version")).out, succeeded(run("--version")).out, "the version of run")
    expect_equal(succeeded(run("help")).out, succeeded(run("--help")).out, "the help")
    for command in COMMANDS:
        text = succeeded(run("help", command)).out
        expect_equal(text, succeeded(run(command, "--help")).out, f"the help of {command}")
        examples = text.split("\nExamples:\n")[1].strip().split("\n")
        expect_equal(len(examples), 2, f"examples of {command}")
        for example in examples:
            expect(example.strip().startswith(f"infer {command}"), "an example", example)
            known = options_of(command)
            for flag in re.findall(r" (-[-a-z]+)", example):
                expect(flag in known, f"{flag} of the example is an option", example)


def help_on_terminal(columns):
    """The help of `run` on a terminal of that width."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.pop("COLUMNS", None)
        os.system(f"stty cols {columns}")
        os.execv(BINARY, [str(BINARY), "help", "run"])
    text = b""
    try:
        while part := os.read(terminal, 65536):
            text += part
    except OSError:  # the end of a pseudo-terminal
        pass
    os.waitpid(pid, 0)
    os.close(terminal)
    return text.decode().replace("\r\n", "\n")


@test
def help_is_wrapped():
    for width in (70, 90, 140):
        for text in (succeeded(run("run", "--help", env={"COLUMNS": str(width)})).out, help_on_terminal(width)):
            lines = text.split("\n")
            longest = max(lines, key=len)
            expect(len(longest) <= width, f"at most {width} columns", longest)
            expect(len(longest) > width - 15, f"lines use the {width} columns", longest)
            expect("-ngl,--n-gpu-layers,--gpu-layers" in text.replace("\n    ", ""), "aliases stand together", text)


@test
def a_bare_word_is_the_model():
    short = ("-p", "once", "-n", 3, "--temp", 0, "-q")
    text = succeeded(run("-m", SPM, *short)).out
    for arguments in ((SPM, *short), ("run", SPM, *short), ("run", *short, SPM)):
        expect_equal(succeeded(run(*arguments)).out, text, "the text")
    result = run("no-such.gguf", "-p", "a")
    expect(result.code == 1 and "no-such.gguf" in result.err, "a model that is not there", result)
    result = run("run", "-m", SPM, SPM, "-p", "a")
    expect(result.code == WRONG_USAGE and "Unexpected argument" in result.err, "two models", result)
    result = run("serve", "no-such.gguf")
    expect(result.code == 1 and "no-such.gguf" in result.err, "the model of a server", result)


@test
def options_of_several_letters_are_listed_and_work():
    expect({"-ngl", "-ctk", "-ctv", "-st", "-sys", "-sysf", "-tb", "-Cr", "-dev", "-ts", "-ncmoe", "-md", "-ngld",
            "-ctkd", "-ctvd"} <= options_of("run"), "--help lists them as they are typed", options_of("run"))
    expect("-md" in options_of("plan"), "--help of plan lists -md")
    expect_unknown("-md", run("tokenize", "-m", SPM, "-md", SPM))
    short = succeeded(run("-m", SPM, "-p", "once", "-n", 3, "--temp", 0, "-ngl", 0, "-ctk=f32", "-ctv", "f32"))
    long = succeeded(run("-m", SPM, "-p", "once", "-n", 3, "--temp", 0, "--n-gpu-layers", 0, "--cache-type-k=f32",
                         "--cache-type-v", "f32"))
    expect_equal(short.out, long.out, "the text")


@test
def a_joined_value_is_refused_with_what_to_write():
    for glued, advice in (("-n5", "Write -n 5."), ("-n-1", "Write -n -1."), ("-t2", "Write -t 2."),
                          ("-mmodel.gguf", "Write -m model.gguf."), ("-pOnce upon", "Write -p Once upon."),
                          ("-s42", "Write -s 42."), ("-temp", "Write --temp."), ("-seed=4", "Write --seed.")):
        result = run("-m", SPM, glued)
        expect_unknown(glued, result)
        expect(advice in result.err, advice, result)
    result = run("-m", SPM, "-fx")
    expect_unknown("-fx", result)
    expect("Write" not in result.err and "infer run --help" in result.err, "no file x is suggested", result)


@test
def an_option_takes_one_value():
    for extra in (("-r", "X", "foo", "bar"), ("--logit-bias", "5+1", "foo"), ("-p", "Once", "foo")):
        result = run("-m", SPM, "-p", "once", *extra)
        expect_equal((result.code, result.out), (WRONG_USAGE, ""), f"exit code and output of\n{result}\n")
        expect("Unexpected argument foo." in result.err, "the word is named", result)
    whole = succeeded(run("-m", SPM, "-p", "once", "-n", 20, "--temp", 0, "-q", "--raw")).out
    stop = whole[4:7]
    stopped = succeeded(run("-m", SPM, "-p", "once", "-n", 20, "--temp", 0, "-q", "--raw", "-r", "no such text",
                            "-r", stop))
    expect_equal(stopped.out, whole[:whole.index(stop)], "the text before the second -r")


def words(*flags):
    return succeeded(run("-m", SPM, "-p", "Once upon a time", "-n", 12, "-q", "-s", 5, *flags)).out


@test
def samplers_apply_in_their_order():
    plain = words()
    expect_equal(words("--samplers", "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"), plain,
                 "the default order")
    expect_equal(words("--sampler-seq", "edskypmxt"), plain, "the default order in letters")
    off = ("--top-p", 1, "--min-p", 0)
    expect_equal(words("--samplers", "top-k;temp"), words(*off), "those left out are off")
    expect_equal(words("--samplers", "top_k", "--top-k", 1, "--temp", 9), words("--temp", 0), "only top-k")
    # A high temperature first makes the tokens equally probable, so that min-p keeps all of them.
    hot = ("--temp", 1000, "--top-k", 0, "--top-p", 1, "--min-p", 0.9)
    expect_equal(words(*hot, "--samplers", "temperature;min_p"), words(*hot, "--samplers", "temperature"), "min-p last")
    expect_equal(words(*hot, "--samplers", "min_p;temperature"), words(*hot), "min-p first")
    expect(words(*hot) != words(*hot, "--samplers", "temperature;min_p"), "the order matters")
    for flag, wrong in (("--samplers", "top_k;infill"), ("--sampler-seq", "kz")):
        result = run("-m", SPM, "-p", "a", flag, wrong)
        expect(result.code == WRONG_USAGE and "is not a sampler" in result.err, wrong, result)


@test
def dynamic_temperature():
    expect_equal(words("--dynatemp-range", 0), words(), "off")
    expect(words("--temp", 0.01, "--dynatemp-range", 5, "--dynatemp-exp", 0.01) != words("--temp", 0.01), "on")


def scores(*flags):
    return succeeded(run("logprobs", "-m", SPM, "-p", "Once upon a time", "--json", *flags)).out


@test
def metadata_can_be_replaced():
    plain = scores()
    base = scores("--rope-freq-base", 500)
    expect(base != plain, "another base")
    expect_equal(scores("--override-kv", "llama.rope.freq_base=float:500"), base, "the same with --override-kv")
    expect_equal(scores("--override-kv", "a.b=int:1,llama.rope.freq_base=int:500"), base, "several, an integer")
    expect_equal(scores("--rope-freq-base", 0, "--yarn-ext-factor", -1, "--yarn-beta-fast", -1, "--yarn-orig-ctx", 0),
                 plain, "values that leave the model's own")
    linear = scores("--rope-scale", 4)
    expect(linear != plain, "positions are scaled")
    expect_equal(scores("--rope-freq-scale", 0.25), linear, "its inverse")
    expect_equal(scores("--rope-scaling", "none", "--rope-scale", 4), plain, "no scaling")
    yarn = scores("--rope-scaling", "yarn", "--rope-scale", 4)
    expect(yarn not in (plain, linear), "YaRN")
    expect_equal(scores("--rope-scaling", "yarn", "--rope-scale", 4, "--yarn-ext-factor", 0), linear, "interpolation")
    for flags in (("--yarn-beta-fast", 2), ("--yarn-beta-slow", 0.1), ("--yarn-orig-ctx", 8)):
        expect(scores("--rope-scaling", "yarn", "--rope-scale", 4, *flags) != yarn, flags)
    expect(scores("--yarn-attn-factor", 0.5) != plain, "a factor on rotated values")
    expect_equal(scores("--rope-scaling", "yarn", "--rope-scale", 4, "--yarn-attn-factor", 0.5), yarn, "with YaRN none")
    for wrong in ("a", "a=int", "=int:1", "a=int:x", "a=bool:1", "a=long:1"):
        result = run("-m", SPM, "-p", "a", "--override-kv", wrong)
        expect(result.code == WRONG_USAGE and "--override-kv" in result.err, wrong, result)
    result = run("-m", SPM, "-p", "a", "--override-kv", "llama.block_count=str:5")
    expect(result.code == 1 and "llama.block_count" in result.err, "a value of another type", result)


@test
def where_the_model_is():
    plain = scores()
    for flags in (("-dev", "none", "-ngl", 20), ("--mlock",), ("--load-mode", "none"), ("-lm", "mmap+mlock"), ("-C", "1"),
                  ("-Cr", "0-0", "-C", "0x1"), ("--numa", "distribute"), ("--numa", "isolate"), ("--numa", "numactl"),
                  ("-ot", "blk.*=CPU,ffn=cpu"), ("-cmoe",)):
        expect_equal(scores(*flags), plain, flags)
    on_ref = ("--device", "ref", "-ngl", 0, "-ctk", "f32", "-ctv", "f32", "--json")
    placed = [[(device["device"], device["weights"]) for device in json.loads(succeeded(run(
        "plan", "-m", SPM, *flags, *on_ref)).out)["devices"]]
              for flags in (("-ot", "ffn_down=REF"), ("--tensor-device", r".*ffn_down.*=ref"), ())]
    expect_equal(placed[0], placed[1], "a part of the name, and the device in capitals")
    expect(placed[0] != placed[2], "weights on ref", placed)
    for flag, wrong in (("-C", "x"), ("-C", "0"), ("-C", "1" + "0" * 400), ("-ot", "x"), ("-ot", "no_such=CPU"),
                        ("-ot", "ffn=CUDA7"), ("--numa", "x"), ("-lm", "dio")):
        result = run("-m", SPM, "-p", "a", flag, wrong)
        expect_equal((result.code, result.out), (WRONG_USAGE, ""), f"exit code and output of\n{result}\n")
    expect("--list-devices" in options_of("run"), "listed")
    for command in ("run", "serve"):
        expect_equal(succeeded(run(command, "--list-devices")).out.split(",")[0],
                     succeeded(run("devices")).out.split(",")[0], "the devices")


@test
def a_context_of_zero_is_the_models_own():
    def context(*flags):
        return json.loads(succeeded(run("plan", "-m", SPM, "--json", *flags)).out)["context"]

    long = ("--override-kv", "llama.context_length=int:8192")
    expect_equal(context("-c", 0, *long), 8192, "all of it")
    expect_equal(context(*long), 4096, "the default")


@test
def batches_are_limited_by_both_sizes():
    plain = scores()
    for flags in (("-ub", 1), ("-ub", 3, "-b", 2048), ("-b", 2)):
        expect_equal(words("--temp", 0, *flags), words("--temp", 0), flags)
    expect_equal(scores("--ubatch-size", 2), plain, "as of logprobs")


@test
def a_missing_value_is_named():
    for flag, long in (("-n", "--predict N"), ("-ngl", "--n-gpu-layers N"), ("--seed", "--seed N"),
                       ("-r", "--stop TEXT")):
        result = run("-m", SPM, "-p", "once", flag)
        expect_equal(result.code, WRONG_USAGE, f"exit code of\n{result}\n")
        expect(f"{flag} needs a value. Write {long}." in result.err, "what to write", result)
    # An empty list or value does not consume the next argument.
    for flag in ("-ts=,", "--tensor-split=", "--predict="):
        result = run("-m", SPM, "-p", "once", flag, "-n", 3)
        expect_equal(result.code, WRONG_USAGE, f"exit code of\n{result}\n")
        expect(re.search("tensor-split|predict", result.err), "the option is named", result)


@test
def values_may_begin_with_a_dash():
    def text(*arguments):
        return succeeded(run("-m", SPM, "--temp", 0, "-q", "--raw", *arguments)).out

    five = text("-p", "-ngl", "-n", 5)
    expect_equal(text("-p=-ngl", "-n=5"), five, "an equals sign after one letter")
    expect_equal(text("--prompt=-ngl", "--n-predict=5"), five, "an equals sign")
    expect_equal(text("-p", "-ngl", "-n", 5, "-r", "--", "--stop=-r"), five, "stop texts that look like options")
    for negative in (("-n", -1), ("--predict=-1",), ("--seed", -1), ("-s", -1), ("--seed=-1",), ("-ngl", -1),
                     ("--repeat-last-n", -1), ("--dry-penalty-last-n", -1), ("--top-n-sigma", -1)):
        succeeded(run("-m", SPM, "-p", "once", "-c", 64, *negative))


@test
def two_dashes_end_the_options():
    def tokens(*arguments, stdin=""):
        return succeeded(run("tokenize", "-m", SPM, *arguments, stdin=stdin)).out

    for text in ("-n5", "--json", "-1", "-"):
        expect_equal(tokens("--", text), tokens(stdin=text), f"the tokens of {text!r}")
    result = run("tokenize", "-m", SPM, "-1")
    expect_unknown("-1", result)
    expect("Put -- before" in result.err, "how to pass it", result)


main()
