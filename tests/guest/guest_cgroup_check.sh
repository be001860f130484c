#!/bin/bash
# guest_cgroup_check.sh - tests limits with cgroup v2 only: runs the tests of src/machine in a guest without cgroup v1.
# waits: guests
# bed: guests, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
# In part: the smaller of the two programs.
if [ $# = 0 ]; then set -- "$(in_part limit_watch machine)"; fi
exec python3 "$here/guest/cgroup_check.py" "$@"
