#!/bin/bash
# kube_plugin_test.sh - tests `kubectl berth` on a real Kubernetes control plane: its output, and the rights that it
# needs.
# waits: processes, kubernetes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
needs_built "$BERTH_BUILD/src/kube/berth-kube" "$BERTH_BUILD/src/kube/kubectl-berth"
exec python3 "$here/kube/plugin.py"
