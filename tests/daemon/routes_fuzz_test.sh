#!/bin/bash
# routes_fuzz_test.sh - sends random requests to every route of a real berthd with two real agents: 60 s under the
# sanitizers, 10 s otherwise.
#
# For hours: BERTH_BUILD=build/sanitize python3 tests/daemon/routes_fuzz.py --seconds 7200 [--seed N]
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berth" "$berthd"
needs python3
exec python3 "$here/daemon/routes_fuzz.py" "$@"
