#!/bin/bash
# submit_test.sh - tests jobs from the command line to the process: submit, run, scripts, gangs, terminals, Slurm's
# options.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/cli/submit_test.py" "$@"
