#!/bin/bash
# agent_test.sh - tests real agents with real processes: start, stop, adopt, limits, sessions, drain.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/agent_test.py" "$@"
