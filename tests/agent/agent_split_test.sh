#!/bin/bash
# agent_split_test.sh - tests the net sandbox of a real agent: what it must not do, and what happens when it dies.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/agent_split_test.py" "$@"
