#!/bin/bash
# guest_boot_check.sh - tests an upgrade that breaks the boot: the machine returns to the good slot by itself
# (berth-ab).
# waits: guests
# bed: guests
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 mkfs.ext4
exec python3 "$here/guest/boot_check.py" "$@"
