#!/bin/bash
# optask_check.sh - runs the remaining cases of optask_test.py (agent_kit): power failures, abandoned nodes, lost
# messages, the manual's examples.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 unshare
exec python3 "$here/agent/optask_test.py" interrupted given_up refusal new_node manual
