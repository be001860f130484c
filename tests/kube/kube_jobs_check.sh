#!/bin/bash
# kube_jobs_check.sh - tests jobs of berth.dev while berth-kube and the API server are killed: every task runs once (see
# kube_jobs_test.sh).
# waits: processes, kubernetes
# bed: kubernetes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
needs_built "$BERTH_BUILD/src/kube/berth-kube"
exec python3 "$here/kube/jobs.py" kills
