#!/usr/bin/env bash
# Collects in a folder what a portable program for Linux is linked with: glibc 2.31 (Debian 11's, only to link against),
# static archives of the other libraries (Debian 12's), and cpp-httplib as a header (from Debian's source package;
# its binary package has a shared object only).
#   usage: sysroot.sh amd64|arm64 FOLDER
# Needs Debian 12 or a system with apt-get and Debian's archive keys; no root. MIRROR names another mirror.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

architecture=${1:?architecture: amd64 or arm64}
folder=${2:?folder}
case $architecture in
  amd64) triplet=x86_64-linux-gnu compiler=gcc ;;
  arm64) triplet=aarch64-linux-gnu compiler=aarch64-linux-gnu-gcc ;;
  *) echo "sysroot.sh: unknown architecture '$architecture' (amd64, arm64)" >&2; exit 2 ;;
esac
mirror=${MIRROR:-http://deb.debian.org/debian}
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -e "$keys" ] || { echo "sysroot.sh: $keys is missing; install debian-archive-keyring" >&2; exit 1; }

# It is complete if it was made by this version of these files.
stamp=$(cat "$0" "$here/glibc_compat.c" | sha256sum | cut -d' ' -f1)
[ "$(cat "$folder/.stamp" 2>/dev/null)" != "$stamp" ] || exit 0
rm -rf "$folder"
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# apt RELEASE ARGUMENT...: apt-get with lists and settings of its own, for a release of Debian.
apt() {
  local release=$1 state=$work/apt-$1
  shift
  if [ ! -d "$state" ]; then
    mkdir -p "$state"/{lists,cache/archives}/partial
    {
      echo "deb [signed-by=$keys] $mirror $release main"
      # Nothing of Debian 11 ends up in the program, so its security updates are not needed.
      [ "$release" = bullseye ] || {
        echo "deb [signed-by=$keys] ${mirror%debian}debian-security $release-security main"
        echo "deb-src [signed-by=$keys] $mirror $release main"
      }
    } >"$state/sources.list"
    touch "$state/status"
    apt_get update
  fi
  apt_get "$@"
}
apt_get() {
  apt-get -q -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o APT::Sandbox::User=root \
    -o Acquire::Retries=3 -o Acquire::Languages=none -o "Dir::State=$state" -o "Dir::State::status=$state/status" \
    -o "Dir::Cache=$state/cache" -o "Dir::Etc::sourcelist=$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null "$@" >>"$work/log" 2>&1 || {
    tail -n 20 "$work/log" >&2
    return 1
  }
}

# unpack RELEASE INTO PACKAGE...
unpack() {
  local release=$1 into=$2 file
  shift 2
  mkdir -p "$work/$into"
  (cd "$work/$into" && apt "$release" download "$@")
  for file in "$work/$into"/*.deb; do dpkg -x "$file" "$work/$into/root"; done
}

unpack bookworm libraries libssl-dev zlib1g-dev libbrotli-dev libpcre2-dev libutf8proc-dev libedit-dev libbsd-dev \
  libmd-dev libncurses-dev libtinfo6 nlohmann-json3-dev libcli11-dev libvulkan-dev
unpack bullseye glibc libc6 libc6-dev libcrypt1 libgcc-10-dev
# The lists that `apt` fetched in a subshell stay in $work.
mkdir "$work/httplib"
(cd "$work" && apt bookworm source --download-only cpp-httplib)
tar -xf "$work"/cpp-httplib_*.orig.tar.* --strip-components=1 -C "$work/httplib"

library=$folder/usr/lib/$triplet
mkdir -p "$library" "$folder/usr/include" "$folder/lib" "$folder/usr/share/doc"
cp -a "$work/libraries/root/usr/include/." "$folder/usr/include/"
# Headers of one architecture, such as OpenSSL's configuration, where every compiler finds them.
[ ! -d "$folder/usr/include/$triplet" ] || cp -a "$folder/usr/include/$triplet/." "$folder/usr/include/"
cp -a "$work/libraries/root/usr/lib/$triplet"/*.a "$library/"
# Apart, so that a compiler that looks for it finds all other headers where it otherwise does.
mkdir -p "$folder/httplib"
cp "$work/httplib/httplib.h" "$folder/httplib/"
# The libraries' licenses, for the package; that of ncurses is with its shared object.
for package in libssl-dev zlib1g-dev libbrotli-dev libpcre2-dev libutf8proc-dev libedit-dev libbsd-dev libmd-dev \
  libtinfo6 nlohmann-json3-dev libcli11-dev; do
  cp -L "$work/libraries/root/usr/share/doc/$package/copyright" "$folder/usr/share/doc/$package"
done
cp "$work/httplib/LICENSE" "$folder/usr/share/doc/cpp-httplib"

# glibc: its shared objects, start files and the archives that go with them; no headers, the compiler has its own.
cp -a "$work/glibc/root/lib/$triplet/." "$library/"
cp -a "$work/glibc/root/usr/lib/$triplet"/{*.o,libc.so,libm.so,libc_nonshared.a,libpthread.a,libdl.a,librt.a} "$library/"
# Vector mathematics, on x86-64 only.
find "$work/glibc/root/usr/lib/$triplet" -name 'libmvec*' -exec cp -a {} "$library/" \;
for name in libpthread libdl librt; do ln -sf "$(basename "$library/$name".so.*)" "$library/$name.so"; done
cp -a "$work/glibc/root/lib/$triplet" "$folder/lib/"
# The program loader, by the name that linker scripts and programs have for it.
if [ "$architecture" = amd64 ]; then
  mkdir "$folder/lib64"
  ln -s "../lib/$triplet/ld-2.31.so" "$folder/lib64/ld-linux-x86-64.so.2"
else
  ln -s "$triplet/ld-2.31.so" "$folder/lib/ld-linux-aarch64.so.1"
fi
# The unwinder of GCC 12 uses _dl_find_object of glibc 2.35; that of GCC 10 reads the same tables.
cp "$work/glibc/root/usr/lib/gcc/$triplet/10/libgcc_eh.a" "$library/"
"$compiler" -O2 -fPIC -c "$here/glibc_compat.c" -o "$library/glibc_compat.o"

mkdir -p "$library/pkgconfig"
cat >"$library/pkgconfig/cpp-httplib.pc" <<PC
Name: cpp-httplib
Description: HTTP library, as one header
Version: 0
Cflags: -I$folder/httplib -DCPPHTTPLIB_OPENSSL_SUPPORT -DCPPHTTPLIB_ZLIB_SUPPORT -DCPPHTTPLIB_BROTLI_SUPPORT
Libs: -L$library -lssl -lcrypto -lbrotlidec -lbrotlienc -lbrotlicommon -lz
PC
echo "$stamp" >"$folder/.stamp"
