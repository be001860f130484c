#!/bin/bash
# gateway_test.sh - tests real load balancers in front of a service whose replicas move: no request fails.
# waits: processes, networks
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
run=(python3 "$here/agent/gateway_test.py" "$@")
# Runs in its own network namespace if possible: the first app of every cluster gets the same ports, and a port that a
# job of another test has not bound yet would be free here.
if unshare --net ip link set lo up 2>/dev/null; then
    run=(unshare --net sh -c 'ip link set lo up && exec "$@"' sh "${run[@]}")
fi
exec "${run[@]}"
