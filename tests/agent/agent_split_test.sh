#!/bin/bash
# agent_split_test.sh - the two halves of a real agent: what the one that speaks to the network may not, and what happens when it dies.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/agent_split_test.py" "$@"
