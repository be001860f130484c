#!/bin/bash
# kube_jobs_test.sh - tests Jobs of berth.dev on a real Kubernetes control plane: made, placed, followed to their end.
# waits: processes, kubernetes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
needs_built "$BERTH_BUILD/src/kube/berth-kube"
exec python3 "$here/kube/jobs.py"
