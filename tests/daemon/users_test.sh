#!/bin/bash
# users_test.sh - tests two real agents with different histories: each user gets one uid on both, and the user's files
# get it, too.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/daemon/users_test.py" "$@"
