#!/usr/bin/env bash
# What speculative decoding gains and costs: generation with and without drafts, measured alternately within each run.
#   usage: bench_drafts.sh [--rounds 5] [--threads 2] [--shape tinyllama-1.1b] [--type Q4_K_M]
# First the demo pair on its own questions, through the server; then random weights in a well-known shape, whose draft
# of two layers agrees with them more or less often; then 16 and 32 streams of the same; then look-up (bench_lookup.py).
# The files stay in build/drafts.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=5 threads=2 shape=tinyllama-1.1b type=Q4_K_M
while [ $# -gt 0 ]; do
  case $1 in
    --rounds) rounds=$2 ;;
    --threads) threads=$2 ;;
    --shape) shape=$2 ;;
    --type) type=$2 ;;
    *)
      echo "bench_drafts.sh: unknown option $1; see the top of this file" >&2
      exit 2
      ;;
  esac
  shift 2
done
export INFER_DEVICE=cpu
scripts/build.sh infer make_random_model >&2
folder=build/drafts
mkdir -p "$folder"

echo "== demo pair, questions of the demo, one client"
log=$folder/serve.log
build/infer serve -m models/infer-demo-5m-q8_0.gguf -md models/infer-demo-draft-q8_0.gguf -t "$threads" --port 0 2>"$log" &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
until grep -q ready "$log"; do sleep 0.1; done
url=$(grep -o 'http://[0-9.:]*' "$log" | head -n 1)
python3 - >"$folder/questions.txt" <<'PYTHON'
import json
for entry in json.load(open("tests/data/demo_answers.json")):
    messages = entry.get("conversation", {}).get("messages", [])
    if len(messages) == 1 and "\n" not in messages[0]["content"]:
        print(messages[0]["content"])
PYTHON
for ((i = 0; i < rounds; ++i)); do
  build/infer bench-serve --url "$url" --concurrency 1 --requests 100 --prompts "$folder/questions.txt" --max-tokens 200 \
    --compare-drafts | tail -n 4
done
kill $server

# The smaller the scale, the more often target and draft agree.
for scale in 3 0.1 0.04 0.02; do
  target=$folder/$shape-$type-$scale.gguf draft=$folder/$shape-$type-$scale-draft.gguf
  [ -e "$draft" ] || build/bin/make_random_model "$shape" "$type" "$target" 2 "$scale" "$draft"
  echo "== $shape $type, scale $scale"
  build/infer bench -m "$target" -md "$draft" -p 0 -n 96 -d 32 -b 1 -r "$rounds" -t "$threads" | tail -n 2
  build/infer bench -m "$target" -md "$draft" -p 0 -n 24 -d 32 -b 16,32 -r "$rounds" -t "$threads" | tail -n 4
done

echo "== $shape $type, look-up"
target=$folder/$shape-$type-successor.gguf
[ -e "$target" ] || build/bin/make_random_model "$shape" "$type" "$target" successor
scripts/bench_lookup.py "$target" --rounds "$rounds" --threads "$threads"
