#!/usr/bin/env bash
# Builds the program and starts it with the model $MODEL. Without one, uses the tiny model that ships with the project:
# it first answers two questions; on a terminal, the chat then continues. $ARGS is passed on.
set -euo pipefail
cd "$(dirname "$0")/.."

demo=models/infer-demo-5m-q8_0.gguf

# ask QUESTION: prints the tiny model's answer.
ask() {
  echo "> $1"
  build/infer run -m "$demo" --temp 0 -n 100 --quiet -p "$1" </dev/null
  echo
}

scripts/build.sh infer
arguments=()
[ -z "${ARGS:-}" ] || eval "arguments=($ARGS)"  # split as the shell splits words, so that a quoted prompt stays one
if [ -n "${MODEL:-}" ]; then
  exec build/infer run -m "$MODEL" "${arguments[@]}"
fi
if [ ${#arguments[@]} -gt 0 ]; then
  exec build/infer run -m "$demo" "${arguments[@]}"
fi
echo "This is $demo, a tiny model for trying things out. It knows the invented valley"
echo "of Lindale, small sums and short stories, and little else. To use a real model, get its GGUF file and"
echo "run: make run MODEL=path/to/file.gguf"
echo
ask "What are you?"
ask "Tell me about Mira."
if [ -t 0 ]; then
  exec build/infer run -m "$demo"
fi
