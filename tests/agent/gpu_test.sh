#!/bin/bash
# gpu_test.sh - tests GPUs of a real agent with a fake driver library.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/agent/gpu_test.py" "$@"
