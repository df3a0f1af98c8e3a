#!/usr/bin/env bash
# Formats the tracked C++ and CUDA sources according to .clang-format; --check only lists those that are not formatted.
#   usage: format.sh [--check | --self-test]
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_deps.sh check

dry_run() { clang-format --style=file --dry-run -Werror "$@"; }

case ${1:-} in
  "") git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 -r clang-format --style=file -i ;;
  --check)
    mapfile -d '' -t files < <(git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh')
    bad=()
    for file in "${files[@]}"; do
      [ ! -e "$file" ] || dry_run "$file" 2>/dev/null || bad+=("$file")
    done
    [ ${#bad[@]} = 0 ] || printf '%s: not formatted (make format)\n' "${bad[@]}"
    echo "format: ${#files[@]} files, ${#bad[@]} not formatted"
    [ ${#bad[@]} = 0 ] && [ ${#files[@]} -gt 0 ]
    ;;
  --self-test)
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    cp .clang-format "$folder"
    printf 'int f() { return 1; }\n' >"$folder/good.cpp"
    printf 'int  f( ){return 1 ;}\n' >"$folder/bad.cpp"
    dry_run "$folder/good.cpp"
    if dry_run "$folder/bad.cpp" 2>/dev/null; then
      echo "format: a badly formatted file passed" >&2
      exit 1
    fi
    ;;
  *) echo "usage: format.sh [--check | --self-test]" >&2; exit 2 ;;
esac
