#!/bin/bash
# agents_check.sh - a longer agents_test.sh: every kind of lost connection, an outage of the daemon, random kills.
# waits: processes, networks
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
needs_networks
exec unshare --net python3 "$here/agent/agents_check.py" "$@"
