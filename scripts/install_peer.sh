#!/usr/bin/env bash
# Installs other programs of the field from npm in build/peer, beside a copy of tests/peer: npm wants what imports a
# package beside it. build/peer/node is the Node.js to run them with: this machine's, or, where that is older than the
# packages want, the one of package.json from npm.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v npm >/dev/null || { echo "Other programs of the field need Node.js 20 or later and npm." >&2; exit 1; }
folder=build/peer
mkdir -p "$folder"
cp tests/peer/package.json tests/peer/*.mjs "$folder/"
# llama.cpp's packages for every system and GPU weigh 700 MB; the one for this processor is enough.
version=$(node -p 'require("./tests/peer/package.json").dependencies["node-llama-cpp"]')
platform=linux-$(node -p process.arch)
packages=("@node-llama-cpp/$platform@$version")
node=$(command -v node)
wanted=$(node -p 'require("./tests/peer/package.json").config.node')
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt "${wanted%%.*}" ]; then
  packages+=("node-$platform@$wanted")
  node=$PWD/$folder/node_modules/node-$platform/bin/node
fi
npm --prefix "$folder" install --no-package-lock --no-save --no-audit --no-fund --ignore-scripts --omit=optional \
  --loglevel=error "${packages[@]}" >&2
ln -sfn "$node" "$folder/node"
