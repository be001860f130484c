#!/bin/bash
# journal_check.sh - makes a daemon's journal of ten thousand decisions with kills and restarts, and replays it with
# this build and with a build of another compiler; in part: three thousand. BERTH_OTHER is the folder of such a build.
# DECISIONS and SEED may be set.
# bed: decisions, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd" "$berth"
needs python3
build=$BERTH_BUILD
source=${BERTH_SOURCE:-$(cd "$here/.." && pwd)}
decisions=${DECISIONS:-$(in_part 3000 10000)}

if [ -n "${BERTH_OTHER:-}" ]; then
    exec python3 "$source/tests/daemon/journal_rounds.py" "$berthd" "$berth" "$decisions" "${SEED:-1}" \
        "$BERTH_OTHER/src/cli/berth"
fi
# The other build stays beside this one for later runs.
other=$build/other
if command -v clang >/dev/null; then
    set -- --native-file="$source/tools/clang.ini"
else
    set --
fi
if [ ! -f "$other/build.ninja" ]; then
    meson setup "$other" "$source" -Doptimization=0 -Dtests=false "$@" >"$build/other.log" 2>&1 || {
        cat "$build/other.log"
        exit 1
    }
fi
meson setup --reconfigure "$other" "$source" >"$build/other.log" 2>&1
ninja -C "$other" src/cli/berth >"$build/other.log" 2>&1 || {
    tail -n 20 "$build/other.log"
    exit 1
}
exec python3 "$source/tests/daemon/journal_rounds.py" "$berthd" "$berth" "$decisions" "${SEED:-1}" \
    "$other/src/cli/berth"
