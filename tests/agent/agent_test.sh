#!/bin/bash
# agent_test.sh - real agents and real processes: start, stop, adopt, limit, talk to, drain.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/agent_test.py" "$@"
