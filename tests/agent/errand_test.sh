#!/bin/bash
# errand_test.sh - tests sessions to running pods (logs, exec, signal, cp): berth, berthd and a minimal agent
# (errand_agent.py).
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
agent_program=${BERTH_SOURCE:?is the tree}/tests/agent/errand_agent.py
needs_built "$berth" "$berthd"
needs python3 tar curl script
kit_begin
export NO_COLOR=1

out_is() {
    if [ "$(cat "$work/out")" != "$1" ]; then
        echo "expected '$1', got:"
        cat "$work/out" "$work/err"
        return 1
    fi
}

# tells WORDS: expects the words on standard error, from berth or from the remote command.
tells() {
    grep -qF -- "$1" "$work/err" && return
    echo "standard error should say '$1':"
    cat "$work/out" "$work/err"
    return 1
}

# until_true COMMAND...: waits without a bound until the command succeeds; the test as a whole has a time limit.
until_true() {
    until "$@"; do sleep 0.05; done
}

# ---- a daemon, a node, an app of two pods, an agent ----

start "$work/data" --init --token-file "$work/token" || exit 1
export BERTH_SERVER=$url BERTH_TOKEN_FILE=$work/token
admin=$(cat "$work/token")

api() { # api TOKEN METHOD PATH [CURL...]: prints the status; the body is in $work/body
    local token=$1 method=$2 path=$3
    shift 3
    curl -s -o "$work/body" -w '%{http_code}' -X "$method" -H "Authorization: Bearer $token" "$@" "$url$path"
}

set -e
printf 'kind: node\nid: n1\nallocatable: {cpu: 16, memory: 64Gi}\n' | "$berth" apply -f - >/dev/null
"$berth" user add alice >/dev/null
"$berth" user add bob >/dev/null
"$berth" token add --user alice --to "$work/alice" >/dev/null
"$berth" token add --user bob --to "$work/bob" >/dev/null
api "$admin" POST /v1/tokens -H 'Content-Type: application/json' -d '{"node": "n1"}' >/dev/null
node_token=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["token"])' "$work/body")
printf 'kind: node\nid: n2\nallocatable: {cpu: 0.001, memory: 1Mi}\n' | "$berth" apply -f - >/dev/null
api "$admin" POST /v1/tokens -H 'Content-Type: application/json' -d '{"node": "n2"}' >/dev/null
other_token=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["token"])' "$work/body")
export BERTH_TOKEN_FILE=$work/alice
alice=$(cat "$work/alice")
"$berth" app add web --replicas 2 --cpu 1 --endpoint http -- sleep inf >/dev/null
set +e

placed() { "$berth" get instances -o json | python3 -c 'import json,sys
items = json.load(sys.stdin)
items = items if isinstance(items, list) else items.get("items", [items])
print(" ".join(str(i["id"]) for i in sorted(items, key=lambda i: i["ordinal"])))'; }
two_placed() { [ "$(placed | wc -w)" = 2 ]; }
until_true two_placed
read -r first second <<<"$(placed)"

check 'an instance that has not started has no log' ends 6 "$berth" logs instance/"$first"
mkdir "$work/node"
printf 'one\ntwo\nthree\n' >"$work/node/log.$first"
printf 'uno\ndos' >"$work/node/log.$second"

start_agent() {
    mkfifo "$work/agent.$1"
    (cd "$work/node" && exec python3 "$agent_program" "$url" n1 "$node_token" "$first" running "$second" running \
        >"$work/agent.$1" 2>"$work/agent.err") &
    agent=$!
    children=("$agent")
    exec 7<"$work/agent.$1"
    local word
    read -r word <&7
    if [ "$word" != ready ]; then
        cat "$work/agent.err"
        exit 1
    fi
    cat <&7 >"$work/agent.out" &
}
start_agent 1

# ---- logs ----

logs_whole() { ends 0 "$berth" logs web/0 && out_is $'one\ntwo\nthree'; }
check 'the log of one pod comes byte for byte' logs_whole
logs_bytes() { "$berth" logs web/1 </dev/null | cmp - "$work/node/log.$second"; }
check 'also without a line break at the end' logs_bytes
logs_tail() { ends 0 "$berth" logs --tail 1 instance/"$first" && out_is three; }
check 'tail' logs_tail
logs_all() {
    ends 0 "$berth" logs web && grep -qx '\[web.alice/0\] two' "$work/out" && grep -qx '\[web.alice/1\] dos' "$work/out"
}
check 'lines of several pods have the names of their pods' logs_all
logs_follow() {
    "$berth" logs -f web >"$work/follow" &
    local reader=$!
    until_true grep -qs three "$work/follow"
    until_true grep -qs uno "$work/follow" # both logs have been read to their end
    echo 'THE END' >>"$work/node/log.$first"
    printf '\nTHE END\n' >>"$work/node/log.$second"
    wait $reader && grep -qx '\[web.alice/0\] THE END' "$work/follow" &&
        grep -qx '\[web.alice/1\] THE END' "$work/follow"
}
check 'follow prints new lines of all pods' logs_follow
logs_large() {
    seq 1 400000 >"$work/node/log.$first"
    "$berth" logs web/0 </dev/null | cmp - "$work/node/log.$first"
}
check 'a log of megabytes arrives whole' logs_large
logs_gone() {
    mv "$work/node/log.$first" "$work/kept" && ends 6 "$berth" logs web/0 && tells 'No such file' &&
        mv "$work/kept" "$work/node/log.$first"
}
check "the agent's error is shown" logs_gone
previous() { ends 6 "$berth" logs --previous web/0 && tells 'no earlier instance'; }
check 'no previous log' previous
check 'logs of an unknown app' ends 4 "$berth" logs nothing
check 'logs of an unknown pod' ends 6 "$berth" logs web/7

# ---- exec ----

# shellcheck disable=SC2016 # not to be expanded is what is tested
exec_plain() { ends 0 "$berth" exec web -- printf '%s|' a 'b c' '$HOME' && out_is 'a|b c|$HOME|'; }
check 'arguments go byte for byte, without a shell' exec_plain
exec_code() { ends 42 "$berth" exec web/1 -- sh -c 'echo out; echo err >&2; exit 42' && out_is out && tells err; }
check "exit code, output and errors" exec_code
exec_killed() { ends 137 "$berth" exec web -- sh -c 'kill -9 $$'; }
check 'a killed command' exec_killed
exec_none() { ends 1 "$berth" exec web -- /no/such/program && tells 'No such file'; }
check 'an unknown command' exec_none
exec_env() { ends 0 "$berth" exec -e A=b=c web -- printenv A && out_is b=c; }
check 'environment' exec_env
exec_eof() { ends 0 "$berth" exec web -- cat && out_is ''; }
check 'without -i standard input is empty' exec_eof
exec_pipe() {
    head -c 3000000 /dev/urandom >"$work/random"
    # shellcheck disable=SC2094 # nobody writes it
    "$berth" exec -i web -- cat <"$work/random" | cmp - "$work/random"
}
check 'megabytes pass in both directions' exec_pipe
exec_tty() {
    # The terminal of `script` has 24 rows and 80 columns at first; Ctrl-C must reach the remote command, which traps
    # it.
    local to
    printf 'stty rows 33 cols 99; exec "%s" exec -it web -- sh -c '"'"'stty size; tty >/dev/null && echo tty; trap "echo caught; exit 7" INT; echo go; while :; do sleep 0.1; done'"'"'\n' "$berth" >"$work/tty.sh"
    mkfifo "$work/keys"
    script -qec "bash $work/tty.sh" /dev/null <"$work/keys" >"$work/tty.out" &
    local session=$! code=0
    exec {to}>"$work/keys"
    until_true grep -qs '^go' "$work/tty.out"
    printf '\003' >&"$to"
    wait $session || code=$?
    exec {to}>&-
    cat "$work/tty.out"
    [ $code = 7 ] && grep -q '^33 99' "$work/tty.out" && grep -q '^tty' "$work/tty.out" &&
        grep -q caught "$work/tty.out"
}
check 'a terminal has its size and passes Ctrl-C on' exec_tty
check '-t without a terminal is refused' ends 2 "$berth" exec -it web -- true
hang_up() {
    "$berth" exec web -- sh -c 'echo $$ >pid; echo begun; exec sleep 1000' >"$work/begun" &
    local reader=$!
    until_true grep -qs begun "$work/begun"
    kill -9 $reader
    wait $reader 2>/dev/null
    until ! kill -0 "$(cat "$work/node/pid")" 2>/dev/null; do sleep 0.05; done
}
check 'a closed connection ends the command' hang_up

# ---- signal ----

signal_sent() { ends 0 "$berth" signal web/1 usr1 && grep -qx "$second USR1" "$work/node/signals"; }
check 'a signal' signal_sent
check 'one of two pods must be named' ends 2 "$berth" signal web HUP
check 'an unknown signal' ends 1 "$berth" signal web/0 BOO

# ---- cp ----

make_tree() {
    mkdir -p "$work/tree/sub/empty" "$work/node/box"
    head -c 300000 /dev/urandom >"$work/tree/sub/data"
    echo hello >"$work/tree/a file"
    ln -s sub/data "$work/tree/link"
}
make_tree
cp_in() { ends 0 "$berth" cp "$work/tree" web/0:box/ && diff -r "$work/tree" "$work/node/box/tree"; }
check 'a folder into a pod' cp_in
cp_in_name() {
    ends 0 "$berth" cp "$work/tree/a file" web/0:box/other && diff "$work/tree/a file" "$work/node/box/other"
}
check 'a file under another name' cp_in_name
cp_out() { ends 0 "$berth" cp web/0:box/tree "$work/back" && diff -r "$work/tree" "$work/back"; }
check 'a folder out of a pod' cp_out
cp_out_file() {
    mkdir "$work/into" && ends 0 "$berth" cp web/0:box/other "$work/into" && diff "$work/into/other" "$work/tree/a file"
}
check 'a file into a folder here' cp_out_file
cp_none() { ends 1 "$berth" cp web/0:box/nothing "$work/x" && [ ! -e "$work/x" ]; }
check 'an unknown file' cp_none
cp_evil() {
    # A tar in the pod that sends other files than the requested ones.
    mkdir -p "$work/evil" "$work/target"
    ln -s "$work/evil" "$work/node/out"
    mkdir "$work/node/trap"
    echo evil >"$work/node/trap/x"
    local real
    real=$(command -v tar)
    mkdir "$work/bin"
    printf '#!/bin/sh\nexec %s -cf - -P --transform "s,^,../evil/," -C trap x\n' "$real" >"$work/bin/tar"
    chmod +x "$work/bin/tar"
    kill "$agent"
    wait "$agent" 2>/dev/null
    until ! "$berth" exec web -- true 2>"$work/away"; do sleep 0.05; done
    grep -q 'is not connected' "$work/away" || return 1
    PATH=$work/bin:$PATH start_agent 2
    ends 1 "$berth" cp web/0:trap/x "$work/target/x" && tells 'which lies outside the target' &&
        [ -z "$(ls -A "$work/evil")" ] && [ ! -e "$work/target/x" ]
}
check 'a pod that sends other files writes nothing here' cp_evil

# ---- url and top ----

url_one() {
    ends 0 "$berth" url web && grep -qx 'http://n1:[0-9]*' "$work/out" && ends 0 "$berth" url -o json web/http &&
        grep -q '"ready": true' "$work/out"
}
check 'url of an app' url_one
url_all() { ends 0 "$berth" url --all web && [ "$(grep -c 'yes .*http://n1:' "$work/out")" = 2 ]; }
check 'urls of all pods' url_all
url_none() { ends 4 "$berth" url web/ftp && tells 'it has http' && ends 4 "$berth" url nothing; }
check 'url of an unknown endpoint and app' url_none
top_pods() {
    ends 0 "$berth" top pods && grep -q '^web.alice/0 *n1 *250m *25% *1 ' "$work/out" && grep -q '64 MiB' "$work/out"
}
check 'usage of pods' top_pods
top_nodes() {
    BERTH_TOKEN_FILE=$work/token ends 0 "$berth" top nodes --sort name &&
        grep -q '^n1 *2 *13% *2 *16 *8.* GiB *13%' "$work/out" &&
        grep -q '^n2 *- ' "$work/out"
}
check 'usage of nodes' top_nodes
check 'top of an unknown kind' ends 2 "$berth" top apps

# ---- others ----

exec_audit() {
    BERTH_TOKEN_FILE=$work/token ends 0 "$berth" audit --who alice --limit 200 -o json &&
        grep -q '"printenv"' "$work/out" && grep -q '"USR1"' "$work/out" && ! grep -q 'b=c' "$work/out"
}
check 'commands are in the audit log without their environment' exec_audit
others() {
    BERTH_TOKEN_FILE=$work/bob ends 4 "$berth" exec web.alice -- true &&
        BERTH_TOKEN_FILE=$work/bob ends 4 "$berth" logs instance/"$first"
}
check "others' instances are hidden" others
foreign() {
    local call
    [ "$(api "$alice" POST "/v1/instances/$first/exec" -H 'Content-Type: application/json' \
        -d '{"command": ["sleep", "1000"]}')" = 200 ] || return 1
    call=$(python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))["call"])' "$work/body")
    [ "$(api "$other_token" POST "/v1/nodes/n2/calls/$call?stream=out" -d evil)" = 404 ] &&
        [ "$(api "$other_token" POST "/v1/nodes/n1/calls/$call?stream=out" -d evil)" = 404 ] &&
        [ "$(api "$(cat "$work/bob")" GET "/v1/calls/$call")" = 404 ] &&
        [ "$(api "$(cat "$work/bob")" POST "/v1/calls/$call/input" -d x)" = 404 ] &&
        [ "$(api "$admin" DELETE "/v1/calls/$call")" = 404 ] &&
        [ "$(api "$alice" DELETE "/v1/calls/$call")" = 200 ] &&
        [ "$(api "$alice" DELETE "/v1/calls/$call")" = 404 ]
}
check "sessions of another node or user are hidden" foreign
too_many() {
    python3 - "$url" "$alice" "$first" <<'END'
import http.client
import sys
import time
import urllib.parse
url, token, instance = sys.argv[1:]
connection = http.client.HTTPConnection(urllib.parse.urlparse(url).netloc)
counts = {}
begin = time.monotonic()
while sum(counts.values()) < 2000 and time.monotonic() - begin < 20:  # the first sessions end after a minute
    connection.request("POST", f"/v1/instances/{instance}/exec", '{"command": ["sleep", "1000"]}',
                       {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    counts[answer.status] = counts.get(answer.status, 0) + 1
print(counts)
assert counts[200] <= 64 and counts[429] >= 64 and counts[200] + counts[429] == sum(counts.values()), counts
END
}
check 'a flood of commands is bounded' too_many
slow_reader() {
    # A client reads the first line of an endless command and then nothing more, without disconnecting: soon the agent's
    # writes must block, however much the buffers between hold.
    local before=-1 now=0 from line
    BERTH_TOKEN_FILE=$work/token "$berth" exec web.alice -- sh -c 'echo begun; exec yes' >"$work/pipe" &
    local reader=$!
    exec {from}<"$work/pipe"
    read -r -u "$from" line
    until [ "$before" = "$now" ] && [ "$now" -gt 0 ]; do
        before=$now
        sleep 0.5
        now=$(cat "$work/node/brought")
    done
    echo "$now bytes were brought"
    BERTH_TOKEN_FILE=$work/token ends 0 "$berth" exec web.alice -- echo still && out_is still || return 1
    kill $reader
    wait $reader 2>/dev/null
    exec {from}<&-
    [ "$line" = begun ]
}
mkfifo "$work/pipe"
check 'a reader that stops blocks the command, not the daemon' slow_reader

stopping() {
    BERTH_TOKEN_FILE=$work/token "$berth" logs -f web.alice/1 >"$work/stop.out" 2>"$work/stop.err" &
    local reader=$!
    until_true grep -qs uno "$work/stop.out"
    curl -sN -H "Authorization: Bearer $admin" "$url/v1/apps/web.alice/logs?ordinal=1&follow=true" >"$work/stop.plain" &
    local plain=$!
    until_true grep -qs uno "$work/stop.plain"
    kill "$daemon"
    wait "$daemon"
    local code=$?
    daemon=
    wait $plain
    until_true grep -qs 'reconnecting' "$work/stop.err"
    until_true grep -qs 'stopping' "$work/stop.err"
    kill $reader
    wait $reader 2>/dev/null
    cat "$work/stop.out" "$work/stop.err" "$work/stop.plain"
    [ $code = 0 ] && grep -q 'stopping' "$work/stop.plain" && ! grep -q 'stopping' "$work/stop.out"
}
check 'a stopping daemon ends sessions with a message; berth logs -f reconnects' stopping

kit_end
