#!/usr/bin/env bash
# Installs the packages of scripts/package.sh in bare systems without a compiler and runs the main jobs there: an answer,
# a quantized model, a server. Needs root (debootstrap, chroot).
#   usage: check_package.sh [SYSTEM...]      SYSTEM: a release of Debian or Ubuntu, or arm64; default: bullseye bookworm
#                                            jammy, and arm64 if its tarball is there
# The oldest of them, bullseye, has the glibc that the packages promise to work with. arm64 runs the tarball for 64-bit Arm
# under emulation, with glibc 2.31. BARE_ROOT (default /var/tmp/infer-bare) keeps the systems for the next time.
set -euo pipefail
cd "$(dirname "$0")/.."

systems=("$@")
arm_tarball=$(compgen -G "build-package/out/infer-*-linux-aarch64.tar.gz" || true)
[ $# -gt 0 ] || systems=(bullseye bookworm jammy ${arm_tarball:+arm64})
[ "$(id -u)" = 0 ] || { echo "check_package.sh: debootstrap and chroot need root" >&2; exit 1; }
scripts/install_deps.sh package check-package
out=build-package/out
tarball=$(ls "$out"/infer-*-linux-x86_64.tar.gz)
deb=$(ls "$out"/infer_*_amd64.deb)
base=${BARE_ROOT:-/var/tmp/infer-bare}
demo=/srv/models/infer-demo-5m-q8_0.gguf small=/tmp/small.gguf
question="Where does Mira live?" answer="Mira lives in Brindlow."
port=18080

# make_system NAME: a minimal system in $base/NAME, without a compiler.
make_system() {
  local mirror=${MIRROR:-http://deb.debian.org/debian} options=()
  case $1 in
    # Debian has no keys of Ubuntu's; nothing of this system is kept.
    focal | jammy | noble) mirror=http://archive.ubuntu.com/ubuntu options=(--no-check-gpg) ;;
  esac
  [ ! -e "$base/$1/.ready" ] || return 0
  rm -rf --one-file-system "${base:?}/$1"
  mkdir -p "$base"
  debootstrap --variant=minbase "${options[@]}" "$1" "$base/$1" "$mirror" >"$base/$1.log" 2>&1 || {
    tail -n 5 "$base/$1.log" >&2
    return 1
  }
  touch "$base/$1/.ready"
}

server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  if mountpoint -q "$base/box/proc"; then umount -l "$base/box/proc"; fi
}
trap finish EXIT

# A command in the box as root; the program there as a user without rights.
inside() { chroot "$base/box" /usr/bin/env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LC_ALL=C "$@"; }
program=(chroot --userspec=65534:65534 "$base/box" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/tmp infer)
fail() { echo "check_package.sh: $1" >&2; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1: expected '$3', found '$2'"; }

# One new box per package, so that one cannot rest on the other.
new_box() {
  finish
  rm -rf --one-file-system "$base/box"
  cp -a "$base/$1" "$base/box"
  mount -t proc proc "$base/box/proc"
  mkdir -p "$base/box/srv/models"
  cp models/*.gguf "$base/box/srv/models/"
  if inside sh -c 'command -v gcc || command -v cc || command -v clang'; then fail "$1 has a compiler"; fi
}

check_libraries() {
  local objects
  objects=$(inside ldd "$(inside sh -c 'command -v infer')" | grep -v linux-vdso | sed -E 's/^\s*(\S+).*/\1/')
  echo "loads:" $objects
  while IFS= read -r object; do
    [[ $(basename "$object") =~ ^(libc|libm|libpthread|libdl|librt|ld-linux[a-z0-9_-]*)\.so\.[0-9]+$ ]] || fail "it loads $object"
  done <<<"$objects"
}

check_jobs() {
  expect "run" "$("${program[@]}" run -m $demo --temp 0 --quiet -p "$question" </dev/null)" "$answer"
  "${program[@]}" quantize $demo $small Q4_K_M --allow-requantize >/dev/null 2>&1 || fail "quantize"
  "${program[@]}" inspect $small --verify >/dev/null || fail "inspect"
  [ -n "$("${program[@]}" run -m $small --temp 0 --quiet -n 20 -p "$question" </dev/null)" ] || fail "run small.gguf"
  "${program[@]}" serve -m $demo --port $port >"$base/serve.log" 2>&1 &
  server=$!
  local reply=
  for _ in $(seq 300); do
    kill -0 "$server" 2>/dev/null || { cat "$base/serve.log"; fail "serve ended"; }
    if grep -q ready "$base/serve.log"; then break; fi
    sleep 0.2
  done
  reply=$(python3 - "$port" "$question" <<'PYTHON'
import json, sys, urllib.request
body = {"messages": [{"role": "user", "content": sys.argv[2]}], "temperature": 0}
request = urllib.request.Request(f"http://127.0.0.1:{sys.argv[1]}/v1/chat/completions", json.dumps(body).encode(),
                                 {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
PYTHON
  )
  expect "serve" "$reply" "$answer"
  kill "$server"
  wait "$server" || fail "serve ended with $?"
  server=
}

check_tarball() {
  new_box "$1"
  tar -C "$base/box/usr/local" --strip-components=1 -xf "$tarball"
  check_libraries
  check_jobs
  inside bash -c 'source /usr/local/share/bash-completion/completions/infer && complete -p infer' >/dev/null || fail "completion"
}

check_deb() {
  new_box "$1"
  inside find / -xdev -not -path '/proc*' -not -path '/var/lib/dpkg*' -not -path '/var/log*' | sort >"$base/before"
  cp "$deb" "$base/box/tmp/infer.deb"
  inside dpkg -i /tmp/infer.deb >/dev/null
  check_libraries
  check_jobs
  inside dpkg --verify infer || fail "dpkg --verify"
  inside dpkg --purge infer >/dev/null
  rm -f "$base/box"/tmp/infer.deb "$base/box"/tmp/small.gguf
  inside find / -xdev -not -path '/proc*' -not -path '/var/lib/dpkg*' -not -path '/var/log*' | sort >"$base/after"
  diff "$base/before" "$base/after" || fail "purge left files"
}

check_arm64() {
  rm -rf "$base/box"
  mkdir -p "$base/box/tmp"
  tar -C "$base/box" --strip-components=1 -xf "$arm_tarball"
  cp models/*.gguf "$base/box/"
  chmod 777 "$base/box" "$base/box/tmp"
  # A copy, because the user without rights may not be able to enter this folder.
  rm -rf "$base/arm64-root"
  cp -a build-package/sysroot-arm64 "$base/arm64-root"
  program=(setpriv --reuid=65534 --regid=65534 --clear-groups env -i "HOME=$base/box" qemu-aarch64-static -cpu max
    -L "$base/arm64-root" "$base/box/bin/infer")
  demo=$base/box/infer-demo-5m-q8_0.gguf small=$base/box/tmp/small.gguf
  check_jobs
  echo "arm64: the tarball works under emulation"
}

for system in "${systems[@]}"; do
  if [ "$system" = arm64 ]; then
    check_arm64
    continue
  fi
  make_system "$system"
  for package in tarball deb; do
    "check_$package" "$system"
    echo "$system: the $package works"
  done
done
