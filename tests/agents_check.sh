#!/bin/sh
# agents_check.sh - the same as agents_test.sh for longer: every kind of silence, daemon down, random kills.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
for program in python3 ip nsenter unshare; do
    if ! command -v "$program" >/dev/null; then
        echo "skip: there is no $program"
        exit 77
    fi
done
if ! unshare --net sh -c 'ip link add br0 type bridge && ip link add a0 type veth peer name a1' 2>/dev/null; then
    echo "skip: no network namespace with a bridge and a pair of links can be made here"
    exit 77
fi
exec unshare --net python3 "$here/agents_check.py" "$@"
