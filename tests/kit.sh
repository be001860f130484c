# kit.sh - helpers of the shell tests: required programs, a scratch folder, test cases, daemons. To be sourced.
#
# A test names the programs that it needs, calls kit_begin, then check for each case, and ends with kit_end. $work is
# its scratch folder. At its end the processes in $children are killed and $daemon is stopped.
# shellcheck shell=bash
# shellcheck disable=SC2034 # the tests use what is set here

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH=$here${PYTHONPATH:+:$PYTHONPATH} # for agent_kit.py and ports.py
berth=${BERTH_BUILD:?is the build folder}/src/cli/berth
berthd=$BERTH_BUILD/src/berthd/berthd
work=
daemon=
children=()
cases=0
failed=0

# needs_built PROGRAM...: skips the test if one of these programs of the build is missing.
needs_built() {
    local program
    for program; do
        [ -x "$program" ] && continue
        echo "skip: $program is not built"
        exit 77
    done
}

# needs NAME...: skips the test if one of these system programs is missing.
needs() {
    local program
    for program; do
        command -v "$program" >/dev/null && continue
        echo "skip: there is no $program"
        exit 77
    done
}

# Skips the test if bridges and veth links cannot be made in a network namespace.
needs_networks() {
    needs ip nsenter unshare
    unshare --net sh -c 'ip link add br0 type bridge && ip link add a0 type veth peer name a1' 2>/dev/null && return
    echo "skip: no network namespace with a bridge and a pair of links can be made here"
    exit 77
}

# kit_ended STATUS: prints a line if the status is that of a crash. tools/test fails a test that prints such a line and
# does not retry it.
kit_ended() {
    case $1 in
    132 | 134 | 135 | 136 | 139) echo "# crash: a process ended with status $1" ;;
    esac
}

# shellcheck disable=SC2317 # called by the trap
kit_clean_up() {
    local child status
    for child in "${children[@]}" $daemon; do
        kill "$child" 2>/dev/null || true
        status=0
        wait "$child" 2>/dev/null || status=$?
        kit_ended "$status"
    done
    if [ "$failed" != 0 ]; then # failures that daemons logged
        grep -rhsaE -m 3 'Assertion .* failed|Sanitizer: |runtime error: ' --include='*.log' "$work" |
            sed 's/^/# crash: /' || true
    fi
    rm -rf "$work"
}

# Makes the scratch folder and drops the caller's own settings of berth.
kit_begin() {
    work=$(mktemp -d)
    trap kit_clean_up EXIT
    unset NO_COLOR BERTH_SERVER BERTH_TOKEN BERTH_TOKEN_FILE BERTH_CONTEXT XDG_CONFIG_HOME VISUAL EDITOR
    export BERTH_CONFIG=$work/config/config.yaml TMPDIR=$work
}

# Prints the number of cases; the exit status tells whether all of them passed.
kit_end() {
    echo "1..$cases"
    [ "$failed" = 0 ]
}

# check NAME COMMAND...: runs one test case and prints its output if it fails.
check() {
    local name=$1
    shift
    cases=$((cases + 1))
    if "$@" >"$work/log" 2>&1; then
        echo "ok $cases - $name"
    else
        echo "not ok $cases - $name"
        sed 's/^/# /' "$work/log"
        failed=$((failed + 1))
    fi
}

# ends CODE COMMAND...: expects that the command ends with this exit code. Its output is in $work/out and $work/err.
ends() {
    local want=$1 got=0
    shift
    "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ "$got" = "$want" ] && return
    echo "exit code $got, not $want: $*"
    cat "$work/out" "$work/err"
    return 1
}

# says WORDS: expects the words on standard error, and a line there that begins with `berth: `.
says() {
    grep -qF -- "$1" "$work/err" && grep -q '^berth: ' "$work/err" && return
    echo "standard error should say '$1':"
    cat "$work/err"
    return 1
}

# prints PATTERN, hides PATTERN: expect that standard output matches, or does not match.
prints() {
    grep -qE -- "$1" "$work/out" && return
    echo "standard output should match '$1':"
    cat "$work/out"
    return 1
}

hides() {
    grep -qE -- "$1" "$work/out" || return 0
    echo "standard output should not match '$1':"
    cat "$work/out"
    return 1
}

# Seconds until an expected event counts as missing. tools/test sets it by the load of the machine; no speed is tested.
patience=${BERTH_PATIENCE:-60}

# in_part SMALL WHOLE: prints the amount of work of a heavy test: WHOLE in `make beds`, SMALL in `make check`
# (tools/test).
in_part() {
    if [ "${BERTH_BED:-whole}" = whole ]; then echo "$2"; else echo "$1"; fi
}

# until_ok COMMAND...: repeats the command until it succeeds, for at most $patience seconds.
until_ok() {
    local end=$((SECONDS + patience))
    while [ "$SECONDS" -le "$end" ]; do
        "$@" >/dev/null 2>&1 && return
        sleep 0.1
    done
    echo "never: $*"
    "$@"
    return 1
}

# free_port: prints a free port of loopback that a daemon can bind again after a restart. Needs python3.
free_port() {
    python3 "$here/ports.py"
}

# start DIR [OPTION...]: starts a daemon and stops the one that runs. $daemon is its process, $url its address,
# $work/daemon.log its log.
start() {
    local data=$1
    shift
    if [ -n "$daemon" ]; then stop; fi
    : >"$work/ready"
    "$berthd" --data "$data" --listen "${listen:-127.0.0.1:0}" "$@" >"$work/ready" 2>"$work/daemon.log" &
    daemon=$!
    if ! until_ok grep -q '^ready ' "$work/ready"; then
        cat "$work/daemon.log"
        return 1
    fi
    url=$(sed -n 's/^ready //p' "$work/ready")
}

stop() {
    kill "$daemon" && wait "$daemon"
    daemon=
}
