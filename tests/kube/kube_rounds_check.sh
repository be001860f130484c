#!/bin/bash
# kube_rounds_check.sh - kills berth-kube and the API server a hundred times while pods come and go; in part: twelve
# times. ROUNDS, KILLS_OF_API and SEED may be set.
# bed: kubernetes, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
exec python3 "$here/kube/rounds.py" --rounds "${ROUNDS:-$(in_part 12 100)}" --api "${KILLS_OF_API:-$(in_part 2 20)}" \
    --seed "${SEED:-1}"
