#!/bin/bash
# plants_check.sh - a build of Berth with the bugs of src/base/plant.h in it: the simulator finds each of them.
# BERTH_OTHER is the folder of such a build; without it one is made.
set -euo pipefail

if [ -z "${BERTH_OTHER:-}" ]; then
    BERTH_OTHER=$(mktemp -d)
    trap 'rm -rf "$BERTH_OTHER"' EXIT
    meson setup "$BERTH_OTHER" "$BERTH_SOURCE" -Dplant=true -Dtests=false >"$BERTH_OTHER/setup.log" 2>&1 || {
        cat "$BERTH_OTHER/setup.log"
        exit 1
    }
    ninja -C "$BERTH_OTHER" src/cli/berth >"$BERTH_OTHER/build.log" 2>&1 || {
        tail -n 30 "$BERTH_OTHER/build.log"
        exit 1
    }
fi
python3 "$BERTH_SOURCE/tests/tools/plants.py" "$BERTH_OTHER/src/cli/berth" "$BERTH_SOURCE/src/base/plant.h"
