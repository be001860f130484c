#!/bin/bash
# folder_test.sh - tests that a daemon whose folder was damaged or changed refuses to start and tells what to do.
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berth" "$berthd"
kit_begin
data=$work/data

# refused WORDS [OPTION...]: expects that the daemon does not start and prints these words.
refused() {
    local words=$1
    shift
    ends 1 timeout 60 "$berthd" --data "$data" --listen 127.0.0.1:0 "$@" || return 1
    grep -q "^berthd: .*$words" "$work/err" && return
    echo "it should say '$words':"
    cat "$work/err"
    return 1
}

serve() {
    start "$data" "$@" && export BERTH_SERVER=$url BERTH_TOKEN_FILE=$data/admin.token
}

# ---- cases -----------------------------------------------------------------------------------------------------------

another_key_without_secrets() {
    serve --init && stop && cp "$data/secret.key" "$work/first.key" || return 1
    rm "$data/secret.key"
    serve && stop && ! cmp -s "$data/secret.key" "$work/first.key"
}

another_key() {
    serve && "$berth" secret set pass word=hush && stop && cp "$data/secret.key" "$work/right.key" || return 1
    cp "$work/first.key" "$data/secret.key"
    refused 'secret.key is not the key .* 1 secrets .*--new-secret-key' && cmp "$data/secret.key" "$work/first.key" ||
        return 1
    rm "$data/secret.key"
    refused 'secret.key is gone' && ! [ -e "$data/secret.key" ] || return 1
    cp "$work/right.key" "$data/secret.key"
    serve && stop
}

a_new_key_by_choice() {
    rm "$data/secret.key"
    serve --new-secret-key && "$berth" secret set other word=hush && stop && serve && stop
}

bad_marks() {
    echo 'torn' >"$data/acked"
    serve && stop || return 1 # the second copy is intact
    echo 'torn' >"$data/acked"
    echo 'torn' >"$data/acked.2"
    refused 'acked .*checksums\|checksums .*acked' || return 1
    rm "$data/acked" "$data/acked.2"
    serve && stop
}

check "another secret.key is taken while there are no secrets" another_key_without_secrets
check "another secret.key, or none, is refused where there are secrets" another_key
check "a new secret.key can be chosen" a_new_key_by_choice
check "damaged marks of acknowledged revisions are refused" bad_marks
kit_end
