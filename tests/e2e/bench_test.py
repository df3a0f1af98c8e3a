"""The benchmark's report. No speed is expected, only that it measures what was asked for."""

import json

from harness import expect, expect_equal, main, run, test, test_each
from models import SPM, succeeded


@test_each("model", "shape")
def report_has_every_test(source):
    flags = ("-m", SPM) if source == "model" else ("--shape", "tiny", "--type", "Q4_K_M")
    report = json.loads(succeeded(run("bench", *flags, "-p", "16,40", "-n", "6", "-b", "1,3", "-r", 2, "--json")).out)
    found = [(r["test"], r["n_prompt"], r["n_gen"], r["batch"]) for r in report["results"]]
    expect_equal(found, [("prefill", 16, 0, 1), ("prefill", 16, 0, 3), ("prefill", 40, 0, 1), ("prefill", 40, 0, 3),
                         ("decode", 0, 6, 1), ("decode", 0, 6, 3)], "tests")
    for result in report["results"]:
        expect(0 < result["least"] <= result["tokens_per_second"] <= result["most"], "median within the spread", result)
        expect((result["fraction_of_limit"] is not None) == (result["test"] == "decode"), "a fraction of decode", result)
    expect(report["machine"]["read_bandwidth"] > 0 and report["machine"]["device"], "the machine", report["machine"])


@test
def table_is_for_people():
    result = succeeded(run("bench", "-m", SPM, "-p", 8, "-n", 4, "-r", 1))
    expect("prefill" in result.out and "decode" in result.out and "GB/s" in result.out, "a table", result)
    expect(not result.err, "nothing else", result)


@test_each("", "--shape tiny -m x", "--shape nonsense", "-p 0 -n 0 --shape tiny", "--shape tiny -b 0",
           "--shape tiny -p x", "--shape tiny -r 0", "--shape tiny -b 100000", "-m /nowhere")
def wrong_use_is_one_line(flags):
    result = run("bench", *flags.split())
    expect(result.code in (1, 2) and result.err.count("\n") == 1 and not result.out, "one line", result)


main()
