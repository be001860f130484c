#!/bin/bash
# gateway_test.sh - real load balancers before a service whose replicas move: no request fails.
# waits: processes, networks
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
run=(python3 "$here/agent/gateway_test.py" "$@")
# In a network of its own, where that can be had: of every cluster the first app is given the same ports, and one that a job of another test
# is about to bind would be free for a socket here.
if unshare --net ip link set lo up 2>/dev/null; then
    run=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh "${run[@]}")
fi
exec "${run[@]}"
