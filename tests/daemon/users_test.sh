#!/bin/bash
# users_test.sh - two real agents with other histories: each user has one number on both, and its files follow it.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/daemon/users_test.py" "$@"
