#!/bin/sh
# submit_test.sh - jobs from the command line to the process: submit, run, scripts, gangs, terminals, Slurm's words.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi
exec python3 "$here/submit_test.py" "$@"
