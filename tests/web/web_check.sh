#!/bin/bash
# web_check.sh - tests the dashboard in a real browser: every page, form and role, and the accessibility of each page in
# both themes; then, not in part, a cluster of 5,000 nodes with 100,000 jobs. WEB_SHOTS=DIR stores screenshots there,
# from which docs/img is made.
# waits: processes, browsers
# bed: browsers, in part
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
# shellcheck source=tests/web/web_kit.sh
. "$(dirname "$0")/web_kit.sh"
needs_built "$berthd"
needs curl
needs_web
kit_begin
start_web
node "$web/test/pages.mjs" "$url" "$(cat "$work/token")" ${WEB_SHOTS:+"$WEB_SHOTS"} || exit 1
if [ -n "${WEB_CASE:-}" ] || [ "$(in_part part whole)" = part ]; then exit 0; fi
stop
rm -rf "$work/data" "$work/token"
start_web
node "$web/test/large.mjs" "$url" "$(cat "$work/token")"
