#!/bin/bash
# journal_check.sh - a daemon's journal of ten thousand decisions, with kills and restarts in it, replayed by this build and by
# one of another compiler without optimisation. DECISIONS and SEED may be set.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/kit.sh"
needs_built "$berthd" "$berth"
needs python3
build=$BERTH_BUILD
source=${BERTH_SOURCE:-$(cd "$here/.." && pwd)}

# Kept beside the rest, so that the next time it is there.
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
exec python3 "$source/tests/journal_rounds.py" "$berthd" "$berth" "${DECISIONS:-10000}" "${SEED:-1}" "$other/src/cli/berth"
