#!/bin/bash
# vm_check.sh - real agents (agent_kit.py) run virtual machines: small guests in qemu, without KVM.
# waits: processes, guests
# bed: guests, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 curl
# A guest without KVM on a busy machine takes its time.
export BERTH_PATIENCE=$((5 * ${BERTH_PATIENCE:-60})) # agents wait for guests, which are emulated
# In part: one machine that runs, is reached and powers down, and what a node cannot do.
if [ $# = 0 ] && [ "$(in_part part whole)" = part ]; then set -- a_machine_runs what_a_node_cannot; fi
PYTHONPATH=$here exec python3 "$here/guest/vm_check.py" "$@"
