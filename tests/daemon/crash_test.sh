#!/bin/bash
# crash_test.sh - crashes berthd a few times in the middle of writes; crash_check.sh does it more often. ROUNDS and SEED
# may be set.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd" "$berth"
needs python3
exec python3 "$here/daemon/crash_rounds.py" "$berthd" "$berth" "${ROUNDS:-5}" ${SEED:+"$SEED"}
