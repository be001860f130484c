#!/bin/bash
# join_test.sh - tests how a machine joins, with the real berthd and berth: invitation, join over TLS, and what its
# certificate may access.
#
# curl and python3 act as the agent. openssl makes its keys and certificate requests, as a second implementation of the
# format.
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berth" "$berthd" "$BERTH_BUILD/src/agent/berth-agent"
needs curl openssl python3
kit_begin
export no_proxy='*'

# serve [OPTION...]: starts a daemon; $agents is its address for agents.
serve() {
    start "$work/data" "$@" || return 1
    agents=$(sed -n 's/.*agents.ready.*[" =]\(https:[^" ]*\).*/\1/p' "$work/daemon.log")
    export BERTH_SERVER=$url BERTH_TOKEN_FILE=$work/data/admin.token
}

# ask STATUS CURL-OPTION...: sends a request to the agents' address and expects this status. The answer is in
# $work/body.
ask() {
    local want=$1 got
    shift
    got=$(curl -sS --max-time 20 -o "$work/body" -w '%{http_code}' "$@")
    [ "$got" = "$want" ] && return
    echo "status $got, not $want: $*"
    head -c 300 "$work/body"
    return 1
}

# member NAME: prints this member of the last answer.
member() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]], end="")' "$work/body" "$1"
}

# word OPTION LINE: prints the word after an option in a line.
word() {
    local rest=${2#*"$1 "}
    echo "${rest%% *}"
}

# request NAME [CURVE]: makes a key and a certificate request with openssl, NAME.key and NAME.csr.
request() {
    openssl req -new -newkey ec -pkeyopt "ec_paramgen_curve:${2:-prime256v1}" -nodes -subj /CN=user:admin \
        -keyout "$work/$1.key" -out "$work/$1.csr" 2>"$work/openssl.log"
}

# body TOKEN CSR-FILE: prints a body of POST /v1/join.
body() {
    python3 -c '
import json, sys
print(json.dumps({"token": sys.argv[1], "request": open(sys.argv[2]).read(), "probed": {
    "allocatable": {"cpu": 4, "memory": "8Gi"}, "arch": "amd64", "labels": {"os": "linux"},
    "runtimes": ["process"]}}))' \
        "$1" "$2" >"$work/join.json"
}

# join NAME: runs `berth node add NAME` and joins as its line says; NAME.pem is the certificate.
join() {
    local line
    line=$("$berth" node add "$1") || return 1
    request "$1" && body "$(word echo "$line")" "$work/$1.csr" || return 1
    ask 200 -k --pinnedpubkey "$(word --pin "$line")" -d @"$work/join.json" "$(word --control "$line")/v1/join" ||
        return 1
    member certificate >"$work/$1.pem" && member ca >"$work/ca.pem"
}

# as NAME STATUS METHOD PATH [BODY]: sends a request with that certificate; the server must have one of the cluster's
# CA.
as() {
    local name=$1 status=$2 method=$3 path=$4
    shift 4
    ask "$status" --cacert "$work/ca.pem" --cert "$work/$name.pem" --key "$work/$name.key" -X "$method" ${1:+-d "$1"} \
        "$agents$path"
}

report='{"epoch": 1, "seq": 1, "instances": []}'

# ---- cases -----------------------------------------------------------------------------------------------------------

a_line_to_paste() {
    local line
    line=$("$berth" node add n1 --label disk=ssd --zone cellar --expires 10m 2>"$work/err") || return 1
    echo "$line"
    [ "$(wc -l <<<"$line")" = 1 ] && [ ! -s "$work/err" ] || return 1
    grep -qE '^echo berth_join_[A-Za-z0-9_-]+ \| berth-agent join --control https://127\.0\.0\.1:[0-9]+ --pin sha256//[A-Za-z0-9+/=]{44} --token-file -$' \
        <<<"$line" || return 1
    "$berth" get nodes --state joining -o name | grep -qx node/n1
}

it_joins() {
    join n1 && as n1 200 POST /v1/nodes/n1/report "$report" || return 1
    openssl verify -CAfile "$work/ca.pem" -purpose sslclient "$work/n1.pem" || return 1
    openssl x509 -in "$work/n1.pem" -noout -subject | grep -q 'CN *= *node:n1$' || return 1
    "$berth" get nodes --state ready -o name | grep -qx node/n1 || return 1
    "$berth" get node n1 -o json | grep -q '"disk": *"ssd"'
}

tokens_work_once() {
    local line token
    line=$("$berth" node add n2) && token=$(word echo "$line") && request n2 || return 1
    body "${token%???}xxx" "$work/n2.csr"
    ask 401 -k -d @"$work/join.json" "$agents/v1/join" || return 1
    body "$token" "$work/n2.csr"
    ask 200 -k -d @"$work/join.json" "$agents/v1/join" && member certificate >"$work/n2.pem" || return 1
    ask 401 -k -d @"$work/join.json" "$agents/v1/join" && grep -q 'invalid, used or expired' "$work/body"
}

requests_are_looked_at() {
    local line token
    line=$("$berth" node add n3) && token=$(word echo "$line") && request n3 && request big secp384r1 || return 1
    body "$token" "$work/big.csr"
    ask 400 -k -d @"$work/join.json" "$agents/v1/join" && grep -q 'P-256' "$work/body" || return 1
    body "$token" "$work/n3.key"
    ask 400 -k -d @"$work/join.json" "$agents/v1/join" || return 1
    body "$token" "$work/n3.csr"
    ask 200 -k -d @"$work/join.json" "$agents/v1/join"
}

only_what_is_its_own() {
    as n1 200 GET /v1/nodes/n1/config || return 1
    as n1 404 GET /v1/nodes/n2/config || return 1
    as n1 404 POST /v1/nodes/n2/report "$report" || return 1
    as n1 403 GET /v1/nodes || return 1
    as n1 403 PUT /v1/nodes/n1/capabilities '{"allocatable": {"cpu": 64}}' || return 1
    as n1 200 GET /v1/whoami && grep -q '"n1"' "$work/body"
}

no_certificate_or_a_foreign_one() {
    ask 401 --cacert "$work/ca.pem" "$agents/v1/nodes/n1/config" || return 1
    # Certificates with the right name: one of another CA, and a self-signed one.
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=node:n1 -days 2 \
        -keyout "$work/self.key" -out "$work/self.pem" 2>"$work/openssl.log" || return 1
    as self 401 GET /v1/nodes/n1/config || return 1
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj '/CN=Berth cluster authority' \
        -days 2 \
        -keyout "$work/other.key" -out "$work/other.pem" 2>"$work/openssl.log" || return 1
    request foreign && openssl x509 -req -in "$work/n1.csr" -CA "$work/other.pem" -CAkey "$work/other.key" \
        -set_serial 0x"$(openssl x509 -in "$work/n1.pem" -noout -serial | cut -d= -f2)" -out "$work/foreign.pem" \
        2>"$work/openssl.log" || return 1
    cp "$work/n1.key" "$work/foreign.key"
    as foreign 401 GET /v1/nodes/n1/config || return 1
    # The main address does not accept client certificates.
    ask 401 --cert "$work/n1.pem" --key "$work/n1.key" "$url/v1/nodes/n1/config" || return 1
    # A client with another CA refuses the server.
    ! curl -sS -o /dev/null --cacert "$work/other.pem" "$agents/healthz" 2>/dev/null &&
        ! curl -sS -o /dev/null -k --pinnedpubkey sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= \
        "$agents/healthz" 2>/dev/null
}

renewed() {
    local json
    request again || return 1
    json=$(python3 -c 'import json, sys; print(json.dumps({"request": open(sys.argv[1]).read()}))' "$work/again.csr")
    as n1 404 POST /v1/nodes/n2/certificate "$json" || return 1
    as n1 200 POST /v1/nodes/n1/certificate "$json" && member certificate >"$work/again.pem" || return 1
    as again 200 GET /v1/nodes/n1/config || return 1
    "$berth" system settings certificate_life_s=60 || return 1
    as n1 200 POST /v1/nodes/n1/certificate "$json" && member certificate >"$work/again.pem" || return 1
    openssl x509 -in "$work/again.pem" -noout -checkend 30 && ! openssl x509 -in "$work/again.pem" -noout -checkend 90
}

# An expired certificate: the cluster's CA itself signs it with dates in the past.
expired() {
    local serial
    serial=$(openssl x509 -in "$work/n1.pem" -noout -serial | cut -d= -f2)
    request old && cp "$work/old.key" "$work/late.key" || return 1
    printf '[v3]\nextendedKeyUsage = clientAuth\n' >"$work/ext"
    python3 - "$work" "$serial" <<'PY' || return 1
import datetime, subprocess, sys
work, serial = sys.argv[1:]
def sign(name, days_from, days_to):
    now = datetime.datetime.now(datetime.timezone.utc)
    at = lambda days: (now + datetime.timedelta(days=days)).strftime("%Y%m%d%H%M%SZ")
    open(f"{work}/serial", "w").write(serial + "\n")
    open(f"{work}/index", "w").close()
    open(f"{work}/ca.cnf", "w").write(f"""[ca]
default_ca = d
[d]
new_certs_dir = {work}
database = {work}/index
serial = {work}/serial
default_md = sha256
policy = p
[p]
commonName = supplied
""")
    subprocess.run(["openssl", "ca", "-batch", "-config", f"{work}/ca.cnf", "-in", f"{work}/old.csr",
                    "-subj", "/CN=node:n1",
                    "-cert", f"{work}/data/ca-cert.pem", "-keyfile", f"{work}/data/ca-key.pem", "-notext", "-extfile",
                    f"{work}/ext", "-extensions", "v3", "-startdate", at(days_from), "-enddate", at(days_to), "-out",
                    f"{work}/{name}.pem"], check=True)
sign("old", -9, 2)
sign("late", -9, -2)
PY
    as old 200 GET /v1/nodes/n1/config || return 1
    as late 401 GET /v1/nodes/n1/config || return 1
    as late 401 POST /v1/nodes/n1/report "$report" || return 1
    # It is still valid for a renewal.
    as late 200 POST /v1/nodes/n1/certificate \
        "$(python3 -c 'import json, sys; print(json.dumps({"request": open(sys.argv[1]).read()}))' "$work/again.csr")"
}

released_and_added_again() {
    cp "$work/n2.pem" "$work/was.pem" && cp "$work/n2.key" "$work/was.key" || return 1
    as was 200 GET /v1/nodes/n2/config || return 1
    "$berth" node rm n2 || return 1
    as was 401 GET /v1/nodes/n2/config || return 1
    join n2 || return 1
    as was 401 GET /v1/nodes/n2/config || return 1
    as n2 200 GET /v1/nodes/n2/config
}

a_restart_changes_nothing_for_agents() {
    local pin before=$agents
    pin=$(openssl x509 -in "$work/data/ca-cert.pem" -noout -fingerprint)
    serve --agents "${before#https://}" --name "head.example,127.0.0.1" || return 1
    [ "$(openssl x509 -in "$work/data/ca-cert.pem" -noout -fingerprint)" = "$pin" ] || return 1
    [ "$(stat -c %a "$work/data/ca-key.pem" "$work/data/agents-key.pem" | sort -u)" = 600 ] || return 1
    [ "$agents" = "https://head.example:${before##*:}" ] || return 1
    agents=$before
    as n1 200 GET /v1/nodes/n1/config || return 1
    ask 200 --cacert "$work/ca.pem" --resolve "head.example:${before##*:}:127.0.0.1" \
        "https://head.example:${before##*:}/healthz"
}

drained_with_progress() {
    "$berth" node add n9 --cpu 1 --memory 1Gi && "$berth" node drain n9 --wait >"$work/out" 2>"$work/err" || return 1
    grep -qx 'node/n9 empty' "$work/out" || return 1
    "$berth" node rm n9 --wait && ! "$berth" get node n9
}

grown_and_accepted() {
    as n1 200 POST /v1/nodes/n1/report '{"epoch": 1, "seq": 9, "instances": [],
        "node": {"probed": {"allocatable": {"cpu": 6, "memory": "4Gi"}}}}' || return 1
    "$berth" get node n1 -o json >"$work/node"
    python3 - "$work/node" <<'PY' || return 1
import json, sys
node = json.load(open(sys.argv[1]))
assert node["allocatable"] == {"cpu": 4, "memory": "4Gi"}, node["allocatable"]
assert node["status"]["grown"] == {"cpu": 6}, node["status"]
PY
    "$berth" node accept n1 && "$berth" get node n1 -o json | grep -q '"cpu": *6'
}

is_placed() { "$berth" get instances --node n1 -o name | grep -q '^instance/'; }

# An instance of a job keeps the node until it ends.
a_drain_says_what_is_left() {
    local id waiter rc=0
    as n1 200 POST /v1/nodes/n1/report '{"epoch": 2, "seq": 1, "instances": []}' || return 1
    "$berth" submit --name sum --cpu 1 -- /bin/true || return 1
    until_ok is_placed || return 1
    id=$("$berth" get instances --node n1 -o name | sed -n 's,^instance/,,p')
    as n1 200 POST /v1/nodes/n1/report \
        '{"epoch": 2, "seq": 2, "instances": [{"id": '"$id"', "state": "running", "ready": true}]}' || return 1
    ! "$berth" node rm n1 2>"$work/err" && grep -q "instances $id of" "$work/err" || return 1
    "$berth" node drain n1 --wait >"$work/out" 2>"$work/err" &
    waiter=$!
    until_ok grep -q "instance $id of .* ends by itself" "$work/err"
    cat "$work/err"
    grep -q 'n1: 1 left' "$work/err" && kill -0 "$waiter" || rc=1
    as n1 200 POST /v1/nodes/n1/report \
        '{"epoch": 2, "seq": 3, "instances": [{"id": '"$id"', "state": "ended", "exit": 0}]}' || rc=1
    if [ "$rc" != 0 ]; then kill "$waiter"; fi
    wait "$waiter" && grep -qx 'node/n1 empty' "$work/out" && [ "$rc" = 0 ]
}

# Runs the line with the real agent against a daemon that never answers. While the agent waits, no process may have the
# token in its arguments. Tests each way to pass the token, and the old option, which the agent overwrites.
no_process_shows_the_token() {
    local line
    line=$("$berth" node add n6) || return 1
    AGENT=$BERTH_BUILD/src/agent/berth-agent python3 - "$work" 3<<<"$line" <<'PY'
import os, pathlib, signal, socket, subprocess, sys
work = pathlib.Path(sys.argv[1])
words = os.fdopen(3).read().split()
agent, token = os.environ["AGENT"], words[1]
assert words[0] == "echo" and token.startswith("berth_join_") and words[2:5] == ["|", "berth-agent", "join"], words
listener = socket.create_server(("127.0.0.1", 0))
listener.settimeout(60)
options = ["--control", f"https://127.0.0.1:{listener.getsockname()[1]}", *words[7:9], "--state", str(work / "n6")]
(work / "n6.token").write_text(token + "\n")

def shown():
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                found.append(path.read_bytes())
        except OSError:
            pass
    return found

pasted = f"echo {token} | exec {agent} join {' '.join(options)} --token-file -\n"
ways = [
    ("pasted", ["/bin/sh"], pasted, {}),
    ("file", [agent, "join", *options, "--token-file", str(work / "n6.token")], "", {}),
    ("environment", [agent, "join", *options], "", {"BERTH_JOIN_TOKEN": token}),
    ("argument", [agent, "join", *options, "--token", token], "", {}),
]
for name, argv, text, env in ways:
    with open(work / "n6.err", "w+") as err:
        program = subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=err, env={**os.environ, **env}, text=True,
                                   start_new_session=True)
        program.stdin.write(text)
        program.stdin.close()
        connection, _ = listener.accept()
        connection.settimeout(60)
        assert connection.recv(1), "it does not speak TLS"
        found = shown()
        os.killpg(program.pid, signal.SIGKILL)
        program.wait()
        connection.close()
        err.seek(0)
        warned = "--token shows the invitation to every user" in err.read()
    assert not found, (name, found)
    assert warned == (name == "argument"), name
done = subprocess.run([agent, "join", *options, "--token-file", "-"], input="", capture_output=True, text=True,
                      check=False)
assert done.returncode == 1 and "the invitation is empty" in done.stderr, done
help = subprocess.run([agent, "--help"], capture_output=True, text=True, check=False).stdout
assert "--token-file" in help and "--token TOKEN" not in help, help
PY
}

none() {
    serve --agents none && [ -z "$agents" ] || return 1
    ! "$berth" node add n5 2>"$work/err" && grep -q -- '--agents' "$work/err"
}

serve --init --agents "127.0.0.1:$(free_port)" || exit 1
check "node add prints one line to paste" a_line_to_paste
check "a machine joins with it and is ready" it_joins
check "a token works once" tokens_work_once
check "certificate requests are checked" requests_are_looked_at
check "a certificate gives access to its own node only" only_what_is_its_own
check "missing and foreign certificates are refused" no_certificate_or_a_foreign_one
check "a certificate is renewed" renewed
check "an expired certificate is refused" expired
check "a node is removed and added again" released_and_added_again
check "smaller hardware counts, larger must be accepted" grown_and_accepted
check "drain and remove wait for instances" drained_with_progress
check "a drain shows the remaining instances" a_drain_says_what_is_left
check "a restart changes nothing for agents" a_restart_changes_nothing_for_agents
check "no process shows the token" no_process_shows_the_token
check "berthd runs without an agents' address" none

kit_end
