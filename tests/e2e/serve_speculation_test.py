"""infer serve with a draft model and look-up: the same answers to many clients at once, and reports about drafts."""

import concurrent.futures
import json
import pathlib
import random
import tempfile

from harness import expect, expect_equal, main, run, test
from models import DEMO_DRAFT, DEMO_TARGET, succeeded
from serving import Server, text_of

STORY = "Once upon a time there was a small duck named Donny. He lived by the river near the old mill of Lindale. "
DRAFTS = ("-md", DEMO_DRAFT, "--spec", "lookup")
# Few blocks: sequences are preempted.
SMALL = ("-c", 512, "--parallel", 8, "--ubatch-size", 40, "--kv-tokens", 512, "--max-queue", 200)


def bodies(chance):
    for i in range(24):
        sampled = {"seed": chance.randrange(1 << 60), "temperature": 1, "top_k": 0, "top_p": 0.97}
        yield {"prompt": STORY * (1 + i % 3) + chance.choice(["One day", "The mayor", "A robot"]), "ignore_eos": True,
               "max_tokens": chance.randrange(60, 160), "n": 1 + 2 * (i % 4 == 0), "logprobs": 2 if i % 3 == 0 else None,
               "stop": [" never"] if i % 5 == 0 else None, "presence_penalty": 0.5 * (i % 2), "timings": True,
               **(sampled if i % 2 else {"temperature": 0})}


def answers(server, requests, leave=0):
    """The choices of each request; `leave` further clients disconnect after their first chunk."""
    def one(body):
        return server.answer("/v1/completions", body)

    def leaving(body):
        connection, response = server.open_stream("/v1/completions", {**body, "max_tokens": 400, "n": 1})
        response.read(20)
        connection.close()

    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        gone = [pool.submit(leaving, body) for body in requests[:leave]]
        replies = list(pool.map(one, requests))
        for future in gone:
            future.result()
    return replies


def settled(server, name):
    server.wait_for_metric(name, lambda value: value == 0)


@test
def answers_are_those_without_drafts_and_no_block_is_lost():
    requests = list(bodies(random.Random(3)))
    with Server(DEMO_TARGET, *SMALL) as server:
        plain = answers(server, requests)
        expect("speculation" not in server.get("/stats").json, "no drafts", server.get("/stats"))
    with Server(DEMO_TARGET, *SMALL, *DRAFTS) as server:
        drafted = answers(server, requests, leave=6)
        for body, before, after in zip(requests, plain, drafted):
            expect_equal(after["choices"], before["choices"], f"answer to {body}")
        settled(server, "infer_kv_blocks_used")
        settled(server, 'infer_draft_kv_group_blocks{group="0",kind="full",state="used"}')
        metrics, stats = server.metrics(), server.get("/stats").json
        expect(metrics["infer_preemptions_total"] > 0, "some sequence was preempted", metrics)
        drafted = metrics["infer_draft_tokens_total"]
        expect(drafted > 0 and metrics["infer_draft_accepted_tokens_total"] <= drafted, "drafts", metrics)
        expect_equal(stats["speculation"]["drafted"], metrics["infer_draft_tokens_total"], "drafts in /stats")
        expect_equal(stats["speculation"]["draft_cache_groups"][0]["used"], 0, "blocks of the draft in use")
        expect(stats["devices"][0]["draft"] > 0, "memory of the draft", stats)
        expect(metrics['infer_device_memory_bytes{device="cpu",what="draft"}'] > 0, "memory of the draft", metrics)
    expect_equal(server.code, 0, "exit code")


@test
def timings_count_the_drafts_of_an_answer():
    body = {"prompt": STORY * 2, "max_tokens": 200, "temperature": 0, "ignore_eos": True, "timings": True}
    with Server(DEMO_TARGET, "-t", 1, *DRAFTS, "--draft-max", 4) as server:
        whole = server.answer("/v1/completions", body)["timings"]
        streamed = server.stream("/v1/completions", body)[-1]["timings"]
        # How many tokens are drafted depends on what steps cost at the moment.
        drafted, accepted = (whole.get(name, 0) + streamed.get(name, 0) for name in ("draft_n", "draft_n_accepted"))
        metrics = server.metrics()
        expect_equal((metrics["infer_draft_tokens_total"], metrics["infer_draft_accepted_tokens_total"]),
                     (drafted, accepted), "the same counts")
        none = server.answer("/v1/completions", {**body, "speculative.n_max": 0})
        expect("draft_n" not in none["timings"], "a request without drafts", none)
        expect_equal(server.metrics()["infer_draft_tokens_total"], drafted, "no further drafts")
        expect_equal(none["choices"], server.answer("/v1/completions", body)["choices"], "the same answer")
        refused = server.post("/v1/completions", {**body, "speculative.n_max": -1})
        expect(refused.status == 400 and refused.error["param"] == "speculative.n_max", "a wrong limit", refused)


@test
def load_is_measured_with_and_without():
    with Server(DEMO_TARGET, *DRAFTS) as server, tempfile.TemporaryDirectory() as folder:
        prompts = pathlib.Path(folder, "prompts.txt")
        prompts.write_text("Where does Mira live?\n\nTell me a story.\n")
        result = succeeded(run("bench-serve", "--url", f"http://127.0.0.1:{server.port}", "--concurrency", "1,2",
                               "--requests", 3, "--prompts", prompts, "--compare-drafts", "--json"))
    levels = json.loads(result.out)["results"]
    expect_equal([(level["concurrency"], level["drafts"]) for level in levels],
                 [(1, False), (1, True), (2, False), (2, True)], "levels")
    for level in levels:
        expect_equal(level["answered"], 3, "answers")
        expect(level["drafts"] or level["drafted_tokens"] == 0, "none without", level)
        expect(level["accepted_tokens"] <= level["drafted_tokens"], "counts", level)


@test
def a_streamed_answer_has_the_same_text():
    body = {"prompt": STORY, "max_tokens": 60, "temperature": 1, "seed": 4, "ignore_eos": True}
    with Server(DEMO_TARGET, "-t", 1, *DRAFTS) as server:
        whole = server.answer("/v1/completions", body)["choices"][0]["text"]
        expect_equal(text_of(server.stream("/v1/completions", body)), whole, "text")


main()
