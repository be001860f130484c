#!/bin/bash
# hostile_jobs_test.sh - jobs that fork, eat, flood, fill, hide and cling, on a real agent beside a well-behaved one.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/hostile_jobs_test.py" "$@"
