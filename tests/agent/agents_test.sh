#!/bin/bash
# agents_test.sh - several agents, each behind a network of its own: partitions, kill -9, paused processes, clock jumps.
# waits: processes, networks
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
needs_networks
exec unshare --net python3 "$here/agent/agents_test.py" "$@"
