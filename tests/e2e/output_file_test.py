"""A file that cannot be written is refused before the work begins, not afterwards."""

import os
import pathlib
import tempfile

from harness import expect, expect_equal, main, run, skip, test_each

FAILED = 1

# The inputs do not exist, so a command that starts working reports that instead.
COMMANDS = {
    "imatrix": ("-o", ("imatrix", "-m", "none.gguf", "-f", "none.txt", "-o")),
    "imatrix_of_files": ("-o", ("imatrix", "--in-file", "none.gguf", "-o")),
    "perplexity": ("--save-logits", ("perplexity", "-m", "none.gguf", "-f", "none.txt", "--save-logits")),
    "quantize": ("OUT", ("quantize", "none.gguf", "OUT", "Q4_0")),
    "bench_serve": ("--plot", ("bench-serve", "--url", "http://127.0.0.1:1", "--plot")),
}


def with_output(command, path):
    option, arguments = COMMANDS[command]
    return [path if a == "OUT" else a for a in arguments] + ([] if "OUT" in arguments else [path]), option


def expect_refused(command, path, reason):
    arguments, option = with_output(command, path)
    result = run(*arguments)
    expect_equal((result.code, result.out), (FAILED, ""), f"exit code and output of\n{result}\n")
    expect(f"Cannot write {path}: {reason}" in result.err, reason, result)
    expect(option in result.err and result.err.count("\n") == 1, f"one line that names {option}", result)


@test_each(*COMMANDS)
def output_is_checked_first(command):
    with tempfile.TemporaryDirectory() as folder:
        missing = pathlib.Path(folder, "missing")
        expect_refused(command, missing / "out.bin", f"there is no folder {missing}. Create it, or give another name")
        expect(not missing.exists(), "nothing is created")
        expect_refused(command, folder, "it is a folder; give another name")
        file = pathlib.Path(folder, "file")
        file.touch()
        expect_refused(command, file / "out.bin", f"{file} is not a folder; give another name")


@test_each(*COMMANDS)
def output_in_a_folder_without_permission(command):
    if os.geteuid() == 0:
        skip("root may write everywhere")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o500)
        expect_refused(command, pathlib.Path(folder, "out.bin"), f"no file can be created in {folder} (")
        os.chmod(folder, 0o700)


@test_each(*COMMANDS)
def output_that_can_be_written_is_not_created_early(command):
    with tempfile.TemporaryDirectory() as folder:
        arguments, _ = with_output(command, pathlib.Path(folder, "out.bin"))
        result = run(*arguments)
        expect(result.code != 0 and "Cannot write" not in result.err, "the input is what is wrong", result)
        expect_equal(os.listdir(folder), [], "files")


main()
