#!/bin/bash
# guest_cgroup_check.sh - limits under a pure cgroup v2: the tests of src/machine, run in a guest whose kernel has nothing else.
# waits: guests
# bed: guests, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
# In part: the smaller of the two programs.
if [ $# = 0 ]; then set -- "$(in_part limit_watch machine)"; fi
exec python3 "$here/guest/cgroup_check.py" "$@"
