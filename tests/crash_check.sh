#!/bin/sh
# crash_check.sh - two hundred crashes of berthd in the middle of writes.
set -eu

ROUNDS=${ROUNDS:-200} exec "$(dirname "$0")/crash_test.sh"
