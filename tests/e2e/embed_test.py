"""`infer embed`: vectors of texts, in every format, and what it refuses; and encoders on the server."""

import array
import json
import math
import pathlib
import struct
import tempfile

from harness import expect, expect_equal, main, run, test
from models import DATA, DEMO_TARGET, SPM, succeeded
from serving import Server

BERT = DATA / "arch" / "bert.gguf"
CHAT, TEXT, EMBED = "/v1/chat/completions", "/v1/completions", "/v1/embeddings"
TEXTS = ["a b", "c d e f g", "a", "b b b b b b b b b b b b"]


def embed(*args, model=BERT, stdin=""):
    return run("embed", "-m", model, *args, stdin=stdin)


def vectors(*args, model=BERT, stdin=""):
    """The vectors, in the order of the texts."""
    lines = [json.loads(line) for line in succeeded(embed(*args, model=model, stdin=stdin)).out.splitlines()]
    expect_equal([line["index"] for line in lines], list(range(len(lines))), "indices")
    return [line["embedding"] for line in lines]


def expect_refused(result, *words, code=2):
    expect_equal(result.code, code, f"exit code\n{result}")
    expect(result.out == "" and result.err.count("\n") == 1, "one line on standard error", result)
    for word in words:
        expect(word in result.err, f"the message says {word!r}", result)


def length(vector):
    return math.sqrt(sum(x * x for x in vector))


@test
def texts_files_and_standard_input_give_the_same():
    expected = vectors(*TEXTS)
    expect_equal(len(expected), len(TEXTS), "vectors")
    lines = "".join(text + "\n" for text in TEXTS)
    expect_equal(vectors(stdin=lines), expected, "standard input")
    with tempfile.TemporaryDirectory() as folder:
        first, second = pathlib.Path(folder, "first"), pathlib.Path(folder, "second")
        first.write_text(TEXTS[0] + "\r\n" + TEXTS[1])
        second.write_text(TEXTS[2] + "\n" + TEXTS[3] + "\n")
        expect_equal(vectors("-f", first, "-f", second), expected, "two files")
        first.write_text(TEXTS[1])
        expect_equal(vectors("--whole-files", "-f", first), expected[1:2], "a whole file")


@test
def a_vector_does_not_depend_on_its_neighbours():
    texts = [" ".join("abcdefg"[(i * j) % 7] for j in range(1 + i * 11 % 60)) for i in range(100)]
    together = vectors(*texts)
    for i in (0, 1, 31, 32, 57, 99):
        expect_equal(together[i], vectors(texts[i])[0], f"text {i}")


@test
def whole_texts_decide_in_an_encoder():
    """The first token sees the last one, unlike in a model that generates."""
    tokens = {model: [vectors("--tokens", f"{ids},{last}", "--pooling", "cls", model=model)[0] for last in (8, 9)]
              for model, ids in ((BERT, "2,7,6"), (SPM, "1,300,301"))}
    expect(tokens[BERT][0] != tokens[BERT][1], "the first token of an encoder depends on the last")
    expect_equal(tokens[SPM][0], tokens[SPM][1], "the first token of a model that generates")


@test
def tokens_are_those_of_the_text():
    ids = json.loads(succeeded(run("tokenize", "-m", BERT, TEXTS[1], "--json")).out)["tokens"]
    expect_equal(vectors("--tokens", ",".join(map(str, ids))), vectors(TEXTS[1]), "--tokens")


@test
def vectors_have_unit_length_unless_told():
    whole = vectors(TEXTS[1], "--embd-normalize", -1)[0]
    expect(abs(length(whole) - 1) > 0.1, "its own length", length(whole))
    for p, size in ((2, length), (1, lambda v: sum(map(abs, v))), (3, lambda v: sum(abs(x) ** 3 for x in v) ** (1 / 3)),
                    (0, lambda v: max(map(abs, v)) / 32760)):
        found = vectors(TEXTS[1], "--embd-normalize", p)[0]
        expect(abs(size(found) - 1) < 1e-5, f"length by norm {p}", size(found))
        expect(all(abs(a * size(whole) - b) < 1e-4 * max(1, abs(b)) for a, b in zip(found, whole)), f"direction, {p}")
    short = vectors(TEXTS[1], "--dimensions", 16)[0]
    expect(len(short) == 16 and abs(length(short) - 1) < 1e-5, "16 values of unit length", short)


@test
def every_format_has_the_same_values():
    expected = vectors(*TEXTS)
    n, d = len(expected), len(expected[0])
    document = json.loads(succeeded(embed("--json", *TEXTS)).out)
    expect_equal([(e["index"], e["embedding"]) for e in document["data"]], list(enumerate(expected)), "json")
    tokens = [json.loads(succeeded(run("tokenize", "-m", BERT, text, "--json")).out)["tokens"] for text in TEXTS]
    expect_equal(document["usage"]["prompt_tokens"], sum(map(len, tokens)), "tokens")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "out")
        succeeded(embed("--format", "raw", "-o", path, *TEXTS))
        raw = path.read_bytes()
        flat = [x for vector in expected for x in vector]
        expect_equal(raw, array.array("f", flat).tobytes(), "raw")
        succeeded(embed("--format", "npy", "-o", path, *TEXTS))
        npy = path.read_bytes()
        expect_equal([entry.name for entry in pathlib.Path(folder).iterdir()], ["out"], "no other files")
    (size,) = struct.unpack("<H", npy[8:10])
    expect_equal((npy[:8], (10 + size) % 64, npy[10 + size:]), (b"\x93NUMPY\x01\x00", 0, raw), "npy")
    header = eval(npy[10:10 + size], {})
    expect_equal(header, {"descr": "<f4", "fortran_order": False, "shape": (n, d)}, "npy header")


@test
def long_texts_are_refused_or_cut():
    long = " ".join(["a"] * 300)
    expect_refused(embed("a", long), "Text 2", "302 tokens", "128", "--truncate")
    cut = vectors(long, "--truncate")
    ids = json.loads(succeeded(run("tokenize", "-m", BERT, long, "--json")).out)["tokens"]
    kept = ids[:127] + ids[-1:]
    expect_equal(cut, vectors("--tokens", ",".join(map(str, kept))), "the first tokens, and the separator at the end")


@test
def models_that_generate_give_vectors_too():
    for pooling in ("mean", "last", "cls"):
        found = vectors("Once upon", "a time", "--pooling", pooling, model=DEMO_TARGET)
        expect(len(found) == 2 and abs(length(found[0]) - 1) < 1e-5, f"vectors, {pooling}")
    expect_equal(vectors("Once upon", model=DEMO_TARGET), vectors("Once upon", "--pooling", "last", model=DEMO_TARGET),
                 "the default is the last position")


@test
def wrong_uses_say_what_to_do():
    expect_refused(embed("a", "--tokens", "1,2"), "--tokens")
    expect_refused(embed("a", "-f", "x"), "-f")
    expect_refused(embed("--query", "a", "b"), "no classifier", code=1)
    expect_refused(embed("a", "--dimensions", 100), "--dimensions", "64")
    expect_refused(embed("a", "-o", "/no/such/folder/out"), "/no/such/folder", code=1)
    expect_refused(embed(stdin=""), "No text")
    expect_refused(embed("--whole-files", "-f", "/no/such/file"), "/no/such/file", code=1)


@test
def an_encoder_generates_nothing():
    for command in (("run", "--raw", "-p", "a"), ("logprobs", "--tokens", "1,2"), ("logprobs", "-p", "a")):
        expect_refused(run(command[0], "-m", BERT, *command[1:]), "encoder", "infer embed", code=1)


@test
def the_server_serves_an_encoder():
    with Server(BERT, "--parallel", 3) as server:
        data = server.answer(EMBED, {"input": TEXTS})["data"]
        for entry, expected in zip(data, vectors(*TEXTS)):
            expect(max(abs(a - b) for a, b in zip(entry["embedding"], expected)) < 1e-6, "the vectors of infer embed")
        for path, body in ((CHAT, {"messages": [{"role": "user", "content": "a"}]}), (TEXT, {"prompt": "a"})):
            refused = server.post(path, body)
            expect_equal(refused.status, 400, f"{path}: {refused.text}")
            expect("encoder" in refused.json["error"]["message"], "the reason", refused.text)
        long = server.post(EMBED, {"input": " ".join(["a"] * 300)})
        expect_equal((long.status, long.json["error"]["code"]), (400, "context_length_exceeded"), "a long text")


main()
