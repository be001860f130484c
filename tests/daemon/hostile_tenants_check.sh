#!/bin/bash
# hostile_tenants_check.sh - a plain user attacks the daemon in ten ways, singly and combined; another user's jobs start
# in time.
#
# bed: tenants, in part
# alone: compares times of one user's jobs under attack with those of quiet moments
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
exec python3 "$here/daemon/hostile_tenants_check.py" "$@"
