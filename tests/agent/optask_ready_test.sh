#!/bin/bash
# optask_ready_test.sh - tests the ready OpTasks: runs and undoes them in namespaces, with stand-ins for programs of
# other systems.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/optask_ready_test.py" "$@"
