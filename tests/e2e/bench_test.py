"""The benchmark's report. Expects no particular speed, only that it measures what was requested."""

import json

from harness import expect, expect_equal, main, run, test, test_each
from models import DEMO_DRAFT, DEMO_TARGET, SPM, succeeded


@test_each("model", "shape")
def report_has_every_test(source):
    flags = ("-m", SPM) if source == "model" else ("--shape", "tiny", "--type", "Q4_K_M")
    report = json.loads(succeeded(run("bench", *flags, "-p", "16,40", "-n", "6", "-b", "1,3", "-r", 2, "--json")).out)
    found = [(r["test"], r["n_prompt"], r["n_gen"], r["batch"]) for r in report["results"]]
    expect_equal(found, [("prefill", 16, 0, 1), ("prefill", 16, 0, 3), ("prefill", 40, 0, 1), ("prefill", 40, 0, 3),
                         ("decode", 0, 6, 1), ("decode", 0, 6, 3)], "tests")
    for result in report["results"]:
        expect(0 < result["least"] <= result["tokens_per_second"] <= result["most"], "median within the spread", result)
        expect(result["fraction_of_limit"] > 0 and "operations" not in result, "a fraction of the limit", result)
    for limit in ("read_bandwidth", "int8_operations_per_second", "float_operations_per_second"):
        expect(report["machine"][limit] > 0 and report["machine"]["device"], "the machine", report["machine"])


@test
def operations_are_told_apart():
    flags = ("--shape", "tiny", "--type", "Q4_K_M", "-p", 16, "-n", 6, "-d", 40, "-r", 2, "--ops")
    report = json.loads(succeeded(run("bench", *flags, "--json")).out)
    prefill, decode = report["results"]
    expect_equal((prefill["depth"], decode["depth"]), (0, 40), "depth")
    for result, rows in ((prefill, 16 * 2), (decode, 6 * 2)):
        lines = result["operations"]
        expect_equal({line["operation"] for line in lines} >= {"matmul", "paged_attention", "rms_norm"}, True, "operations")
        shapes = {(line["type"], line["n"], line["k"]) for line in lines if line["operation"] == "matmul"}
        expect(len(shapes) > 2 and {"Q4_K", "Q6_K"} <= {shape[0] for shape in shapes}, "shapes of products", shapes)
        expect_equal(max(line["seconds"] for line in lines), lines[0]["seconds"], "the most expensive first")
        expect(all(line["rows"] % rows == 0 for line in lines if line["operation"] == "rope"), "rows", lines)
        expect(all(line["fraction_of_limit"] > 0 for line in lines if line["operation"] == "matmul" and line["rows"]),
               "fractions", lines)
    table = succeeded(run("bench", *flags)).out
    expect("of limit" in table and "paged_attention" in table and "decode of 6, batch of 1, in 2 rounds" in table, "", table)


@test
def any_run_has_a_profile():
    for command in (("run", "-p", "once", "-n", 4, "--raw"), ("perplexity", "-f", __file__, "-c", 32, "--chunks", 1)):
        result = succeeded(run(*command, "-m", SPM, "--profile"))
        expect("matmul" in result.err and "all operations" in result.err and "matmul" not in result.out, "", result)
        expect("matmul" not in succeeded(run(*command, "-m", SPM)).err, "only when asked for", command)


@test
def generation_is_measured_with_and_without_drafts():
    flags = ("-m", DEMO_TARGET, "-md", DEMO_DRAFT, "--spec", "lookup", "-f", __file__, "-p", 0, "-n", 40, "-d", 60,
             "-b", "1,2", "-r", 1)
    report = json.loads(succeeded(run("bench", *flags, "--json")).out)
    expect_equal([(r["test"], r["batch"], "drafted" in r) for r in report["results"]],
                 [("decode", 1, False), ("drafts", 1, True), ("decode", 2, False), ("drafts", 2, True)], "tests")
    for result in report["results"]:
        if result["test"] == "drafts":
            expect(0 <= result["accepted"] <= result["drafted"] and result["tokens_per_step"] >= 1, "counts", result)
    table = succeeded(run("bench", *flags)).out
    expect("accepted" in table and "tokens per step" in table, "a table", table)


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
