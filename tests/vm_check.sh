#!/bin/bash
# vm_check.sh - real agents (agent_kit.py) run virtual machines: small guests in qemu, without KVM.
# waits: processes, guests
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/kit.sh"
needs python3 curl
# A guest without KVM on a busy machine takes its time.
export BERTH_PATIENCE=$((5 * ${BERTH_PATIENCE:-60})) # agents wait for guests, which are emulated
PYTHONPATH=$here exec python3 "$here/guest/vm_check.py" "$@"
