#!/bin/bash
# daemon_test.sh - tests the real berthd: first start, restart, requests, streams, TLS, hostile input, shutdown.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs python3
exec python3 "$here/daemon/daemon_test.py" "$berthd"
