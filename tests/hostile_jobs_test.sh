#!/bin/sh
# hostile_jobs_test.sh - jobs that fork, eat, flood, fill, hide and cling, on a real agent beside a well-behaved one.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi
exec python3 "$here/hostile_jobs_test.py" "$@"
