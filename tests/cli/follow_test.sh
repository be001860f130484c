#!/bin/bash
# follow_test.sh - tests Ctrl-C while `berth run` waits for logs that never end and for a job that never ends.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/cli/follow_test.py" "$@"
