#!/usr/bin/env bash
# Speed of this program and of llama.cpp (node-llama-cpp's prebuilt binaries, from npm), measured alternately with the
# same files on the same machine: a prompt, decode, and decode with many streams.
#   usage: bench_peer.sh [FILE.gguf...] [--rounds 5] [--threads 2] [--only prefill,decode,streams] [--json] ...
# Without a file: random weights in the shape of TinyLlama 1.1B as Q4_K_M and as Q8_0, kept in build/peer (4 GB).
# tests/peer/bench.mjs documents the other flags and what is measured. INFER_BINARY: another program than build/infer.
set -euo pipefail
here=$PWD
cd "$(dirname "$0")/.."
# Both on the CPU, even if there is a GPU.
export INFER_DEVICE=cpu

[ -n "${INFER_BINARY:-}" ] || scripts/build.sh infer >&2
scripts/install_peer.sh

files=() flags=()
for argument in "$@"; do
  case $argument in
    *.gguf)
      file=$(cd "$here" && realpath "$argument")
      [ -r "$file" ] || { echo "bench_peer.sh: expected a GGUF file, found none at $argument" >&2; exit 2; }
      files+=("$file")
      ;;
    *) flags+=("$argument") ;;
  esac
done
if [ ${#files[@]} -eq 0 ]; then
  source=build/peer/tinyllama-1.1b-F16.gguf
  for type in Q4_K_M Q8_0; do
    file=build/peer/tinyllama-1.1b-$type.gguf
    files+=("$file")
    [ ! -e "$file" ] || continue
    if [ ! -e "$source" ]; then
      scripts/build.sh make_random_model >&2
      build/bin/make_random_model tinyllama-1.1b F16 "$source" >&2
    fi
    "${INFER_BINARY:-build/infer}" quantize "$source" "$file" "$type" >&2
  done
fi
INFER_BINARY=${INFER_BINARY:-$PWD/build/infer} exec build/peer/node build/peer/bench.mjs "${files[@]}" "${flags[@]}"
