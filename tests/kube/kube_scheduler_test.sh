#!/bin/bash
# kube_scheduler_test.sh - tests berth-kube on a real Kubernetes control plane, with the rights of its manifests.
# waits: processes, kubernetes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
needs_built "$BERTH_BUILD/src/kube/berth-kube"
exec python3 "$here/kube/kube_scheduler_test.py"
