#!/usr/bin/env bash
# Installs the programs and libraries a job needs from the system's packages, if they are missing.
#   usage: install_deps.sh [--verbose] GROUP...        groups: build test vulkan arm64 fuzz check train package check-package
# Checks first and does nothing if all are present, so every make target can call it. On systems without apt-get it
# lists what is missing and exits with 1.
set -euo pipefail

verbose=${VERBOSE:-}
groups=()
for argument in "$@"; do
  case $argument in
    --verbose) verbose=1 ;;
    --quiet) verbose= ;;
    build | test | vulkan | arm64 | fuzz | check | train | package | check-package) groups+=("$argument") ;;
    *) echo "install_deps.sh: unknown group '$argument' (build, test, vulkan, arm64, fuzz, check, train, package, check-package)" >&2; exit 2 ;;
  esac
done
[ ${#groups[@]} -gt 0 ] || { echo "usage: install_deps.sh [--verbose] build|test|vulkan|arm64|fuzz|check|train|package|check-package ..." >&2; exit 2; }

# One row per requirement: `KIND WHAT PACKAGE`. WHAT is a program in PATH, a header, a module of the system's Python, or
# a probe function below.
needs() {
  case $1 in
    build) cat <<'ROWS'
program g++ g++
program cmake cmake
program ninja ninja-build
program pkg-config pkg-config
header CLI/CLI.hpp libcli11-dev
header nlohmann/json.hpp nlohmann-json3-dev
header utf8proc.h libutf8proc-dev
header pcre2.h libpcre2-dev
header histedit.h libedit-dev
header httplib.h libcpp-httplib-dev
header openssl/ssl.h libssl-dev
header vulkan/vulkan_core.h libvulkan-dev
program glslc glslc
ROWS
      ;;
    test) cat <<'ROWS'
header doctest/doctest.h doctest-dev
program python3 python3
probe jinja2 python3-jinja2
probe openblas libopenblas0-openmp
probe vulkan_driver mesa-vulkan-drivers
program spirv-val spirv-tools
ROWS
      ;;
    vulkan) cat <<'ROWS'
probe validation_layer vulkan-validationlayers
ROWS
      ;;
    arm64) cat <<'ROWS'
program aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
program qemu-aarch64-static qemu-user-static
ROWS
      ;;
    fuzz) cat <<'ROWS'
program clang++ clang
probe libfuzzer libfuzzer
ROWS
      ;;
    check) cat <<'ROWS'
program git git
program objdump binutils
program clang-format clang-format
program codespell codespell
ROWS
      ;;
    train) cat <<'ROWS'
module torch python3-torch
module numpy python3-numpy
module regex python3-regex
probe openblas libopenblas0-openmp
ROWS
      ;;
    package) cat <<'ROWS'
program git git
program python3 python3
program readelf binutils
program dpkg-deb dpkg
program xz xz-utils
ROWS
      ;;
    check-package) cat <<'ROWS'
program debootstrap debootstrap
program lintian lintian
ROWS
      ;;
  esac
}

has_header() {
  local folder
  IFS=: read -ra extra <<<"${CPATH:-}"
  for folder in /usr/include /usr/local/include /usr/include/"$(uname -m)"-linux-gnu "${extra[@]}"; do
    [ -e "$folder/$1" ] && return 0
  done
  return 1
}

# Whether clang can link a libFuzzer program: its runtime is in a separate package, named after clang's version.
probe_libfuzzer() {
  local program='extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
  command -v clang++ >/dev/null && clang++ -fsanitize=fuzzer,address -x c++ - -o /dev/null <<<"$program" 2>/dev/null
}

# For --blas. PyTorch also works with the reference BLAS, but several times slower.
probe_openblas() { compgen -G "/usr/lib/*/libopenblas.so.0" >/dev/null; }

# Jinja2 for the comparison in tests/e2e/template_test.py, in the Python of the PATH or in the system's.
probe_jinja2() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import jinja2' 2>/dev/null && return 0
  done
  return 1
}

# A Vulkan driver: lavapipe, which runs on the processor, if there is no other.
probe_vulkan_driver() {
  local folder
  for folder in /usr/share/vulkan/icd.d /etc/vulkan/icd.d /usr/local/share/vulkan/icd.d; do
    compgen -G "$folder/*.json" >/dev/null && return 0
  done
  return 1
}

# The Khronos validation layer, for scripts/vulkan_validation.sh.
probe_validation_layer() { compgen -G "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json" >/dev/null; }

# No unversioned package exists everywhere, so the version in the name is taken from the dependencies of `clang`.
libfuzzer_package() {
  local version
  version=$(apt-cache depends clang 2>/dev/null | sed -nE 's/.*Depends: clang-([0-9]+).*/\1/p' | head -n 1)
  echo "libclang-rt-${version:-14}-dev"
}

is_there() {
  case $1 in
    program) command -v "$2" >/dev/null ;;
    header) has_header "$2" ;;
    module) /usr/bin/python3 -c "import $2" 2>/dev/null ;;
    probe) "probe_$2" ;;
  esac
}

missing() {
  local group kind what package
  for group in "${groups[@]}"; do
    while read -r kind what package; do
      is_there "$kind" "$what" || echo "$package"
    done < <(needs "$group")
  done
}

mapfile -t packages < <(missing)
[ ${#packages[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "install_deps.sh: these are missing; install them with your system's package manager (Debian's names):" >&2
  printf '  %s\n' "${packages[@]}" >&2
  exit 1
fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || {
    echo "install_deps.sh: not root and no sudo; as root, run: apt-get install ${packages[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt_get() {
  local command=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -o Acquire::Retries=3
    -o DPkg::Lock::Timeout=300 "$@")
  if [ -n "$verbose" ]; then "${command[@]}" </dev/null; else "${command[@]}" </dev/null >>"$log" 2>&1; fi
}
# REQUIRES: fresh package lists if "libfuzzer" is among the packages, because they contain its real name.
install() {
  local names=() name
  for name in "${packages[@]}"; do
    [ "$name" != libfuzzer ] || name=$(libfuzzer_package)
    names+=("$name")
  done
  apt_get install --no-install-recommends "${names[@]}"
}
lists_are_there() {
  local name
  for name in "${packages[@]}"; do
    [ "$name" = libfuzzer ] || apt-cache show "$name" >/dev/null 2>&1 || return 1
  done
}

echo "Installing ${packages[*]}"
status=0
if lists_are_there; then
  # Old lists may name versions that the mirror no longer has.
  install || { apt_get update && install; } || status=$?
else
  { apt_get update && install; } || status=$?
fi
if [ "$status" != 0 ]; then
  cat "$log" >&2
  echo "install_deps.sh: could not install: ${packages[*]}" >&2
  exit 1
fi
mapfile -t packages < <(missing)
if [ ${#packages[@]} -gt 0 ]; then
  echo "install_deps.sh: still missing after installation: ${packages[*]}" >&2
  exit 1
fi
