#!/usr/bin/env bash
# Builds the models in models/ from scratch: text, vocabulary, target, draft, prediction layer, files. Takes about an hour
# on two cores.
# usage: make.sh [FOLDER]     FOLDER: for intermediate and final files, default build/train_demo
# The same files result on one kind of machine with the same PyTorch, BLAS and TRAIN_THREADS (default 2).
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=${1:-build/train_demo}
threads=${TRAIN_THREADS:-2}
scripts/install_deps.sh train
mkdir -p "$folder"
export PYTHONDONTWRITEBYTECODE=1
step() { nice -n 19 /usr/bin/python3 "scripts/train_demo/$1.py" "${@:2}"; }

vocabulary=$folder/vocabulary.json
step vocabulary "$vocabulary"
step corpus "$vocabulary" "$folder/short.npz" --seed 2 --rows 32400 --length 256
step corpus "$vocabulary" "$folder/long.npz" --seed 3 --rows 900 --length 1024 --long 0.5
# At the full learning rate first; the rest decays to zero from there.
step train "$folder/short.npz" "$folder/long.npz" --out "$folder/fast.pt" --max-steps 1000 --threads "$threads"
step corpus "$vocabulary" "$folder/short_rest.npz" --seed 5 --rows 7200 --length 256
step corpus "$vocabulary" "$folder/long_rest.npz" --seed 6 --rows 320 --length 1024 --long 0.5
step train "$folder/short_rest.npz" "$folder/long_rest.npz" --out "$folder/target.pt" --start "$folder/fast.pt" \
  --cool-down 1 --threads "$threads"
step corpus "$vocabulary" "$folder/draft.npz" --seed 4 --rows 8100 --length 256
step train "$folder/draft.npz" --out "$folder/draft.pt" --layers 1 --ff 256 --kv-heads 1 \
  --teacher "$folder/target.pt" --threads "$threads"

target="A tiny model for trying infer out: chats a little, knows the invented valley of Lindale, does small sums."
draft="Drafts for infer-demo-5m, which shares its vocabulary."
step export "$folder/target.pt" "$vocabulary" "$folder/infer-demo-5m-f32.gguf" f32 --name infer-demo-5m \
  --description "$target"
step export "$folder/target.pt" "$vocabulary" "$folder/infer-demo-5m-q8_0.gguf" q8_0 --name infer-demo-5m \
  --description "$target"
for type in f16 q8_0; do
  step export "$folder/draft.pt" "$vocabulary" "$folder/infer-demo-draft-$type.gguf" "$type" --name infer-demo-draft \
    --description "$draft"
done
# The target again, with a layer that drafts for it, learned from the quantized target's states.
step corpus "$vocabulary" "$folder/prediction.npz" --seed 7 --rows 8100 --length 256
step corpus "$vocabulary" "$folder/prediction_long.npz" --seed 8 --rows 320 --length 1024 --long 0.5
step predict "$folder/infer-demo-5m-q8_0.gguf" "$folder/prediction.npz" "$folder/prediction_long.npz" \
  --out "$folder/infer-demo-5m-mtp-q8_0.gguf" --description "$target It drafts for itself." --threads "$threads"
step evaluate "$vocabulary" "$folder/target.pt" --draft "$folder/draft.pt" | tee "$folder/evaluation.json"
step plot "$folder/loss.svg" "target, cross-entropy=$folder/fast.jsonl+$folder/target.jsonl" \
  "draft, divergence=$folder/draft.jsonl"
