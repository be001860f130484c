#!/bin/bash
# backup_test.sh - a sealed backup of a whole cluster, and a daemon made from it that agents, tokens and secrets accept.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 setsid
exec python3 "$here/daemon/backup_test.py" "$@"
