#!/bin/bash
# tenant_test.sh - one plain user against all others, on the side of objects and planning: a real daemon with made-up nodes.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
needs_built "$berthd"
exec python3 "$here/daemon/tenant_test.py" "$berthd"
