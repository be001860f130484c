#!/bin/sh
# daemon_test.sh - the real program `berthd`: first start, restart, requests, streams, TLS, hostile input, the end.
set -eu

berthd=${BERTH_BUILD:?is the build folder}/src/berthd/berthd
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -x "$berthd" ]; then
    echo "skip: $berthd is not built"
    exit 77
fi
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi
exec python3 "$here/daemon_test.py" "$berthd"
