#!/bin/bash
# Builds Berth with the bugs of src/base/plant.h in it, and sees the simulator find each of them.
set -euo pipefail

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
meson setup "$build" "$BERTH_SOURCE" -Dplant=true -Dtests=false >"$build/setup.log" 2>&1 || {
    cat "$build/setup.log"
    exit 1
}
ninja -C "$build" src/cli/berth >"$build/build.log" 2>&1 || {
    tail -n 30 "$build/build.log"
    exit 1
}
python3 "$BERTH_SOURCE/tests/plants.py" "$build/src/cli/berth" "$BERTH_SOURCE/src/base/plant.h"
