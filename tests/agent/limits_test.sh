#!/bin/bash
# limits_test.sh - real agents keep limits of the network, the disk and huge pages, as the kernel of this machine can.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/limits_test.py" "$@"
