# web_kit.sh - helpers of the dashboard's tests: a berthd with a dashboard, Node.js, a browser. To be sourced after
# kit.sh.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # the tests use what is set here, and kit.sh sets the rest

# Runs in its own network namespace if possible: other tests make and remove links on this machine, and a browser drops
# all its connections when it sees that. Nothing outside can be reached from there either.
if [ -z "${WEB_ALONE:-}" ] && unshare --net ip link set lo up 2>/dev/null; then
    # shellcheck disable=SC2016 # for the other shell
    WEB_ALONE=1 exec unshare --net sh -c 'ip link set lo up && exec "$0" "$@"' "$0" "$@"
fi

web=${BERTH_SOURCE:?is the tree}/web

needs_web() {
    needs node
    if [ ! -e "$web/node_modules/playwright-core" ]; then
        echo "skip: $web/node_modules is not there; a build with npm fetches it"
        exit 77
    fi
    if ! (cd "$web/test" && node -e 'import("./browser.mjs").then((b) => process.exit(b.program ? 0 : 1))'); then
        echo "skip: there is no chromium"
        exit 77
    fi
}

# Starts berthd; skips the test if berthd has no dashboard.
start_web() {
    start "$work/data" --agents none --lease 36000 --init --token-file "$work/token" || exit 1
    if ! curl -s "$url/" | grep -q /assets/; then
        echo "skip: this berthd was built without its dashboard"
        exit 77
    fi
}
