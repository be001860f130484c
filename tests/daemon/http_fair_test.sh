#!/bin/bash
# http_fair_test.sh - a berthd and one user who asks for much: answers bounded in bytes, users served in turn, slow readers.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs python3
exec python3 "$here/daemon/http_fair_test.py" "$berthd"
