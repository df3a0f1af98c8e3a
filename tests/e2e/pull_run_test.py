"""Models by name in infer run and serve, and the quantization that infer pull chooses."""

import os
import pathlib
import sys

from harness import SOURCE_DIR, Background, expect, expect_equal, main, test, test_each
from hub_server import HubServer
from models import SPM, succeeded
from pseudo_terminal import Terminal

sys.path.insert(0, str(SOURCE_DIR / "scripts"))
import gguf_io  # noqa: E402

MODEL = SPM.read_bytes()
ANSWER = ("-p", "once", "-n", 5, "--temp", 0, "--raw", "-q")


def path_of(result):
    return pathlib.Path(succeeded(result).out.rstrip("\n"))


# Which quantization

def large_model(n_bytes):
    """The head of a model with at least this many bytes of weights, and its size: many wide layers."""
    metadata, infos = gguf_io.read_head(MODEL)
    keys = {k if isinstance(k, str) else k.decode(): v for k, v in metadata.items()}
    width, hidden = keys["llama.embedding_length"][1], 1 << 22
    layers = n_bytes // (3 * width * hidden * 4) + 1
    keys["llama.feed_forward_length"] = [gguf_io.UINT32, hidden]
    keys["llama.block_count"] = [gguf_io.UINT32, layers]
    shapes = {}
    for name, shape, kind, _ in infos:
        text = name if isinstance(name, str) else name.decode()
        if not text.startswith("blk."):
            shapes[text] = (kind, list(shape))
        elif text.startswith("blk.0."):
            wide = {"ffn_down": [hidden, width], "ffn_gate": [width, hidden], "ffn_up": [width, hidden]}
            for layer in range(layers):
                shapes[text.replace("blk.0.", f"blk.{layer}.")] = (kind, wide.get(text.split(".")[2], list(shape)))
    head, size = gguf_io.header(keys, shapes)
    return head, len(head) + size


def add_large(hub, label, n_bytes):
    head, size = large_model(n_bytes)
    hub.add("org/repo", f"m-{label}.gguf", head, size=size)


def machine_memory():
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@test
def without_a_tag_the_usual_one_is_chosen_if_it_fits():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_K_M.gguf", MODEL)
        hub.add("org/repo", "m-Q2_K.gguf", MODEL + bytes(32))
        hub.add("org/repo", "m-F16.gguf", MODEL + bytes(64))
        result = hub.pull("org/repo")
        expect_equal(path_of(result).name, "m-Q4_K_M.gguf", "the file")
        chosen = [line for line in result.err.splitlines() if line.startswith("Chose ")]
        expect(len(chosen) == 1 and "Q4_K_M" in chosen[0] and "cpu: " in chosen[0], "one line says why", result)


@test
def without_a_tag_the_largest_that_fits_is_chosen():
    with HubServer() as hub:
        add_large(hub, "Q4_K_M", 4 * machine_memory())
        add_large(hub, "Q3_K_M", 3 * machine_memory())
        hub.add("org/repo", "m-Q2_K.gguf", MODEL + bytes(32))
        hub.add("org/repo", "m-IQ1_S.gguf", MODEL)
        result = hub.pull("org/repo")
        expect_equal(path_of(result).name, "m-Q2_K.gguf", "the file")
        expect("Chose Q2_K" in result.err and "Q4_K_M does not" in result.err, "it says why", result)


@test
def without_a_tag_and_room_nothing_is_downloaded():
    with HubServer() as hub:
        add_large(hub, "Q4_K_M", 4 * machine_memory())
        add_large(hub, "Q2_K", 2 * machine_memory())
        result = hub.pull("org/repo")
        expect(result.code == 1 and "No quantization fits" in result.err and ":Q2_K" in result.err, "refused", result)
        expect(not hub.cache.exists(), "nothing is there")


# run and serve

@test
def without_a_terminal_run_says_what_to_do():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", MODEL)
        result = hub.infer("run", "-m", "org/repo:Q4_0", *ANSWER)
        expect(result.code == 1 and "infer pull hf.co/org/repo:Q4_0" in result.err, "the command", result)
        expect_equal((len(result.err.splitlines()), hub.requests), (1, []), "lines, requests")
        missing = hub.infer("run", "-m", "no/such/file", *ANSWER)
        expect(missing.code == 1 and "no/such/file" in missing.err and "pull" not in missing.err, "a path", missing)
        nothing = hub.infer("run", *ANSWER)
        expect(nothing.code == 2 and "Name a model" in nothing.err, "no model at all", nothing)


@test_each("y", "n")
def on_a_terminal_run_asks(reply):
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", MODEL)
        with Terminal("run", "-m", "org/repo", "--raw", "-p", "once", "-n", "5", env=hub.environment()) as terminal:
            terminal.expect("Download m-Q4_0.gguf")
            expect(not hub.file_requests(), "nothing before the answer")
            terminal.line(reply)
            if reply == "y":
                terminal.expect("answer 5 tokens")
            else:
                terminal.expect("infer pull hf.co/org/repo")
            terminal.wait()
        expect_equal(len(hub.models()["models"]), 1 if reply == "y" else 0, "models")


@test
def serve_downloads_what_hf_names():
    with HubServer() as hub:
        hub.add("org/repo", "m-Q4_0.gguf", MODEL)
        with Background("serve", "-hf", "org/repo:Q4_0", "--port", 0, env=hub.environment()) as server:
            server.wait_until(lambda: "ready" in server.log())
        expect_equal(server.code, 0, f"exit code; {server.err}")
        expect_equal([m["name"] for m in hub.models()["models"]], ["hf.co/org/repo:Q4_0"], "models")


main()
