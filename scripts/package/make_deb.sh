#!/usr/bin/env bash
# Turns an installed tree (prefix /usr) into a Debian package.
#   usage: make_deb.sh ARCHITECTURE VERSION ROOT OUT_FOLDER
# MAINTAINER="Name <address>" names the maintainer; default: the author of the last commit.
set -euo pipefail
architecture=$1 version=$2 root=$3 out=$4
maintainer=${MAINTAINER:-$(git log -1 --format='%an <%ae>')}
revision=$version-1
documents=$root/usr/share/doc/infer

# Where Debian's policy wants things.
mkdir -p "$root/usr/share/zsh/vendor-completions" "$root/lib/systemd" "$root/DEBIAN"
mv "$root/usr/share/zsh/site-functions/_infer" "$root/usr/share/zsh/vendor-completions/"
rmdir "$root/usr/share/zsh/site-functions"
mv "$root/usr/lib/systemd/system" "$root/lib/systemd/"
find "$root/usr/lib" -type d -empty -delete
find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} +
mv "$documents/CHANGELOG.md" "$documents/changelog"
{
  cat <<COPYRIGHT
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: infer
Comment: The program contains libraries, linked statically; third-party-licenses.txt has their licenses.

Files: *
Copyright: $(sed -nE 's/^Copyright \(c\) //p' LICENSE)
License: Expat

License: Expat
COPYRIGHT
  sed -n '/^Permission/,$p' LICENSE | sed -E 's/^$/./; s/^/ /'
} >"$documents/copyright"
rm "$documents/LICENSE"
cat >"$documents/changelog.Debian" <<CHANGELOG
infer ($revision) unstable; urgency=medium

  * Version $version; changelog.gz says what is new.

 -- $maintainer  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
gzip -9n "$documents/changelog" "$documents/changelog.Debian"
mkdir -p "$root/usr/share/lintian/overrides"
cat >"$root/usr/share/lintian/overrides/infer" <<'OVERRIDES'
# One package for Debian 11 and everything newer: libraries that differ between them are linked statically.
infer: embedded-library
# It is not part of Debian.
infer: initial-upload-closes-no-bugs
OVERRIDES

cat >"$root/DEBIAN/control" <<CONTROL
Package: infer
Version: $revision
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size --exclude=DEBIAN "$root" | cut -f1)
Depends: libc6 (>= 2.31)
Suggests: libvulkan1, mesa-vulkan-drivers, libopenblas0
Section: science
Priority: optional
Description: runs GGUF language models on the machine you have
 A chat in the terminal, an OpenAI-compatible server, and tools that quantize,
 evaluate, inspect and measure model files. It computes on the processor and,
 through Vulkan, on a GPU.
CONTROL
echo /etc/default/infer >"$root/DEBIAN/conffiles"
# The unit is not enabled: it needs a model first.
cat >"$root/DEBIAN/postinst" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload || true
  if [ "$1" = configure ] && [ -n "$2" ]; then systemctl try-restart infer.service || true; fi
fi
SCRIPT
cat >"$root/DEBIAN/prerm" <<'SCRIPT'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then systemctl disable --now infer.service || true; fi
SCRIPT
cat >"$root/DEBIAN/postrm" <<'SCRIPT'
#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl --system daemon-reload || true; fi
SCRIPT
chmod 755 "$root"/DEBIAN/{postinst,prerm,postrm}
chmod -R go=rX,u+rw "$root"
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/infer_${revision}_$architecture.deb"
