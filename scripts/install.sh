#!/usr/bin/env bash
# Installs the program, its manual pages, completion scripts, guides and systemd unit, or removes them again. They have
# been built: scripts/build.sh infer_package.
#   usage: install.sh install|uninstall
# PREFIX is the folder (default /usr/local), DESTDIR a folder that stands for / (to build packages). Settings in
# etc/default/infer are neither overwritten nor, once changed, removed. BUILD_DIR is the folder of the build.
set -euo pipefail
cd "$(dirname "$0")/.."

prefix=${PREFIX:-/usr/local}
destination=${DESTDIR:-}
case $prefix in
  /*) ;;
  *) echo "install.sh: PREFIX=$prefix is not an absolute path" >&2; exit 2 ;;
esac

# put ROOT: installs below ROOT as if it were /.
put() {
  DESTDIR=$1 cmake --install "${BUILD_DIR:-build}" --prefix "$prefix"
}

case ${1:-} in
  install)
    put "$destination"
    ;;
  uninstall)
    # A second installation elsewhere shows what there is to remove.
    list=$(mktemp -d)
    trap 'rm -rf "$list"' EXIT
    put "$list" >/dev/null
    while IFS= read -r path; do
      installed=$destination/$path
      [ -e "$installed" ] || continue
      if [[ $path == *etc/default/infer ]] && ! cmp -s "$list/$path" "$installed"; then
        echo "Keeping: $installed"
        continue
      fi
      rm -- "$installed"
      echo "Removed: $installed"
    done < <(cd "$list" && find . -type f -printf '%P\n' | sort)
    # Folders of its own; the others belong to the system.
    documents=$destination$prefix/share/doc/infer
    [ ! -d "$documents" ] || find "$documents" -type d -empty -delete
    ;;
  *) echo "usage: install.sh install|uninstall" >&2; exit 2 ;;
esac
