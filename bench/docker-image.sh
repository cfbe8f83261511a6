#!/bin/sh
# Makes the image `glovebox-bench`: one static busybox and a link for `true`, from Debian's package
# busybox-static. Nothing is fetched from a registry.
# Usage: bench/docker-image.sh [docker|podman]
set -eu

engine=${1:-docker}
busybox=${BUSYBOX:-/bin/busybox}
[ -x "$busybox" ] || {
    echo "error: \`$busybox\` is not there: apt-get install busybox-static" >&2
    exit 1
}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT INT TERM
mkdir "$root/bin" "$root/tmp"
cp "$busybox" "$root/bin/busybox"
for name in sh true sleep; do
    ln -s busybox "$root/bin/$name"
done
tar -C "$root" --owner=0 --group=0 -c . | "$engine" import - glovebox-bench
