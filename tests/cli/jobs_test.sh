#!/bin/bash
# jobs_test.sh - tests the life cycle of jobs with real processes: order, fair shares, quotas, preemption, windows,
# arrays, dependencies, limits, deadlines, requeues, checkpoints.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/cli/jobs_test.py" "$@"
