#!/bin/bash
# backup_test.sh - tests a sealed backup of a whole cluster, and a restored daemon that accepts agents, tokens and
# secrets.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 setsid
exec python3 "$here/daemon/backup_test.py" "$@"
