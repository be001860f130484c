#!/bin/bash
# optask_test.sh - tests OpTasks with a real daemon and agent (agent_kit); longer cases are in optask_check.sh.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/optask_test.py" done_once python_scripts too_long kills_of written_down never_began as_often folder_of not_pinned retry_undo
