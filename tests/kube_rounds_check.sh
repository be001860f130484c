#!/bin/bash
# kube_rounds_check.sh - a hundred kills of berth-kube and of the API server while pods come and go. ROUNDS, KILLS_OF_API and SEED may
# be set.
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/kit.sh"
needs python3 openssl
exec python3 "$here/kube/rounds.py" --rounds "${ROUNDS:-100}" --api "${KILLS_OF_API:-20}" --seed "${SEED:-1}"
