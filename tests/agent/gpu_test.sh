#!/bin/bash
# gpu_test.sh - GPUs of a real agent, told by a library that stands in for the driver's.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/gpu_test.py" "$@"
