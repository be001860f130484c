#!/bin/bash
# tenant_test.sh - tests one greedy plain user against other users, in objects and planning: a real daemon, simulated
# nodes.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
needs_built "$berthd"
exec python3 "$here/daemon/tenant_test.py" "$berthd"
