#!/bin/bash
# dashboard_test.sh - how berthd serves its dashboard, or the page in its place: headers, copies that are still good, what is not its.
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/kit.sh"
needs_built "$berthd"
needs curl
kit_begin

start "$work/data" --init --token-file "$work/token" --agents 127.0.0.1:0 || exit 1

# answers STATUS [CURL...]: of the page; headers in $work/head, the body in $work/out.
answers() {
    local want=$1 got
    shift
    : >"$work/out" # an answer without a body leaves it alone
    got=$(curl -s -D "$work/head" -o "$work/out" -w '%{http_code}' "$@")
    [ "$got" = "$want" ] && return
    echo "status $got, not $want: $*"
    return 1
}

# has NAME PATTERN: a header of the last answer.
has() {
    grep -i "^$1:" "$work/head" | grep -qE -- "$2" && return
    echo "the header $1 should match '$2':"
    cat "$work/head"
    return 1
}

page_is_there() {
    answers 200 "$url/" || return 1
    has Content-Type '^[^:]*: text/html' && has Cache-Control 'no-cache' && has X-Content-Type-Options nosniff || return 1
    has Content-Security-Policy "default-src 'none'" && has Content-Security-Policy "frame-ancestors 'none'" || return 1
    prints '<title>Berth</title>' && hides '<script>|style=|onclick='
}

compressed_is_the_same() {
    answers 200 "$url/" && cp "$work/out" "$work/plain" || return 1
    answers 200 -H 'Accept-Encoding: deflate, GZIP' "$url/" && has Content-Encoding gzip && has Vary Accept-Encoding || return 1
    gzip -dc "$work/out" | cmp - "$work/plain" || return 1
    answers 200 -H 'Accept-Encoding: gzip;q=0' "$url/" && cmp "$work/out" "$work/plain"
}

good_copy_is_kept() {
    local etag
    answers 200 "$url/" || return 1
    etag=$(sed -n 's/^ETag: \(.*\)\r$/\1/Ip' "$work/head")
    answers 304 -H "If-None-Match: \"other\", $etag" "$url/" && [ ! -s "$work/out" ] || return 1
    answers 200 -H 'If-None-Match: "other"' "$url/"
}

head_has_no_body() {
    answers 200 -I "$url/" && has Content-Length '[1-9]'
}

rest_is_the_api() {
    answers 401 -X POST "$url/" || return 1
    answers 401 "$url/assets/none.js" || return 1
    answers 401 "$url/index.html" || return 1
    answers 401 "$url/v1/nodes"
}

agents_have_none() {
    local agents
    agents=$(sed -n 's/.*event=agents.ready url=\([^ ]*\).*/\1/p' "$work/daemon.log")
    [ -n "$agents" ] && answers 401 -k "$agents/"
}

# A machine on which there is no npm.
bare() {
    local program
    mkdir -p "$work/bin"
    for program in bash basename cat cut dirname find flock gzip mkdir mv rm sed sha256sum sort tail wc; do
        ln -sf "$(command -v "$program")" "$work/bin/$program"
    done
    PATH=$work/bin "$@"
}

without_npm_a_page_says_so() {
    local tool=${BERTH_SOURCE:?is the tree}/tools/dashboard
    ends 0 bare "$tool" auto "$work/auto.c" && prints 'built without its dashboard: there was no npm' || return 1
    grep -q 'dashboard_files_len = 1;' "$work/auto.c" && grep -q 'install Node.js' "$work/auto.c.files/index.html" || return 1
    ends 1 bare "$tool" enabled "$work/enabled.c" && grep -q 'cannot be built: there was no npm' "$work/err" || return 1
    [ ! -e "$work/enabled.c" ] || return 1
    ends 0 bare "$tool" disabled "$work/disabled.c" && [ ! -s "$work/out" ]
}

check 'the page is there without a token' page_is_there
check 'compressed it is the same' compressed_is_the_same
check 'a copy that is still good is kept' good_copy_is_kept
check 'HEAD has no body' head_has_no_body
check 'all else is the API' rest_is_the_api
check 'the address for agents has none' agents_have_none
check 'without npm berthd is built with a page that says so' without_npm_a_page_says_so
kit_end
