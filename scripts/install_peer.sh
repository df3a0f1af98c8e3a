#!/usr/bin/env bash
# Installs other LLM programs from npm in build/peer, next to a copy of tests/peer, because npm resolves packages from
# the importing file's folder. build/peer/node is the Node.js to run them with: this machine's or, if that is too old
# for the packages, the one that package.json installs from npm.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v npm >/dev/null || { echo "The programs to compare with need Node.js 20 or later and npm. Install both." >&2; exit 1; }
folder=build/peer
mkdir -p "$folder"
cp tests/peer/package.json tests/peer/*.mjs "$folder/"
# llama.cpp's packages for all systems and GPUs take 700 MB; the one for this processor suffices.
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
