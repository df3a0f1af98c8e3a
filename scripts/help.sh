#!/usr/bin/env bash
# Prints the targets of the Makefile, each with its comment.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "Targets of make:"
sed -nE 's/^([a-z0-9-]+): *## (.*)$/\1\t\2/p' Makefile | while IFS=$'\t' read -r target text; do
  printf '  %-18s %s\n' "$target" "$text"
done
echo 'Variables: MODEL=file.gguf and ARGS="..." for run, MODEL for bench, PREFIX and DESTDIR for install, SAN=1 for test, JOBS=N, VERBOSE=1'
