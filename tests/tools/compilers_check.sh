#!/bin/sh
# compilers_check.sh - compares the plans of 600 random clusters between compilers and optimisation levels, by their
# hashes.
set -eu

source=${BERTH_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
seeds=${BERTH_WORLDS:-300}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/hashes.c" <<'END'
#include <inttypes.h>
#include <stdlib.h>

#include "world.h"

int main(int argc, char **argv)
{
    uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 300;

    for (uint64_t i = 0; i < 2 * seeds; i++) {
        uint64_t seed = i < seeds ? 1 + i : PREEMPTION_SEEDS_FROM + i - seeds;
        struct world world;
        struct berth_snapshot *snapshot;
        world_random(&world, seed);
        struct berth_cluster *cluster = world_load(&world, seed);
        struct berth_plan *plan = cluster ? world_plan(&world, cluster, &snapshot) : NULL;
        if (!plan)
            return 1;
        printf("%" PRIu64 " %016" PRIx64 "\n", seed, berth_plan_hash(plan));
        berth_plan_free(plan);
        berth_snapshot_free(snapshot);
        berth_cluster_free(cluster);
        world_done(&world);
    }
    return 0;
}
END

files=$(find "$source/src/base" "$source/src/core" -name '*.c' \
    ! -name '*_test.c' ! -name '*_fuzz.c' ! -name '*_check.c')
kit=
for file in world node_random shape_random state_random policy_random rules rules_resources preemption_random \
    rules_topology rules_relief; do
    kit="$kit $source/tests/plan/$file.c"
done
files="$files $kit"

# Plans are bit-identical only with these flags; see meson.build.
build() {
    # shellcheck disable=SC2086 # a list of words
    "$1" "$2" -std=gnu17 -D_GNU_SOURCE '-DBERTH_VERSION="check"' -ffp-contract=off -w "-I$source/src" \
        "-I$source/tests/plan" \
        -o "$3" "$work/hashes.c" $files
}

# Also tests the shipped code: links the objects of this build instead of compiling.
made=
if [ -n "${BERTH_BUILD:-}" ] && [ -f "$BERTH_BUILD/src/core/libcore.a" ]; then
    compiled=$files
    files="$kit $BERTH_BUILD/src/core/libcore.a $BERTH_BUILD/src/base/libbase.a"
    build gcc -O2 "$work/built"
    files=$compiled
    "$work/built" "$seeds" >"$work/built.txt"
    made=built
fi
while read -r compiler level; do
    if ! command -v "$compiler" >/dev/null; then
        echo "skipped: $compiler is not installed"
        continue
    fi
    name=$compiler$level
    build "$compiler" "$level" "$work/$name"
    "$work/$name" "$seeds" >"$work/$name.txt"
    made="$made $name"
done <<END
gcc -O0
clang -O2
END

first=
for name in $made; do
    if [ -z "$first" ]; then
        first=$name
        continue
    fi
    if ! cmp -s "$work/$first.txt" "$work/$name.txt"; then
        echo "$first and $name differ, at these seeds first:"
        diff "$work/$first.txt" "$work/$name.txt" | head -n 6
        exit 1
    fi
done
echo "the same $(wc -l <"$work/$first.txt") plans from$made"
