#!/bin/bash
# http_fair_test.sh - tests a berthd with one greedy user: bounded bytes of answers, users served in turn, slow readers.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs python3
exec python3 "$here/daemon/http_fair_test.py" "$berthd"
