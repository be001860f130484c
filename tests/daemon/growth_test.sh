#!/bin/bash
# growth_test.sh - every table of a real berthd that requests can grow, to its bound; the daemon is killed and has everything.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs python3
exec python3 "$here/daemon/growth_test.py" "$@"
