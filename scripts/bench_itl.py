#!/usr/bin/env python3
"""How much a long prompt delays streams: two completions are streamed, then a prompt of 4,000 tokens arrives.

usage: bench_itl.py MODEL.gguf [--infer build/infer] [--max-itl-ms 100] [--prompt 4000] [--tokens 300]
Prints quantiles of the time between a stream's tokens, alone and while the prompt is computed.
"""
import argparse
import json
import random
import subprocess
import threading
import time
import urllib.error
import urllib.request

PORT = 8977
WAIT = 6  # seconds during which the streams run alone


def post(body):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    return urllib.request.urlopen(request)


def random_prompt(n):
    return [random.randrange(300, 2000) for _ in range(n)]


def stream(times, n_tokens):
    # Forces one ordinary token: others, such as partial characters, would not be sent immediately.
    body = {"prompt": random_prompt(20), "max_tokens": n_tokens, "stream": True, "ignore_eos": True,
            "temperature": 0, "logit_bias": {"1000": 100}}
    for line in post(body):
        if line.startswith(b"data: {"):
            times.append(time.monotonic())


def wait_for_server():
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health").read()
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise SystemExit("bench_itl.py: the server did not start")


def report(name, streams, begin, end):
    gaps = sorted(b - a for times in streams for a, b in zip(times, times[1:]) if begin < a and b < end)
    if gaps:
        points = {f"p{q}": gaps[min(len(gaps) - 1, len(gaps) * q // 100)] for q in (50, 95, 99)} | {"max": gaps[-1]}
        print(f"{name}: {len(gaps)} gaps, " + ", ".join(f"{k} {v * 1000:.0f} ms" for k, v in points.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--infer", default="build/infer")
    parser.add_argument("--max-itl-ms", default="100")
    parser.add_argument("--prompt", type=int, default=4000)
    parser.add_argument("--tokens", type=int, default=300)
    flags = parser.parse_args()
    server = subprocess.Popen([flags.infer, "serve", "-m", flags.model, "-c", "8192", "--parallel", "4", "--port",
                               str(PORT), "--max-itl-ms", flags.max_itl_ms], stderr=subprocess.DEVNULL)
    try:
        wait_for_server()
        streams = [[], []]
        threads = [threading.Thread(target=stream, args=(times, flags.tokens)) for times in streams]
        for thread in threads:
            thread.start()
        time.sleep(WAIT)
        arrived = time.monotonic()
        post({"prompt": random_prompt(flags.prompt), "max_tokens": 1}).read()
        answered = time.monotonic()
        for thread in threads:
            thread.join()
        report("streams alone", streams, 0, arrived)
        report("with the prompt", streams, arrived, answered)
        print(f"the prompt took {answered - arrived:.1f} s")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
