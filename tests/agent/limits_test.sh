#!/bin/bash
# limits_test.sh - tests limits of the network, the disk and huge pages on real agents, as far as this machine's kernel
# can enforce them.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/limits_test.py" "$@"
