#!/bin/bash
# hostile_jobs_test.sh - tests hostile jobs on a real agent: fork bombs, memory hogs, floods, full disks, hidden and
# unkillable processes; a normal job runs beside them.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/hostile_jobs_test.py" "$@"
