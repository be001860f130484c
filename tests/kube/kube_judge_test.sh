#!/bin/bash
# kube_judge_test.sh - tests the admission webhook and the node reporter on a real Kubernetes control plane.
# waits: processes, kubernetes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
needs_built "$BERTH_BUILD/src/kube/berth-kube"
exec python3 "$here/kube/judge.py"
