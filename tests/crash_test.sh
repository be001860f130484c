#!/bin/sh
# crash_test.sh - a few crashes of berthd in the middle of writes; crash_check.sh does many. ROUNDS and SEED may be set.
set -eu

berthd=${BERTH_BUILD:?is the build folder}/src/berthd/berthd
berth=$BERTH_BUILD/src/cli/berth
here=$(cd "$(dirname "$0")" && pwd)
for program in "$berthd" "$berth"; do
    if [ ! -x "$program" ]; then
        echo "skip: $program is not built"
        exit 77
    fi
done
if ! command -v python3 >/dev/null; then
    echo "skip: there is no python3"
    exit 77
fi
exec python3 "$here/crash_rounds.py" "$berthd" "$berth" "${ROUNDS:-5}" ${SEED:+"$SEED"}
