#!/bin/bash
# web_test.sh - tests the dashboard in a real browser, briefly: sign-in, every page on a phone, live changes, roles.
# tests/web/web_check.sh runs every case. To try one: WEB_CASE='the queue' tests/web/web_check.sh
# waits: processes, browsers
# sanitize: no, its requests are those of the command line, which cli_daemon_test and views_test make
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
node "$web/texts.mjs" || exit 1
node "$web/test/holders.mjs" || exit 1
WEB_BRIEF=1 node "$web/test/pages.mjs" "$url" "$(cat "$work/token")"
