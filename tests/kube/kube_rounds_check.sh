#!/bin/bash
# kube_rounds_check.sh - a hundred kills of berth-kube and of the API server while pods come and go; in part: twelve.
# ROUNDS, KILLS_OF_API and SEED may be set.
# bed: kubernetes, in part
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3 openssl
exec python3 "$here/kube/rounds.py" --rounds "${ROUNDS:-$(in_part 12 100)}" --api "${KILLS_OF_API:-$(in_part 2 20)}" --seed "${SEED:-1}"
