#!/usr/bin/env python3
"""Times of infer grammar --bench for the schemas of the reference data that have to be supported, with their texts as
answers, and for the schemas of tools alone.

    bench_grammar.py [VOCABULARY...]

VOCABULARY: a GGUF file, or the name of one in the reference data (default: llama-3.2, qwen2.5, gpt-oss).
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
INFER = ROOT / "build" / "infer"
GOLDENS = pathlib.Path(os.environ.get("INFER_SHARED", ROOT.parent / "shared")) / "goldens"


def cases(schemas):
    """The lines that --bench reads."""
    for schema in schemas:
        texts = [case["text"] for case in schema["cases"] if case["expect"] in ("accept", "prefix")]
        yield json.dumps({"schema": schema["schema"], "texts": texts})


def main():
    schemas = [s for s in json.loads((GOLDENS / "schema" / "schemas.json").read_text())["schemas"]
               if s["level"] == "must_support"]
    tools = [s for s in schemas if s["name"].startswith("tool_")]
    for name in sys.argv[1:] or ("llama-3.2", "qwen2.5", "gpt-oss"):
        path = GOLDENS / "tokenizer" / "vocab" / f"{name}.gguf"
        model = path if path.is_file() else pathlib.Path(name)
        for what, chosen in (("schemas", schemas), ("schemas of tools", tools)):
            print(f"{model.stem}, {len(chosen)} {what}:", flush=True)
            subprocess.run([INFER, "grammar", "--bench", "-m", model], input="\n".join(cases(chosen)), text=True, check=True)


if __name__ == "__main__":
    main()
