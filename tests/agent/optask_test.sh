#!/bin/bash
# optask_test.sh - tests OpTasks with a real daemon and agent (agent_kit); longer cases are in optask_check.sh.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/optask_test.py" runs_once python_scripts timeout_ends kills_of unwritable never_started \
    retry_resets folder_of unpinned retry_undo
