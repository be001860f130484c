#!/bin/bash
# kube_check.sh - compares berth-kube with kube-scheduler by the same corpus of cases on a real API server. Before that
# it tests the comparison itself: kube-scheduler passes a part of the corpus, and a scheduler that takes the first node
# fails it.
# waits: processes, kubernetes
# bed: kubernetes, in part
# In part: one case of twelve.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
compare() {
    python3 "$here/kube/compare.py" "$@"
}

# A case is mostly waiting, so two halves of the corpus run at a time, each with its own API server.
compare_all() {
    local first
    if [ "$(in_part part whole)" = part ]; then
        compare --who berth --share 5/12
        return
    fi
    compare --who berth --share 0/2 &
    first=$!
    compare --who berth --share 1/2 >"$work/second" || { cat "$work/second"; wait $first; return 1; }
    wait $first
}

"$here/../tools/kube" --cached >/dev/null || exec "$here/../tools/kube" --cached
kit_begin
check "kube-scheduler gives the expected results" compare --who peer "port: t" "taint: e" "spread: two" "preempt: n" \
    "volume: limit"
check "a scheduler that takes the first node fails" compare --who first --fails "taint: another value" \
    "node affinity: greater, none" \
    "port: taken" "port: three" "resources: a milli more" "spread: two constraints" "pods: away from x, by host" \
    "volume: waits, none fits"
if [ -x "$BERTH_BUILD/src/kube/berth-kube" ]; then
    check "berth-kube gives the results of kube-scheduler" compare_all
fi
kit_end
