#!/bin/bash
# growth_test.sh - grows every table of a real berthd that requests can grow to its bound; all objects exist after a
# kill.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs python3
exec python3 "$here/daemon/growth_test.py" "$@"
