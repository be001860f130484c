#!/bin/bash
# kube_test.sh - a real Kubernetes control plane on loopback, and kube-scheduler, from which berth-kube's tests start.
# waits: processes, kubernetes
# sanitize: no, it runs nothing of Berth
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
exec python3 "$here/kube/kube_test.py"
