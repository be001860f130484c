#!/bin/bash
# kube_test.sh - tests a real Kubernetes control plane on loopback with kube-scheduler, the base of berth-kube's tests.
# waits: processes, kubernetes
# sanitize: no, it runs nothing of Berth
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
exec python3 "$here/kube/kube_test.py"
