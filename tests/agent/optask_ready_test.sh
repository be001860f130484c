#!/bin/bash
# optask_ready_test.sh - the ready OpTasks: really done and undone in namespaces of their own, and with stand-ins for what
# belongs to another system.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/optask_ready_test.py" "$@"
