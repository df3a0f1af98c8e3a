#!/usr/bin/env python3
"""Speed of many streams whose answers are held to a schema, beside the same streams without one, in turns.

    bench_constrained.py MODEL.gguf [--infer build/infer] [--streams 16] [--tokens 96] [--rounds 5]

Prints the tokens per second of all streams together: free; held to the schema, token by token; and held to it with
drafts of what it forces (jump-forward). The share is the median over rounds of constrained by free.
"""

import argparse
import concurrent.futures
import json
import statistics
import subprocess
import time
import urllib.request

PORT = 8978
# Does not end by itself within a few hundred tokens.
SCHEMA = {"type": "array", "minItems": 1000, "items": {
    "type": "object", "additionalProperties": False, "required": ["name", "year", "tags"], "properties": {
        "name": {"type": "string", "maxLength": 40}, "year": {"type": "integer"},
        "tags": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 20}}}}}
KINDS = {
    "free": {"ignore_eos": True},
    "constrained": {"json_schema": SCHEMA, "speculative.n_max": 0},
    "jump-forward": {"json_schema": SCHEMA},
}


def ask(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as reply:
        return reply.read()


def wait_for_server():
    for _ in range(1200):
        try:
            return ask("/health")
        except OSError:
            time.sleep(0.1)
    raise SystemExit("bench_constrained.py: the server did not start")


def measure(kind, options, seed):
    """Tokens per second of all streams together."""
    def one(stream):
        body = {"prompt": [300 + 17 * stream + i for i in range(16)], "max_tokens": options.tokens, "temperature": 1,
                "seed": seed + stream, **KINDS[kind]}
        return json.loads(ask("/v1/completions", body))["usage"]["completion_tokens"]

    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.streams) as pool:
        return sum(pool.map(one, range(options.streams))) / (time.monotonic() - start)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--infer", default="build/infer")
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    server = subprocess.Popen([options.infer, "serve", "-m", options.model, "--port", str(PORT), "--parallel",
                               str(options.streams), "-c", "1024"], stderr=subprocess.DEVNULL)
    try:
        wait_for_server()
        rates = {kind: [] for kind in KINDS}
        for kind in KINDS:
            measure(kind, options, 0)  # warms up
        for round_number in range(options.rounds):
            for kind in KINDS:
                rates[kind].append(measure(kind, options, 100 * round_number))
        for kind, found in rates.items():
            share = statistics.median(a / b for a, b in zip(found, rates["free"]))
            print(f"{kind}: {statistics.median(found):.1f} tokens/s, {100 * share:.1f} % of free")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
