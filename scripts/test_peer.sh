#!/usr/bin/env bash
# Builds the program and compares it with other programs of the field, taken from npm: see tests/peer.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ ! -e tests/peer/package.json ]; then
  echo "There are no peer tests in this version (tests/peer/package.json)." >&2
  exit 1
fi
command -v npm >/dev/null || { echo "The peer tests need Node.js and npm." >&2; exit 1; }
scripts/build.sh infer
npm --prefix tests/peer ci
INFER_BINARY="$PWD/build/infer" npm --prefix tests/peer test
