#!/bin/bash
# guest_upgrade_check.sh - tests the ready OpTask system-upgrade --ab on a machine that really reboots: daemon, agent
# and slots in a guest.
# waits: guests
# bed: guests
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 mkfs.ext4 strip
needs_built "$berth" "$berthd" "$BERTH_BUILD/src/agent/berth-agent" "$BERTH_BUILD/src/shim/berth-shim"
exec python3 "$here/guest/upgrade_check.py" "$@"
