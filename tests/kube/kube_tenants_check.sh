#!/bin/bash
# kube_tenants_check.sh - tests that past usage and spent totals survive a change of the leader, on a real API server.
# waits: processes, kubernetes
# bed: kubernetes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
needs_built "$BERTH_BUILD/src/kube/berth-kube"
BERTH_PATIENCE=$((3 * patience)) exec python3 "$here/kube/tenants.py" kills
