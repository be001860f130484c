#!/bin/bash
# ab_test.sh - tests berth-ab: which slot is booted, how often a new one is tried, and the state after a torn write.
# sanitize: no, berth-ab is a script
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs dd cksum sha256sum
kit_begin

state=$work/state
ab() { sh "$here/../packaging/berth-ab" --state "$state" "$@"; }

# after "VERBS" WANTED: makes a new state with slot a good, runs these verbs (separated by commas), and expects this
# from show.
after() {
    local verb got
    head -c 8192 /dev/zero >"$state"
    ab init a
    IFS=, read -ra verbs <<<"$1"
    # shellcheck disable=SC2086 # its words
    for verb in "${verbs[@]}"; do ab $verb >/dev/null; done
    got=$(ab show)
    [ "$got" = "$2" ] || { echo "after '$1': $got, not $2"; return 1; }
}

# booted "VERBS" WANTED: expects that the pick verbs print these slots.
booted() {
    local verb got=
    head -c 8192 /dev/zero >"$state"
    ab init a
    IFS=, read -ra verbs <<<"$1"
    for verb in "${verbs[@]}"; do
        # shellcheck disable=SC2086 # its words
        if [ "$verb" = pick ]; then got=$got$(ab pick); else ab $verb; fi
    done
    [ "$got" = "$2" ] || { echo "booted by '$1': $got, not $2"; return 1; }
}

what_is_known() {
    after "" "good=a" &&
        after "try b" "good=a try=b left=3" &&
        after "try b 2,pick" "good=a try=b left=1" &&
        after "try b 1,pick,pick" "good=a" &&
        after "try b,pick,good b" "good=b" &&
        after "try b,good a" "good=a try=b left=3" &&
        after "try b,pick,good b,try a 1" "good=b try=a left=1" &&
        after "try b 1,pick,good b,pick" "good=b" &&
        after "try b,init b" "good=b"
}

what_is_booted() {
    booted "pick,pick" aa &&
        booted "try b 2,pick,pick,pick,pick" bbaa &&
        booted "try b 2,pick,good b,pick,pick" bbb &&
        booted "try b 1,pick,pick,try b 1,pick,pick" baba &&
        booted "try b,pick,good b,try a 1,pick,pick" bab
}

# refused STATUS WORDS VERB...: expects this status and these words, and an unchanged state.
refused() {
    local status=0 want=$1 words=$2 before said
    shift 2
    before=$(cksum <"$state")
    said=$(ab "$@" 2>&1) || status=$?
    [ "$status" = "$want" ] && [[ $said == *"$words"* ]] && [ "$(cksum <"$state")" = "$before" ] && return
    echo "'$*': $status, $said"
    return 1
}

bad_words_change_nothing() {
    after "try b" "good=a try=b left=3" &&
        refused 2 "no slot" try c &&
        refused 2 "no slot" init "" &&
        refused 2 "no number" try b 0 &&
        refused 2 "no number" try b -1 &&
        refused 2 "no number" try b 1x &&
        refused 1 "is the good one" try a &&
        refused 2 "berth-ab --state" try &&
        refused 2 "berth-ab --state" nonsense &&
        ab good a && ab init a && refused 1 "not the one that is being tried" good b
}

# If one write is torn or one copy is lost, the state is the one before or the one after the write.
a_torn_write_leaves_the_other() {
    local at
    for at in 0 4096; do
        head -c 8192 /dev/zero >"$state"
        ab init a && ab try b 2 && ab pick >/dev/null || return 1
        head -c 20 /dev/urandom | dd of="$state" bs=1 seek=$((at + 11)) conv=notrunc 2>/dev/null
        case $(ab show) in
        "good=a try=b left=1" | "good=a try=b left=2") ;;
        *) return 1 ;;
        esac
        ab pick >/dev/null && ab good b && [ "$(ab show)" = good=b ] || return 1
    done
    head -c 8192 /dev/urandom >"$state"
    refused 1 "no whole state" pick
}

watching() {
    after "try b 2,pick" "good=a try=b left=1" &&
        [ "$(ab watch 1 echo too late)" = "too late" ] &&
        ab good b && [ -z "$(ab watch 1 echo too late)" ]
}

# The usage has every verb of the script.
usage_lists_every_verb() {
    local verb
    sh "$here/../packaging/berth-ab" 2>"$work/usage" && return 1
    for verb in init pick other try good show watch; do
        grep -q "^berth-ab --state FILE $verb" "$work/usage" || { echo "the usage lacks $verb"; return 1; }
    done
}

check "the state is shown" what_is_known
check "the right slot is booted" what_is_booted
check "bad arguments change nothing" bad_words_change_nothing
check "a torn write leaves the other copy" a_torn_write_leaves_the_other
check "a slot that is not good in time is detected" watching
check "the usage lists every verb" usage_lists_every_verb
kit_end
