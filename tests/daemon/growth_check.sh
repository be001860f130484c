#!/bin/bash
# growth_check.sh - grows tables of the core and of berthd to their bounds, in a release build under valgrind.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd" "$BERTH_BUILD/tests/core-model-growth_test"
needs python3 valgrind
kit_begin

check "tables of the core" valgrind -q --error-exitcode=9 "$BERTH_BUILD/tests/core-model-growth_test"
check "tables of berthd" env BERTH_UNDER="valgrind -q --error-exitcode=9" BERTH_GROWTH=70 \
    BERTH_PATIENCE=$((3 * ${BERTH_PATIENCE:-60})) \
    python3 "$here/daemon/growth_test.py"
kit_end
