#!/bin/sh
# jobs_test.sh - the life of jobs with real processes: order, fair shares, quotas, preemption, windows, arrays, dependencies,
# limits, deadlines, once more, checkpoints.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi
exec python3 "$here/jobs_test.py" "$@"
