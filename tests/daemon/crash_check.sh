#!/bin/bash
# crash_check.sh - crashes berthd two hundred times in the middle of writes; in part: sixty times. ROUNDS may be set.
# bed: kills, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
ROUNDS=${ROUNDS:-$(in_part 60 200)} exec "$here/daemon/crash_test.sh"
