#!/bin/sh
# agent_test.sh - real agents and real processes: start, stop, adopt, limit, talk to, drain.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi
exec python3 "$here/agent_test.py" "$@"
