"""Command lines as the documentation of llama.cpp and of ollama writes them, with this program's name in front: each
does what it says there, or is refused by name with the reason or the alternative."""

import pathlib
import re
import shlex
import tempfile

from harness import Background, expect, expect_equal, main, run, test_each
from models import DEMO_DRAFT, DEMO_TARGET, succeeded

PROGRAMS = {"llama-cli": "run", "llama-completion": "run", "llama-server": "serve", "llama-quantize": "quantize",
            "llama-imatrix": "imatrix", "llama-perplexity": "perplexity", "llama-bench": "bench",
            "llama-embedding": "embed", "llama-tokenize": "tokenize", "ollama": ""}

ANSWERS = [
    'llama-cli -m model.gguf -p "I believe the meaning of life is" -n 8 -no-cnv',
    'llama-completion -m model.gguf -no-cnv --prompt "Once upon a time" -n 8',
    'llama-cli -m model.gguf -cnv --chat-template gemma -p Hello --temp 0 -n 8',
    'llama-completion -m model.gguf --jinja --single-turn -sys "You are a helpful assistant" -p Hello -n 8',
    'llama-completion -m model.gguf --ignore-eos -n 8 -p Once',
    'llama-cli -m model.gguf -f prompt.txt -n 8 --no-display-prompt',
    'llama-cli -m model.gguf -c 512 -b 512 -ub 64 -t 2 -fa on --no-mmap --no-warmup -p Hello -n 8',
    'llama-cli -m model.gguf --device none -ngl 99 -sm layer -mg 0 -p Hello -n 8',
    'llama-cli -m model.gguf --temp 0.8 --top-k 40 --top-p 0.95 --min-p 0.05 --repeat-penalty 1.1 --repeat-last-n 64 '
    '-s 42 -p Hello -n 8',
    'llama-cli -m model.gguf --samplers "penalties;dry;top_k;typ_p;top_p;min_p;xtc;temperature" -p Hello -n 8',
    'llama-cli -m model.gguf --mirostat 2 --mirostat-lr 0.1 --mirostat-ent 5.0 -p Hello -n 8',
    'llama-cli -m model.gguf --rope-scaling yarn --rope-scale 2 --yarn-orig-ctx 512 -p Hello -n 8',
    'llama-cli -m model.gguf -ctk q8_0 -ctv q8_0 -fa on -p Hello -n 8',
    'llama-cli -m model.gguf -n 16 --grammar-file answer.gbnf -p "Request: schedule a call at 8pm; Command:"',
    'llama-cli -m model.gguf -n 16 -j "{}" -p Hello',
    'llama-cli -m model.gguf -md draft.gguf --draft-max 8 --draft-min 1 -p Hello -n 8',
    'llama-cli -m model.gguf --logit-bias 1504+1 --override-kv tokenizer.ggml.add_bos_token=bool:false -p Hello -n 8',
    'llama-perplexity -m model.gguf -f text.txt -c 64 -b 64',
    'llama-bench -m model.gguf -p 16 -n 4 -r 1 -t 1',
    'llama-embedding -m model.gguf -p "Hello World!" --pooling mean --embd-normalize 2',
    'llama-tokenize -m model.gguf -p "Hello World!"',
    'llama-imatrix -m model.gguf -f text.txt -o imatrix.gguf -c 64 --chunks 2 -ngl 0',
    'ollama run model.gguf "Why is the sky blue?" -n 8',
    'ollama run model.gguf "Why is the sky blue?" --verbose',
    'ollama show model.gguf',
    'ollama --version',
]
WRITES = {
    'llama-quantize --allow-requantize model.gguf out.gguf Q4_K_M': 'out.gguf',
    'llama-quantize --allow-requantize model.gguf q4_k_m 2': 'ggml-model-Q4_K_M.gguf',
    'llama-quantize --allow-requantize --leave-output-tensor --pure model.gguf q4_0 2': 'ggml-model-Q4_0.gguf',
    'llama-quantize --allow-requantize --output-tensor-type q5_k --token-embedding-type q3_k --keep-split model.gguf '
     'q4_k_m 2': 'ggml-model-Q4_K_M.gguf',
    'llama-quantize model.gguf copy.gguf COPY': 'copy.gguf',
}
SERVES = [
    'llama-server -m model.gguf -c 16384 -np 4',
    'llama-server -m model.gguf --host 127.0.0.1 --api-key secret --jinja -fa on --metrics',
    'llama-server -m model.gguf --embeddings --pooling mean -ub 256 -cb',
    'llama-server -m model.gguf -md draft.gguf --draft-max 16 --no-webui -a name',
]
REFUSED = {
    'llama-cli -m model.gguf --lora adapter.gguf -p Hello': ['--lora', 'Merge'],
    'llama-cli -m model.gguf --prompt-cache cache.bin --prompt-cache-all -p Hello': ['--prompt-cache', 'serve'],
    'llama-cli -m model.gguf --mmproj mmproj.gguf --image cat.png -p Hello': ['--mmproj', 'text'],
    'llama-cli -hf ggml-org/gemma-3-1b-it-GGUF --offline -p Hello': ['ggml-org/gemma-3-1b-it-GGUF', 'ffline'],
    'llama-cli -m model.gguf --context-shift-size 8 -p Hello': ['--context-shift-size'],
    'llama-server -m model.gguf --reranking': ['--reranking', 'infer embed'],
    'llama-server -m model.gguf --slot-save-path slots': ['--slot-save-path'],
    'llama-server --models-dir models': ['--models-dir', '--port'],
    'llama-server -m model.gguf --grammar-file answer.gbnf': ['--grammar-file', 'requests'],
    'llama-quantize --prune-layers 1 model.gguf pruned.gguf q4_k_m 2': ['--prune-layers'],
    'llama-quantize --target-bpw 4.5 model.gguf small.gguf 2': ['--target-bpw'],
    'ollama run gemma3': ['ollama.com/library/gemma3:latest', 'infer pull'],
    'ollama run llama3.2:1b "Why is the sky blue?"': ['llama3.2:1b', 'infer pull'],
    'ollama pull llama3.2 --offline': ['llama3.2', 'ffline'],
    'ollama rm llama3.2': ['llama3.2'],
    'ollama serve': ['--model'],
    'ollama ps': ['no command ps', '/stats'],
    'ollama stop llama3.2': ['no command stop', 'Ctrl-C'],
    'ollama create mymodel -f Modelfile': ['no command create', '--system-prompt'],
    'ollama cp llama3.2 my-model': ['no command cp', 'infer models'],
    'ollama push user/model': ['no command push'],
    'ollama signin': ['no command signin', 'HF_TOKEN'],
}


class Folder:
    """A folder with the files that the command lines name; `arguments()` turns one into this program's arguments."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self._folder.name)
        for name, target in (("model.gguf", DEMO_TARGET), ("draft.gguf", DEMO_DRAFT)):
            (self.path / name).symlink_to(target)
        (self.path / "prompt.txt").write_text("Once upon a time")
        (self.path / "text.txt").write_text("once upon a time there was a little girl who had a cat. " * 40)
        (self.path / "answer.gbnf").write_text('root ::= "yes" | "no"\n')
        self.env = {"INFER_MODELS": str(self.path / "models"), "HF_HOME": str(self.path / "hf")}
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def arguments(self, line):
        program, *rest = shlex.split(line)
        named = re.compile(r"(model|draft|out|copy|pruned|small|prompt|text|answer|imatrix)\.(gguf|txt|gbnf)$")
        rest = [str(self.path / word) if named.match(word) else word for word in rest]
        return [*filter(None, [PROGRAMS[program]]), *rest]

    def run(self, line, **how):
        return run(*self.arguments(line), env=self.env, **how)


@test_each(*ANSWERS)
def answers(line):
    with Folder() as folder:
        result = succeeded(folder.run(line))
        expect(result.out or "imatrix" in line, "an answer", result)


@test_each(*WRITES)
def writes(line):
    name = WRITES[line]
    with Folder() as folder:
        result = succeeded(folder.run(line))
        expect((folder.path / name).stat().st_size > 1000, f"{name} is there", result)
        succeeded(run("inspect", folder.path / name))
        if "COPY" in line:
            expect_equal(succeeded(run("logprobs", folder.path / name, "-p", "once")).out,
                         succeeded(run("logprobs", DEMO_TARGET, "-p", "once")).out, "the same model")


@test_each(*SERVES)
def serves(line):
    with Folder() as folder, Background(*folder.arguments(line), "--port", 0, env=folder.env) as server:
        server.wait_until(lambda: "url=" in server.log())
    expect_equal(server.code, 0, "exit code")


@test_each(*REFUSED)
def is_refused(line):
    with Folder() as folder:
        result = folder.run(line)
        expect(result.code in (1, 2) and not result.out, "refused", result)
        expect_equal(len(result.err.splitlines()), 1, f"lines of\n{result}\n")
        for needle in REFUSED[line]:
            expect(needle in result.err, f"the line names {needle!r}", result)


@test_each("list", "ls")
def lists(name):
    with Folder() as folder:
        expect_equal(succeeded(folder.run("ollama " + name)).out, succeeded(folder.run("ollama models")).out, "the list")


@test_each("ollama run model.gguf Summarize")
def takes_piped_text(line):
    with Folder() as folder:
        piped = succeeded(folder.run(line + " -n 4 --temp 0 -q", stdin="a text"))
        flagged = succeeded(folder.run(line.replace("Summarize", "-p Summarize") + " -n 4 --temp 0 -q",
                                       stdin="a text"))
        expect_equal(piped.out, flagged.out, "the answer")


main()
