#!/bin/sh
# Makes an OCI image layout with busybox in it, for containers.yaml: needs umoci and a static busybox.
#
#   examples/containers.sh FOLDER
set -eu

[ $# -eq 1 ] || {
    echo "usage: $0 FOLDER" >&2
    exit 2
}
[ ! -e "$1" ] || {
    echo "$1 is there already; remove it, or take another folder" >&2
    exit 1
}
for program in umoci busybox; do
    command -v "$program" >/dev/null || {
        echo "$program is missing: apt install umoci busybox-static" >&2
        exit 1
    }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umoci init --layout "$1"
umoci new --image "$1:1"
umoci unpack --image "$1:1" "$work/image" >/dev/null
root=$work/image/rootfs
mkdir -p "$root/bin" "$root/tmp"
chmod 1777 "$root/tmp"
for name in $(busybox --list); do ln -sf busybox "$root/bin/$name"; done
rm -f "$root/bin/busybox"
cp "$(command -v busybox)" "$root/bin/busybox"
umoci repack --image "$1:1" "$work/image" >/dev/null
echo "image: oci:$1:1"
