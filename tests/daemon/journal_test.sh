#!/bin/bash
# journal_test.sh - makes a few hundred decisions with kills, and checks `berth journal` and `berth replay`;
# journal_check.sh makes many more. SEED may be set.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd" "$berth"
needs python3
exec python3 "$here/daemon/journal_rounds.py" "$berthd" "$berth" 150 "${SEED:-1}"
