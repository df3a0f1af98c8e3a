#!/usr/bin/env python3
"""What prompt look-up gains where an answer repeats its prompt with changes, and what it costs where nothing repeats.

    bench_lookup.py MODEL.gguf [--infer build/infer] [--threads 2] [--rounds 5] [--tokens 192]

MODEL is one that `make_random_model SHAPE TYPE MODEL successor` makes: after token t it writes t + 1. A prompt is such
a text in which every N-th token was replaced; the answer is the text without these changes, so that look-up is wrong at
each of them. In the last case nothing in the prompt is repeated. Requests with and without look-up alternate, and none
sees the cache or the text of another.
"""

import argparse
import http.client
import json
import os
import random
import re
import statistics
import subprocess

FIRST, LAST = 300, 4000  # the tokens that texts are made of
EVERY = (16, 32, 0)      # tokens between two changes; 0: nothing of the prompt is repeated


def start(options):
    command = [options.infer, "serve", "-m", options.model, "--spec", "lookup", "-t", str(options.threads), "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "INFER_DEVICE": "cpu"})
    port = 0
    for line in server.stderr:
        if found := re.search(r"url=\S+:(\d+)\s", line):
            port = int(found[1])
        if "ready" in line:
            return server, port
    raise SystemExit(f"{command[0]} serve has ended with {server.wait()}")


def prompt_of(every, n_tokens, rng):
    """A text and how it begins again."""
    begin = rng.randrange(FIRST, LAST - n_tokens - 4)
    if every == 0:
        others = [t for t in range(FIRST, LAST) if not begin <= t <= begin + n_tokens + 4]
        return rng.sample(others, n_tokens) + [begin]
    text = list(range(begin, begin + n_tokens + 4))
    for i in range(rng.randrange(4, every), n_tokens, every):
        text[i] = rng.randrange(FIRST, LAST)
    return text + [begin]


def answer(port, prompt, n_tokens, most_drafts, salt):
    body = {"prompt": prompt, "max_tokens": n_tokens, "temperature": 0, "speculative.n_max": most_drafts,
            "cache_salt": salt, "timings": True}
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/completions", json.dumps(body))
    response = connection.getresponse()
    reply = json.loads(response.read())
    connection.close()
    if response.status != 200:
        raise SystemExit(f"the server answers {response.status}: {reply}")
    return reply


def measure(port, every, options, rng):
    speeds = {0: [], 8: []}
    drafted = accepted = 0
    for i in range(options.rounds):
        prompt = prompt_of(every, options.tokens, rng)
        texts = set()
        for most in (0, 8) if i % 2 == 0 else (8, 0):
            reply = answer(port, prompt, options.tokens, most, f"{every} {i} {most}")
            texts.add(reply["choices"][0]["text"])
            timings = reply["timings"]
            speeds[most].append(timings["predicted_per_second"])
            drafted += timings.get("draft_n", 0)
            accepted += timings.get("draft_n_accepted", 0)
        if len(texts) != 1:
            raise SystemExit("the texts with and without look-up differ")
    plain, drafts = (statistics.median(speeds[most]) for most in (0, 8))
    ratio = statistics.median(b / a for a, b in zip(speeds[0], speeds[8]))
    case = f"a change every {every} tokens" if every else "nothing repeats"
    share = f"{accepted} of {drafted} drafts accepted" if drafted else "no drafts"
    print(f"{case:28} {plain:8.2f} {drafts:8.2f} tokens/s  {ratio:5.3f} times  {share}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--infer", default="build/infer")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=192)
    options = parser.parse_args()
    rng = random.Random(1)
    server, port = start(options)
    try:
        for every in EVERY:
            measure(port, every, options, rng)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
