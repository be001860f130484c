#!/bin/bash
# follow_test.sh - Ctrl-C while `berth run` waits, for logs that never end and for a job that does not either.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/cli/follow_test.py" "$@"
