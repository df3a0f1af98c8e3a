#!/usr/bin/env bash
# Builds packages in build-package/out.
#   usage: package.sh [KIND...]      KIND: tarball, deb, tarball-arm64, deb-arm64; default: tarball and deb
# A tarball holds a program that needs glibc 2.31 or later and nothing else, and what belongs to it; a .deb holds the
# same. Without CUDA, whose code is for NVIDIA's toolkit only; Vulkan drivers are found when the program runs.
set -euo pipefail
cd "$(dirname "$0")/.."

kinds=("$@")
[ $# -gt 0 ] || kinds=(tarball deb)
for kind in "${kinds[@]}"; do
  case $kind in
    tarball | deb) architectures+=" amd64" ;;
    tarball-arm64 | deb-arm64) architectures+=" arm64" ;;
    *) echo "package.sh: unknown kind '$kind' (tarball, deb, tarball-arm64, deb-arm64)" >&2; exit 2 ;;
  esac
done
[ "$(uname -m)" = x86_64 ] || { echo "package.sh: packages are built on x86-64" >&2; exit 1; }

groups=(build package)
[[ $architectures != *arm64* ]] || groups+=(arm64)
scripts/install_deps.sh "${groups[@]}"

version=$(sed -nE 's/^project\(infer VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
# The time of the last commit is the time of all files, so that the same source gives the same package.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
work=build-package
out=$work/out
mkdir -p "$out"

# build ARCHITECTURE: the program in build-package-ARCHITECTURE.
build() {
  local processor=x86_64 sysroot=$PWD/$work/sysroot-$1
  [ "$1" = amd64 ] || processor=aarch64
  scripts/package/sysroot.sh "$1" "$sysroot"
  BUILD_DIR=build-package-$1 \
    scripts/build.sh infer_package -DCMAKE_TOOLCHAIN_FILE="$PWD/scripts/package/portable-toolchain.cmake" \
    -DINFER_SYSROOT="$sysroot" -DINFER_TARGET=$processor -DINFER_TESTS=OFF -DINFER_CUDA=OFF -DINFER_VULKAN=ON \
    -DINFER_JOIN_SOURCES=32  # not as many as this machine has processors: the same source gives the same package
  scripts/package/check_program.py "build-package-$1/infer" --glibc 2.31
}

# stage ARCHITECTURE PREFIX: installs into $work/stage-ARCHITECTURE.
stage() {
  local root=$work/stage-$1 strip=strip
  [ "$1" = amd64 ] || strip=aarch64-linux-gnu-strip
  rm -rf "$root"
  DESTDIR=$PWD/$root cmake --install "build-package-$1" --prefix "$2" >/dev/null
  "$strip" --strip-unneeded "$root$2/bin/infer"
  local licenses=$root$2/share/doc/infer/third-party-licenses.txt file
  for file in "$work/sysroot-$1"/usr/share/doc/*; do
    printf '==== %s ====\n\n' "$(basename "$file")"
    cat "$file"
    echo
  done >"$licenses"
}

tarball() {
  local name=infer-$version-linux-x86_64
  [ "$1" = amd64 ] || name=infer-$version-linux-aarch64
  stage "$1" /usr/local
  mv "$work/stage-$1/usr/local" "$work/stage-$1/$name"
  sed "s/@TARBALL@/$name.tar.gz/" packaging/INSTALL >"$work/stage-$1/$name/INSTALL"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw \
    -C "$work/stage-$1" -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
  echo "$out/$name.tar.gz"
}

deb() {
  stage "$1" /usr
  scripts/package/make_deb.sh "$1" "$version" "$work/stage-$1" "$out"
}

for architecture in $(tr ' ' '\n' <<<"$architectures" | sort -u); do build "$architecture"; done
for kind in "${kinds[@]}"; do
  case $kind in
    tarball) tarball amd64 ;;
    tarball-arm64) tarball arm64 ;;
    deb) deb amd64 ;;
    deb-arm64) deb arm64 ;;
  esac
done
(cd "$out" && find . -maxdepth 1 \( -name '*.tar.gz' -o -name '*.deb' \) -printf '%P\n' | sort | xargs sha256sum -- >SHA256SUMS)
