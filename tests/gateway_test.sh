#!/bin/sh
# gateway_test.sh - real load balancers before a service whose replicas move: no request fails.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi
exec python3 "$here/gateway_test.py" "$@"
