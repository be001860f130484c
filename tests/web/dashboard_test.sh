#!/bin/bash
# dashboard_test.sh - tests how berthd serves its dashboard or the page in its place: headers, caching, other paths.
# Also tests the build without Node.js, and what `make run` prints about it.
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs curl
kit_begin

start "$work/data" --init --token-file "$work/token" --agents 127.0.0.1:0 || exit 1

# answers STATUS [CURL...]: requests a page and expects this status; headers are in $work/head, the body in $work/out.
answers() {
    local want=$1 got
    shift
    : >"$work/out" # curl does not truncate it for an answer without a body
    got=$(curl -s -D "$work/head" -o "$work/out" -w '%{http_code}' "$@")
    [ "$got" = "$want" ] && return
    echo "status $got, not $want: $*"
    return 1
}

# has NAME PATTERN: expects a header of the last answer.
has() {
    grep -i "^$1:" "$work/head" | grep -qE -- "$2" && return
    echo "the header $1 should match '$2':"
    cat "$work/head"
    return 1
}

page_is_there() {
    answers 200 "$url/" || return 1
    has Content-Type '^[^:]*: text/html' && has Cache-Control 'no-cache' && has X-Content-Type-Options nosniff ||
        return 1
    has Content-Security-Policy "default-src 'none'" && has Content-Security-Policy "frame-ancestors 'none'" || return 1
    prints '<title>Berth</title>' && hides '<script>|style=|onclick='
}

compressed_is_the_same() {
    answers 200 "$url/" && cp "$work/out" "$work/plain" || return 1
    answers 200 -H 'Accept-Encoding: deflate, GZIP' "$url/" && has Content-Encoding gzip && has Vary Accept-Encoding ||
        return 1
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

tool=${BERTH_SOURCE:?is the tree}/tools/dashboard

# machine "PROGRAM..." COMMAND...: runs the command as on a machine without Node.js and npm, with these extra programs.
machine() {
    local program more=$1
    shift
    rm -rf "${work:?}/bin"
    mkdir -p "$work/bin"
    for program in bash basename cat cp cut dirname find flock gzip mkdir mv rm sed sha256sum sort tail wc $more; do
        ln -sf "$(command -v "$program")" "$work/bin/$program"
    done
    # the python3 in PATH may be a script that needs more programs
    ln -sf "$(python3 -c 'import sys; print(sys.executable)')" "$work/bin/python3"
    PATH=$work/bin "$@"
}

a_page_says_so() {
    ends 0 machine '' "$tool" auto "$work/auto.c" && prints 'built without its dashboard: there was neither esbuild' ||
        return 1
    grep -q 'dashboard_files_len = 1;' "$work/auto.c" && grep -q 'install esbuild' "$work/auto.c.files/index.html" ||
        return 1
    ends 1 machine '' "$tool" enabled "$work/enabled.c" && grep -q 'cannot be built: there was neither' "$work/err" ||
        return 1
    [ ! -e "$work/enabled.c" ] || return 1
    ends 0 machine '' "$tool" disabled "$work/disabled.c" && [ ! -s "$work/out" ]
}

# As on a bare Debian 12, where `make run` installs esbuild. The packages are there from the build of this berthd.
esbuild_bundles_it() {
    local index=$work/bundle.c.files/index.html name
    ends 0 machine esbuild "$tool" enabled "$work/bundle.c" || return 1
    grep -qE 'dashboard_files_len = [4-9];' "$work/bundle.c" && [ -s "$work/bundle.c.files/favicon.svg" ] || return 1
    while read -r name; do
        [ -s "$work/bundle.c.files/$name" ] || return 1
    done < <(grep -oE 'assets/[^"]+' "$index")
    grep -qE '<script type="module" src="\./assets/main-[A-Z0-9]+\.js"></script>' "$index" &&
        ! grep -q 'src/main.jsx' "$index" || return 1
    [ "$(cat "$work"/bundle.c.files/assets/*.js | gzip -9 | wc -c)" -lt 120000 ]
}

# registry: serves $work/registry at $registry until the test ends.
registry() {
    python3 -u -m http.server 0 --bind 127.0.0.1 --directory "$work/registry" >"$work/registry.log" 2>/dev/null &
    children+=("$!")
    until_ok grep -q port "$work/registry.log" &&
        registry=http://127.0.0.1:$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/registry.log")
}

# project INTEGRITY: makes a project with one dependency in $work/project.
project() {
    rm -rf "$work/project"
    mkdir -p "$work/project/node_modules"
    echo '{"dependencies": {"tiny": "1.2.3"}}' >"$work/project/package.json"
    printf '{"packages": {"node_modules/tiny": {"version": "1.2.3", "integrity": "%s"}}}' "$1" \
        >"$work/project/package-lock.json"
}

packages_have_their_checksums() {
    local packages=${BERTH_SOURCE:?is the tree}/tools/dashboard-packages file=$work/registry/tiny/-/tiny-1.2.3.tgz
    mkdir -p "$work/tiny/package/lib" "${file%/*}"
    echo '{"name": "tiny", "version": "1.2.3"}' >"$work/tiny/package/package.json"
    echo 'export const tiny = 1;' >"$work/tiny/package/lib/tiny.js"
    tar -C "$work/tiny" -czf "$file" package && registry || return 1
    export npm_config_registry=$registry
    project "sha512-$(printf '%064d' 0 | base64 -w 0)"
    ends 1 "$packages" "$work/project" && grep -q 'does not have the checksum' "$work/err" &&
        [ ! -e "$work/project/node_modules/tiny" ] || return 1
    project "sha512-$(openssl dgst -sha512 -binary "$file" | base64 -w 0)"
    ends 0 "$packages" "$work/project" &&
        cmp "$work/project/node_modules/tiny/lib/tiny.js" "$work/tiny/package/lib/tiny.js" || return 1
    rm "$file"
    ends 0 "$packages" "$work/project" || return 1 # the package is installed already
    rm -r "$work/project/node_modules/tiny"
    ends 1 "$packages" "$work/project" && grep -q '404' "$work/err"
}

# Links a berthd with the page of $work/auto.c: like the real one, with another file table before its libraries.
link_without() {
    local command
    command=$(ninja -C "$BERTH_BUILD" -t commands src/berthd/berthd | tail -n 1)
    cc -c "-I$BERTH_SOURCE/src" "$work/auto.c" -o "$work/auto.o" || return 1
    (cd "$BERTH_BUILD" && sh -c "${command/ -o src\/berthd\/berthd / -o $work/build/src/berthd/berthd $work/auto.o }")
}

run_tells_the_truth() {
    local name ports
    mkdir -p "$work/build/src/berthd"
    for name in cli agent shim; do ln -sfn "$BERTH_BUILD/src/$name" "$work/build/src/$name"; done
    link_without || return 1
    ports=$(PYTHONPATH=$BERTH_SOURCE/tests python3 -c 'from ports import free_ports; print(*free_ports(2))') || return 1
    (
        cd "$BERTH_SOURCE" || exit 1
        export BERTH_LISTEN=127.0.0.1:${ports% *} BERTH_AGENTS=127.0.0.1:${ports#* }
        ends 0 tools/run --once "$work/build"
    ) || return 1
    prints 'built without its dashboard: there was neither esbuild' && hides 'open it in a browser'
}

check 'the page is there without a token' page_is_there
check 'the compressed page is the same' compressed_is_the_same
check 'a cached copy is revalidated' good_copy_is_kept
check 'HEAD has no body' head_has_no_body
check 'other paths belong to the API' rest_is_the_api
check "the agents' address has no dashboard" agents_have_none
check 'without Node.js and esbuild a page has the reason' a_page_says_so
if command -v esbuild >/dev/null && [ -e "$BERTH_SOURCE/web/node_modules/preact" ]; then
    check 'without Node.js esbuild bundles it' esbuild_bundles_it
else
    echo '# skip: there is no esbuild, or the packages of the dashboard are not there'
fi
check 'packages must have the right checksum' packages_have_their_checksums
check 'make run tells whether there is a dashboard' run_tells_the_truth
kit_end
