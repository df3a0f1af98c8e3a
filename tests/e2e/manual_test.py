"""Manual pages and shell completion know every command and every option that --help shows."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from harness import BINARY, PATIENCE, SOURCE_DIR, expect, expect_equal, main, run, skip, test, test_each
from models import succeeded

COMMANDS = re.findall(r"^  infer ([a-z-]+) +[A-Z]", succeeded(run("--help")).out, re.M)
SHELLS = ("bash", "zsh", "fish")


@functools.cache
def options_of(command):
    """The names of a command's options, as --help shows them at the beginning of a line: `  -ngl,--gpu-layers N`."""
    text = succeeded(run(command, "--help", env={"COLUMNS": "200"})).out
    names = []
    for line in re.findall(r"^  (-[^ ]*(?:,\n +-[^ ]*)*)", text, re.M):
        names += [name for name in re.split(r",\s*", line) if name]
    expect("--help" in names, f"{command} has --help among {names}")
    return names


@functools.cache
def script(shell):
    return succeeded(run("completion", shell)).out


def page(command):
    return succeeded(run("manual", command)).out


def plain(roff):
    """A page's text without the marks of roff."""
    text = re.sub(r"\\f[BIR]|\\:", "", roff)
    return text.replace("\\-", "-").replace("\\(aq", "'").replace("\\(dq", '"').replace("\\e", "\\")


@test
def the_commands_are_found():
    expect({"run", "serve", "quantize", "completion", "manual"} <= set(COMMANDS), "commands of --help", COMMANDS)


@test_each(*COMMANDS)
def manual_has_every_option_of(command):
    tags = re.findall(r"^\.TP\n(.*)$", page(command), re.M)
    listed = {name for tag in tags for name in re.findall(r"(?:^|, )(-[^ ,]+)", plain(tag))}
    expect_equal(sorted(set(options_of(command)) - listed), [], "options without an entry")


@test
def the_page_of_the_program_lists_the_commands():
    text = plain(succeeded(run("manual")).out)
    expect_equal([c for c in COMMANDS if f"infer-{c} (1)" not in text], [], "commands without an entry")


@test
def a_folder_gets_all_pages():
    with tempfile.TemporaryDirectory() as folder:
        succeeded(run("manual", "--folder", f"{folder}/man1", env={"SOURCE_DATE_EPOCH": "86400"}))
        written = {path.name for path in pathlib.Path(folder, "man1").iterdir()}
        expect_equal(written, {"infer.1"} | {f"infer-{c}.1" for c in COMMANDS}, "pages")
        first = pathlib.Path(folder, "man1", "infer-run.1").read_text().splitlines()[0]
        expect(" 1970-01-02 " in first, "date of SOURCE_DATE_EPOCH", first)


@test
def unknown_page():
    result = run("manual", "sing")
    expect(result.code == 2 and "Unknown command sing" in result.err, "refused", result)


def checked_pages(*command):
    """Runs a checker over each page, on its standard input; its messages."""
    if not shutil.which(command[0]):
        skip(f"no {command[0]}")
    messages = []
    for name in ["", *COMMANDS]:
        text = succeeded(run("manual", *([name] if name else []))).out
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=PATIENCE)
        messages += [f"{name}: {line}" for line in (done.stdout + done.stderr).splitlines()]
    return messages


@test
def mandoc_has_no_complaint():
    expect_equal(checked_pages("mandoc", "-Tlint", "-Wwarning"), [], "complaints")


@test
def groff_has_no_complaint():
    expect_equal(checked_pages("groff", "-man", "-ww", "-Tutf8", "-z"), [], "complaints")


# Completion

@test_each(*SHELLS)
def syntax_of(shell):
    if not shutil.which(shell):
        skip(f"no {shell}")
    done = subprocess.run([shell, "-n"], input=script(shell), capture_output=True, text=True, check=False)
    expect(done.returncode == 0 and not done.stderr, "syntax", done.stderr)


@test
def fish_and_zsh_have_every_option():
    for command in COMMANDS:
        block = re.search(rf"^    {command}\)\n(.*?)^      ;;", script("zsh"), re.M | re.S)[1]
        zsh = set(re.findall(r"^        '(?:\*|\([^)]*\))(-[^\[=]+)", block, re.M))
        expect_equal(sorted(set(options_of(command)) - zsh), [], f"options of {command} that zsh lacks")
        fish = set()
        for line in re.findall(rf"^complete -c infer -n '__fish_infer_is {command}' (-.*)$", script("fish"), re.M):
            for kind, name in re.findall(r"(?:^| )-([slo]) (\S+)", line.split(" -d ")[0]):
                fish.add(("--" if kind == "l" else "-") + name)
        expect_equal(sorted(set(options_of(command)) - fish), [], f"options of {command} that fish lacks")


def bash_completes(*words, folder=None):
    """What bash offers for the last of the words after `infer`."""
    if not shutil.which("bash"):
        skip("no bash")
    # Bash splits words at = as it reads a command line.
    split = [part for word in words for part in (re.split(r"(=)", word) if "=" in word else [word])]
    while split and split[-1] == "" and len(split) > 1 and split[-2] == "=":
        split.pop()
    quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in ["infer", *split])
    program = (f"{script('bash')}\nCOMP_WORDS=({quoted}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
               "_infer\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n")
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(["bash", "--norc", "-s"], input=program, capture_output=True, text=True, check=False,
                              cwd=folder or empty)
    expect(done.returncode == 0 and not done.stderr, "bash", done.stderr)
    return [line for line in done.stdout.splitlines() if line]


@test_each(*COMMANDS)
def bash_offers_every_option_of(command):
    expect_equal(sorted(set(options_of(command)) - set(bash_completes(command, "-"))), [], "options that bash lacks")


@test
def bash_offers_commands_and_files():
    expect_equal(sorted(bash_completes("")), sorted([*COMMANDS, "help", "version"]), "first word")
    expect_equal(bash_completes("quan"), ["quantize"], "quan")
    expect_equal(bash_completes("help", "quan"), ["quantize"], "help quan")
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "my model.gguf").touch()
        for words in (["my"], ["run", "my"], ["run", "-m", "my"], ["--model=my"], ["quantize", "my"],
                      ["quantize", "in.gguf", "my"], ["inspect", "--tensors", "my"]):
            expect_equal(bash_completes(*words, folder=folder), ["my model.gguf"], f"files for {words}")


@test
def bash_offers_the_values_of_an_option():
    for words, expected in ((["run", "--spec", ""], ["auto", "off", "lookup", "mtp"]),
                            (["run", "--spec=l"], ["lookup"]),
                            (["serve", "m.gguf", "--log-format="], ["text", "json"]),
                            (["--spec", "m"], ["mtp"]),
                            (["run", "-ctk", "q"], ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1"]),
                            (["run", "-c", ""], []),
                            (["quantize", "in.gguf", "out.gguf", "Q5_K"], ["Q5_K_S", "Q5_K_M"]),
                            (["quantize", "--pure", "-t", "2", "in.gguf", "--dry-run", "out.gguf", "MXFP"], ["MXFP4"]),
                            (["manual", "perp"], ["perplexity"]),
                            (["completion", ""], ["bash", "zsh", "fish"])):
        expect_equal(sorted(bash_completes(*words)), sorted(expected), f"offered for {words}")


def in_home(shell, *command):
    """Runs a shell with the completion script and without anyone's settings."""
    with tempfile.TemporaryDirectory() as home:
        folder = pathlib.Path(home, ".config", "fish", "completions")
        folder.mkdir(parents=True)
        (folder / "infer.fish").write_text(script("fish"))
        programs = pathlib.Path(home, "bin")
        programs.mkdir()
        (programs / "infer").symlink_to(pathlib.Path(BINARY).resolve())
        environment = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": f"{home}/.config", "XDG_DATA_HOME": home,
                       "PATH": f"{programs}:{os.environ['PATH']}"}
        done = subprocess.run([shell, *command], capture_output=True, text=True, check=False, env=environment, cwd=home,
                              timeout=PATIENCE)
    expect(done.returncode == 0, shell, done.stderr)
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


@test
def fish_completes():
    if not shutil.which("fish"):
        skip("no fish")
    for line, expected in (("infer quan", ["quantize"]), ("infer run --spec l", ["lookup"]),
                           ("infer --spec m", ["mtp"]), ("infer run --spec=of", ["--spec=off"]),
                           ("infer help perp", ["perplexity"]), ("infer completion z", ["zsh"]),
                           ("infer serve --kv-tok", ["--kv-tokens"]), ("infer run -ng", ["-ngl", "-ngld"])):
        found = in_home("fish", "-c", f"complete -C '{line}'")
        expect_equal(sorted(name for name in found if not name.endswith("/")), sorted(expected), f"offered for {line!r}")


@test
def the_scripts_are_those_of_all_shells_it_names():
    result = run("completion", "tcsh")
    expect(result.code == 2 and "bash, zsh or fish" in result.err, "refused", result)
    expect_equal(sorted(SHELLS), sorted(bash_completes("completion", "")), "shells")


main()
