#!/bin/bash
# agents_check.sh - the same as agents_test.sh for longer: every kind of silence, daemon down, random kills.
# waits: processes, networks
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
needs_networks
exec unshare --net python3 "$here/agent/agents_check.py" "$@"
