#!/bin/bash
# agents_test.sh - tests several agents with networks of their own: partitions, kill -9, paused processes, clock jumps.
# waits: processes, networks
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
needs_networks
exec unshare --net python3 "$here/agent/agents_test.py" "$@"
