#!/bin/bash
# vm_check.sh - tests virtual machines on real agents (agent_kit.py): small guests in qemu without KVM.
# waits: processes, guests
# bed: guests, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 curl
# A guest without KVM is slow on a busy machine.
export BERTH_PATIENCE=$((5 * ${BERTH_PATIENCE:-60})) # agents wait for emulated guests
# In part: one machine that runs, is reached and powers off, and requests that a node cannot satisfy.
if [ $# = 0 ] && [ "$(in_part part whole)" = part ]; then set -- a_machine_runs a_node_cannot_satisfy; fi
PYTHONPATH=$here exec python3 "$here/guest/vm_check.py" "$@"
