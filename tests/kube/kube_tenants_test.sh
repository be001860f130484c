#!/bin/bash
# kube_tenants_test.sh - tests queues, groups, users, domains and policies as custom resources of a real control plane.
# waits: processes, kubernetes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
needs_built "$BERTH_BUILD/src/kube/berth-kube"
exec python3 "$here/kube/tenants.py"
