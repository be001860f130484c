#!/bin/bash
# cli_daemon_test.sh - tests the real `berth` and `berthd`: every verb that talks to a daemon, and common mistakes.
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berth" "$berthd"
needs python3
kit_begin

# ---- without a server ------------------------------------------------------------------------------------------------

server_down() {
    ends 7 "$berth" --server http://127.0.0.1:1 get jobs && says 'refused' || return 1
    ends 7 "$berth" get jobs --server http://127.0.0.1:1 && grep -q 'berth context ls' "$work/err" || return 1
    ends 2 "$berth" --server nonsense get jobs && says 'no address of a server' || return 1
    BERTH_SERVER=http://127.0.0.1:1 ends 7 "$berth" status
}

mistakes_are_usage() {
    ends 2 "$berth" gte jobs && says "did you mean 'berth get'?" || return 1
    ends 2 "$berth" get && says 'needs KIND' || return 1
    ends 2 "$berth" get jbos && says "did you mean 'jobs'?" || return 1
    ends 2 "$berth" get spaceships && says 'kinds are apps, jobs' || return 1
    ends 2 "$berth" app && prints '^  app add' || return 1
    ends 0 "$berth" app --help && prints '^  app add' || return 1
    ends 0 "$berth" help app && prints '^  app add' || return 1
    ends 2 "$berth" app strat x && says "did you mean 'berth app start'?" || return 1
    ends 2 "$berth" app stop && says 'needs ID' || return 1
    ends 2 "$berth" app scale x many && says 'not a number of replicas' || return 1
    ends 2 "$berth" app add x && says '--image' || return 1
    ends 2 "$berth" app add -- sleep 1 && says 'NAME' || return 1
    ends 2 "$berth" app add x --cpu lots --image y && says "invalid amount 'lots'" || return 1
    ends 2 "$berth" app settings x novalue && says 'KEY=VALUE' || return 1
    ends 2 "$berth" submit && says "after '--'" || return 1
    ends 2 "$berth" apply && says '-f FILE' || return 1
    ends 2 "$berth" delete && says 'KIND ID' || return 1
    ends 2 "$berth" delete app && says 'missing ID of the app' || return 1
    ends 2 "$berth" edit job && says 'missing ID of the job' || return 1
    ends 2 "$berth" get apps x --watch && says '--watch' || return 1
    ends 2 "$berth" token add --user a --node b && says '--user and --node cannot be combined' || return 1
    ends 2 "$berth" restore x && says '--data DIR' || return 1
    ends 2 "$berth" plan --server x y && says 'unknown option --server'
}

contexts() {
    printf 'berth_a_b\n' >"$work/some.token"
    chmod 600 "$work/some.token"
    ends 0 "$berth" context ls && prints 'No contexts' || return 1
    ends 2 "$berth" context add lab && says '--server' || return 1
    ends 0 "$berth" context add lab --server http://127.0.0.1:1 --token-file "$work/some.token" || return 1
    [ "$(stat -c %a "$BERTH_CONFIG")" = 600 ] || return 1
    ends 0 "$berth" context add far --server https://far:3980 --pin sha256//abc --no-use || return 1
    ends 0 "$berth" context ls && prints '^\* +lab +http://127.0.0.1:1' && prints '^ +far' || return 1
    ends 0 "$berth" context show && prints "token_file: $work/some.token" && ends 0 "$berth" context show far ||
        return 1
    prints 'pin: sha256//abc' || return 1
    ends 0 "$berth" context ls -o json && python3 -m json.tool <"$work/out" >/dev/null || return 1
    ends 4 "$berth" context use lba && says "did you mean 'lab'?" || return 1
    ends 0 "$berth" context use far && ends 0 "$berth" context show && prints 'name: far' || return 1
    ends 1 "$berth" --context nowhere get jobs && says "no context 'nowhere'" || return 1
    ends 0 "$berth" context add kept --server http://127.0.0.1:1 --token-file "$work/some.token" --keep-token ||
        return 1
    grep -q 'token: berth_a_b' "$BERTH_CONFIG" && ends 0 "$berth" context show kept || return 1
    ! grep -q berth_a_b "$work/out" || return 1
    ends 0 "$berth" context rm far lab kept && ends 0 "$berth" context ls && prints 'No contexts' || return 1
    chmod 644 "$work/some.token"
    ends 0 "$berth" context add loose --server http://127.0.0.1:1 --token-file "$work/some.token" || return 1
    says 'other users can read' || return 1
    ends 0 "$berth" context add wide --server http://example.org --token-file "$work/some.token" || return 1
    says 'unencrypted' && ends 0 "$berth" context rm loose wide || return 1
    echo 'contexts: {x: {sever: y}}' >"$BERTH_CONFIG"
    ends 1 "$berth" context ls && says 'did you mean "server"?' || return 1
    rm "$BERTH_CONFIG"
}

manuals() {
    local page
    ends 0 "$berth" man "$work/man1" || return 1
    [ -s "$work/man1/berth.1" ] && [ -s "$work/man1/berth-app-add.1" ] || return 1
    if command -v man >/dev/null && command -v groff >/dev/null; then
        for page in "$work"/man1/*.1; do
            man -l --warnings -E UTF-8 -Tutf8 -Z "$page" 2>&1 >/dev/null | grep . && return 1
        done
        man -l -E UTF-8 "$work/man1/berth-get.1" 2>/dev/null | grep -q 'berth get' || return 1
    fi
    ends 1 "$berth" man "$work/none/none" && says 'cannot create the folder'
}

# The server first hangs up, then answers 503, then succeeds: berth must repeat the same request.
tries_again() {
    local port pid rc=0
    cat >"$work/odd.py" <<'PY'
import http.server, json, sys

class Odd(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen = []

    def log_message(self, *args):
        pass

    def answer(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.seen.append([self.headers.get("Idempotency-Key"), body.decode()])
        if len(self.seen) == 1:
            self.close_connection = True
        elif len(self.seen) == 2:
            self.answer(503, b'{"error": {"code": "unavailable", "message": "busy"}}', Retry_After="1")
        else:
            self.answer(201, b'{"id": 7, "revision": 9}')

    def do_GET(self):
        if self.path == "/seen":
            self.answer(200, json.dumps(self.seen).encode())
        elif self.path.startswith("/v1/nodes"):
            self.answer(200, b"{nonsense")
        else:
            self.answer(404, b"<html>not here</html>", "text/html")

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Odd)
print(server.server_address[1], flush=True)
server.serve_forever()
PY
    python3 "$work/odd.py" >"$work/port" &
    pid=$!
    until_ok test -s "$work/port"
    port=$(cat "$work/port")
    {
        ends 0 "$berth" --server "http://127.0.0.1:$port" submit -- true && prints '^job/7 submitted$' &&
            python3 - "$port" <<'PY' &&
import json, sys, urllib.request
seen = json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/seen"))
assert len(seen) == 3 and seen[0][0] and seen[0] == seen[1] == seen[2], seen
PY
            ends 4 "$berth" --server "http://127.0.0.1:$port" get app x &&
                says 'without an error message; is it a berthd?' &&
            ends 1 "$berth" --server "http://127.0.0.1:$port" get nodes && says 'not valid JSON'
    } || rc=1
    kill "$pid"
    wait "$pid"
    return $rc
}

# ---- with a server ---------------------------------------------------------------------------------------------------

wrong_token() {
    printf 'berth_x_y' >"$work/bad.token"
    chmod 600 "$work/bad.token"
    ends 5 "$berth" --server "$url" get jobs && says 'token' && grep -q 'No token is configured' "$work/err" || return 1
    ends 5 "$berth" --server "$url" --token-file "$work/bad.token" get jobs || return 1
    grep -q "bad.token is not valid for" "$work/err" || return 1
    BERTH_TOKEN=berth_x_y ends 5 "$berth" --server "$url" whoami || return 1
    ends 1 "$berth" --server "$url" --token-file "$work/none" get jobs && says 'cannot read the token file' || return 1
    printf 'two words' >"$work/bad.token"
    ends 1 "$berth" --server "$url" --token-file "$work/bad.token" get jobs && says 'contains no token'
}

connects() {
    ends 0 "$berth" --server "$url" --token-file "$work/admin.token" whoami && prints '^user +admin' || return 1
    BERTH_SERVER=$url BERTH_TOKEN=$(cat "$work/admin.token") ends 0 "$berth" whoami || return 1
    ends 0 "$berth" context add main --server "$url" --token-file "$work/admin.token" || return 1
    ends 0 "$berth" whoami && prints '^context +main' && prints '^role +admin' || return 1
    ends 0 "$berth" whoami -o json && python3 -m json.tool <"$work/out" >/dev/null || return 1
    # The context's token goes to the context's server alone.
    ends 5 "$berth" --server "${url/127.0.0.1/localhost}" whoami && grep -q 'No token is configured' "$work/err"
}

nodes() {
    ends 0 "$berth" node add n1 --cpu 4 --memory 8Gi --zone a --label disk=ssd --dry-run || return 1
    prints '^node/n1 added \(dry run\)$' && ends 0 "$berth" get nodes -o name && ! [ -s "$work/out" ] || return 1
    ends 0 "$berth" node add n1 --cpu 4 --memory 8Gi --zone a --label disk=ssd && prints '^node/n1 added$' || return 1
    ends 6 "$berth" node add n1 --cpu 4 && says 'n1' || return 1
    printf 'kind: node\nid: n2\nallocatable: {cpu: 4, memory: 8Gi}\ngpus: 2\n' >"$work/n2.yaml"
    ends 1 "$berth" node add -f "$work/n2.yaml" || return 1
    printf 'kind: node\nid: n2\nallocatable: {cpu: 4, memory: 8Gi}\ngpus: [{count: 2}]\n' >"$work/n2.yaml"
    ends 0 "$berth" node add -f "$work/n2.yaml" --zone b && ends 0 "$berth" node ls || return 1
    prints '^NAME +STATE +CPU +MEMORY +GPUS' && prints '^n1 +ready +4 +8Gi +0 +a ' &&
        prints '^n2 +ready +4 +8Gi +2 +0 +b ' || return 1
    ends 0 "$berth" node cordon n1 && prints '^node/n1 cordoned$' && ends 0 "$berth" get node n1 && prints 'cordoned' ||
        return 1
    ends 0 "$berth" node enable n1 && ends 0 "$berth" node drain n1 && ends 0 "$berth" get nodes --state draining ||
        return 1
    prints '^n1 ' && ! grep -q '^n2' "$work/out" && ends 0 "$berth" node enable n1 || return 1
    ends 0 "$berth" node disable n1 && ends 0 "$berth" node enable n1 || return 1
    ends 0 "$berth" node capabilities n1 && prints 'memory: 8Gi' || return 1
    ends 0 "$berth" node capabilities n1 allocatable.cpu=3500m 'runtimes=["oci"]' || return 1
    ends 0 "$berth" node capabilities n1 -o json && python3 - "$work/out" <<'PY' || return 1
import json, sys
got = json.load(open(sys.argv[1]))
assert got == {"allocatable": {"cpu": "3500m", "memory": "8Gi"}, "runtimes": ["oci"]}, got
PY
    ends 0 "$berth" node capabilities n1 allocatable.cpu=4 runtimes=null || return 1
    ends 0 "$berth" node settings n1 zone=c labels.room=attic && ends 0 "$berth" node settings n1 || return 1
    prints 'room: attic' && prints 'disk: ssd' && prints '^zone: c' || return 1
    ends 1 "$berth" node settings n1 bogus=1 && says 'bogus' || return 1
    ends 4 "$berth" node drain n3 && says 'n3'
}

apps() {
    ends 0 "$berth" app add photos --image photos:1 --cpu 1 --memory 1Gi --endpoint http --env A=b=c || return 1
    prints '^app/photos.admin created$' && ends 6 "$berth" app add photos --image photos:1 || return 1
    ends 0 "$berth" app add clock --replicas 0 -- /bin/clock --utc '' && ends 0 "$berth" get app clock -o json ||
        return 1
    python3 - "$work/out" <<'PY' || return 1
import json, sys
app = json.load(open(sys.argv[1]))
assert app["kind"] == "app" and app["command"] == ["/bin/clock", "--utc", ""], app
PY
    ends 0 "$berth" get apps && prints '^NAME +STATE +READY' && prints '^photos.admin +[a-z]+ +[01]/1' || return 1
    ends 0 "$berth" get apps -o wide && prints 'photos:1' && ends 0 "$berth" app ls -o name || return 1
    prints '^app/clock.admin$' && ends 0 "$berth" get apps --sort state && ends 2 "$berth" get apps --sort x || return 1
    ends 0 "$berth" app stop photos && prints 'stopped' && ends 0 "$berth" get app photos && prints 'stop' || return 1
    ends 0 "$berth" app start photos && ends 0 "$berth" app restart photos && ends 0 "$berth" app scale photos 2 ||
        return 1
    prints '^app/photos.admin scaled to 2$' && ends 0 "$berth" get app photos -o yaml && prints '^replicas: 2' ||
        return 1
    ends 0 "$berth" app settings photos theme=dark n=5 on=true 'text="5"' || return 1
    ends 0 "$berth" app settings photos -o json && python3 - "$work/out" <<'PY' || return 1
import json, sys
got = json.load(open(sys.argv[1]))
assert got == {"theme": "dark", "n": 5, "on": True, "text": "5"}, got
PY
    ends 0 "$berth" app settings photos n=null && ends 0 "$berth" app settings photos && ! grep -q '^n:' "$work/out" ||
        return 1
    ends 0 "$berth" app install photos source=x && ends 0 "$berth" app install photos && prints 'source: x' || return 1
    ends 4 "$berth" app stop photo && grep -q "Did you mean 'photos.admin'?" "$work/err" || return 1
    ends 4 "$berth" get app photos nothing && prints '^photos.admin' || return 1
    ends 0 "$berth" app scale photos 1 --dry-run && prints 'dry run'
}

jobs() {
    ends 0 "$berth" submit --name train --cpu 64 --gpu 1 -- python train.py --epochs 3 || return 1
    prints '^job/[0-9]+ submitted$' || return 1
    job=$(sed -n 's,^job/\([0-9]*\) .*,\1,p' "$work/out")
    ends 0 "$berth" submit --gpus H200:1 --dry-run -- true && grep -q 'warning: no node has a GPU of model H200' "$work/err" || return 1
    ends 0 "$berth" submit --hold --replicas 2 --memory 1Gi -- sleep 10 && ends 0 "$berth" schedule && prints '^Planned' || return 1
    ends 0 "$berth" get jobs --state pending && prints "^ *$job +train +pending" &&
        ! grep -q held "$work/out" || return 1
    ends 4 "$berth" why job train && grep -q "Did you mean 'job $job', which is named 'train'?" "$work/err" || return 1
    ends 2 "$berth" get job a/b && grep -q "invalid ID 'a/b'" "$work/err" || return 1
    ends 0 "$berth" why "$job" && prints '^job .* is pending' && prints 'pods are pending' &&
        prints 'no node has 64 CPUs' || return 1
    ends 0 "$berth" why job "$job" -o json && python3 -m json.tool <"$work/out" >/dev/null || return 1
    ends 0 "$berth" why photos && prints '^app photos.admin' &&
        ends 0 "$berth" why node n1 && prints '^ *Ready; accepts new work' ||
        return 1
    ends 4 "$berth" why nobody && says "no app, vm or node 'nobody'" || return 1
    ends 0 "$berth" job release "$((job + 1))" && prints released || return 1
    until_ok sh -c "'$berth' get job $((job + 1)) | grep -q starting" || return 1
    ends 6 "$berth" job hold "$((job + 1))" && says 'affects only pending jobs' || return 1
    ends 0 "$berth" job hold "$job" && prints "^job/$job held" && ends 0 "$berth" job release "$job" || return 1
    ends 0 "$berth" job hold "$((job + 1))" --stop && prints held || return 1
    ends 0 "$berth" job cancel "$((job + 1))" && prints 'cancelled' || return 1
    ends 0 "$berth" describe job "$job" && prints '^Status' && prints '^Events' && prints 'FailedScheduling' || return 1
    ends 0 "$berth" describe app/photos.admin node/n1 && prints '^Instances' && prints '^kind: node' || return 1
    ends 4 "$berth" describe app/nobody node/n1 && prints '^kind: node' || return 1
    ends 0 "$berth" events && prints 'FailedScheduling' && ends 0 "$berth" events "$job" -o json || return 1
    ends 0 "$berth" status && prints '^  nodes +2 +2 ready' && prints '^  cpu +[0-9]+%' && prints "^job/$job" ||
        return 1
    ends 0 "$berth" status -o json && python3 - "$work/out" <<'PY'
import json, sys
got = json.load(open(sys.argv[1]))
assert got["nodes"] == {"ready": 2}, got
assert got["capacity"]["cpu"]["allocatable"] == 8, got
assert got["capacity"]["gpu"]["allocatable"] == 2, got
assert len(got["pending"]) == 1, got
PY
}

waits() {
    ends 0 "$berth" submit --cpu 64 -- true || return 1
    never=$(sed -n 's,^job/\([0-9]*\) .*,\1,p' "$work/out")
    ends 0 "$berth" job cancel "$never" || return 1 # it was never placed, so no agent has to end it
    ends 1 "$berth" wait "$never" -t 60 && prints "^job/$never cancelled$" || return 1
    # A job that does not exist, or does not end in time, does not keep berth from waiting for the others.
    ends 4 "$berth" wait 99999 "$never" -t 60 && says 99999 && prints "^job/$never cancelled$" || return 1
    ends 3 "$berth" wait "$job" "$never" -t 1 && says 'is still' && prints "^job/$never cancelled$"
}

vms() {
    printf 'kind: vm\nname: windows\nimage: w11\nrequests: {cpu: 1}\n' | "$berth" apply -f - || return 1
    ends 0 "$berth" vm stop windows && ends 0 "$berth" vm start windows && ends 0 "$berth" vm restart windows ||
        return 1
    ends 0 "$berth" vm ls && prints '^windows.admin' && ends 0 "$berth" vm rm windows && prints '^vm/windows deleted$'
}

manifests() {
    mkdir -p "$work/m/deep"
    cat >"$work/m/deep/1.yaml" <<'YAML'
# dependents come first: the order of the file does not matter
kind: app
name: web
image: web:1
replicas: 2
---
kind: user
id: bob
group: team
YAML
    cat >"$work/m/2.json" <<'JSON'
[{"kind": "group", "id": "team"}, {"kind": "resource", "name": "traffic", "type": "cumulative", "period": "30d"}]
JSON
    echo 'not a manifest' >"$work/m/readme.txt"
    ends 1 "$berth" diff -f "$work/m" && prints '^\+group: team$' && prints '^\+kind: cumulative$' || return 1
    ends 0 "$berth" apply -f "$work/m" --dry-run && prints '^user/bob created \(dry run\)$' || return 1
    ends 0 "$berth" apply -f "$work/m" || return 1
    [ "$(tr '\n' ' ' <"$work/out")" = \
        'group/team created user/bob created resource/traffic created app/web.admin created ' ] || {
        cat "$work/out"
        return 1
    }
    ends 0 "$berth" apply -f "$work/m" && [ "$(grep -c unchanged "$work/out")" = 4 ] &&
        ends 0 "$berth" diff -f "$work/m" || return 1
    ! [ -s "$work/out" ] || return 1
    sed -i 's/web:1/web:2/' "$work/m/deep/1.yaml"
    ends 1 "$berth" diff -f "$work/m" && prints '^-image: web:1$' && prints '^\+image: web:2$' || return 1
    ends 0 "$berth" apply -f "$work/m" --atomic && prints '^app/web.admin changed$' || return 1
    ends 0 "$berth" get apps -o yaml && "$berth" apply -f "$work/out" >"$work/again" || return 1
    ! grep -qv unchanged "$work/again" && "$berth" get nodes -o json | "$berth" apply -f - >"$work/again" || return 1
    ! grep -qv unchanged "$work/again" && "$berth" get resources -o yaml | "$berth" apply -f - || return 1
    ends 0 "$berth" delete -f "$work/m" --dry-run && ends 0 "$berth" delete -f "$work/m" || return 1
    [ "$(head -1 "$work/out")" = 'app/web.admin deleted' ] || [ "$(head -1 "$work/out")" = 'app/web deleted' ] ||
        return 1
    ends 4 "$berth" delete -f "$work/m" && ends 0 "$berth" delete -f "$work/m" --missing-ok
}

bad_manifests() {
    printf 'kind: app\nname: x\nimage: [y\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" && says "bad.yaml:4:1: " || return 1
    printf -- '---\nkind: group\nid: g1\n---\nkind: ap\nname: x\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" &&
        says "bad.yaml:5: kind: unknown kind 'ap'; did you mean 'app'?" || return 1
    ends 4 "$berth" get group g1 || return 1
    printf 'kind: group\nid: g1\n---\nkind: app\nname: x\nimage: y\nreplicas: three\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" --atomic && says 'bad.yaml:4: app/x: replicas' || return 1
    grep -q 'Nothing was changed' "$work/err" && ends 4 "$berth" get group g1 || return 1
    ends 1 "$berth" apply -f "$work/bad.yaml" && says 'bad.yaml:4: app/x: replicas' &&
        ends 0 "$berth" delete group g1 || return 1
    ends 2 "$berth" diff -f "$work/bad.yaml" && says 'bad.yaml:4' || return 1
    printf 'kind: app\nimage: y\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" && says 'bad.yaml:1: app: no name' || return 1
    printf 'kind: group\nid: g1\n---\nkind: group\nid: g1\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" && says 'bad.yaml:4: group/g1 is also in' || return 1
    printf 'kind: token\nid: g1\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" && says 'cannot create tokens' || return 1
    printf 'version: 1\nnodes: []\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" && says "cluster file for 'berth plan'" || return 1
    printf '# nothing\n' >"$work/bad.yaml"
    ends 1 "$berth" apply -f "$work/bad.yaml" && says 'contains no manifests' || return 1
    ends 1 "$berth" apply -f "$work/missing.yaml" && says 'missing.yaml'
}

edits() {
    cat >"$work/editor" <<'SH'
#!/bin/sh
# edits the file by the sed script in $EDIT and appends the original to $SEEN
cat "$1" >>"$SEEN"
sed -i -e "$EDIT" "$1"
SH
    chmod +x "$work/editor"
    export SEEN=$work/seen
    : >"$SEEN"
    EDITOR="$work/editor" EDIT='s/photos:1/photos:7/' ends 0 "$berth" edit app photos && prints 'changed' || return 1
    ends 0 "$berth" get app photos -o yaml && prints 'image: photos:7' &&
        grep -q '^# app photos: saved changes' "$SEEN" || return 1
    ! grep -q '^revision' "$SEEN" || return 1
    EDITOR="$work/editor" EDIT='' ends 0 "$berth" edit app photos && prints 'unchanged' || return 1
    EDITOR=false ends 1 "$berth" edit app photos && says "the editor 'false' failed; nothing was changed" || return 1
    EDITOR=$work/no-editor ends 1 "$berth" edit app photos && says "no-editor' not found" || return 1
    # What is refused comes back with the reason; saved as it is, it is given up and kept.
    : >"$SEEN"
    EDITOR="$work/editor" EDIT='s/^replicas: .*/replicas: three/' ends 1 "$berth" edit app photos &&
        says 'replicas' || return 1
    grep -q 'NOT SAVED: .*replicas' "$SEEN" && grep -q 'Your text is in' "$work/err" || return 1
    : >"$SEEN"
    EDITOR="$work/editor" EDIT='s/^image: .*/image: [/' ends 1 "$berth" edit app photos &&
        grep -q 'NOT SAVED: line' "$SEEN" || return 1
    # Somebody else was faster.
    cat >"$work/slow" <<SH
#!/bin/sh
"$berth" app scale photos 5 >/dev/null
sed -i 's/photos:7/photos:8/' "\$1"
SH
    chmod +x "$work/slow"
    EDITOR=$work/slow ends 6 "$berth" edit app photos && says 'revision' && grep -q 'your text is in' "$work/err" ||
        return 1
    EDITOR="$work/editor" EDIT='s/photos:7/photos:8/' ends 0 "$berth" edit app/photos --dry-run && prints 'dry run' ||
        return 1
    ends 0 "$berth" app scale photos 1
}

quotas_and_queues() {
    ends 0 "$berth" group add lab && ends 0 "$berth" user add zoe --group lab || return 1
    ends 0 "$berth" quota set group/lab limits.gpu=8 guarantees.gpu=4 && prints '^group/lab changed$' || return 1
    ends 1 "$berth" quota set user/zoe limits.gpu=9 && says 'zoe can have at most 8 gpu' || return 1
    ends 0 "$berth" quota set user/zoe limits.gpu=2.5 && ends 0 "$berth" quota show user/zoe group/lab || return 1
    ends 0 "$berth" quota set user/zoe cpu=4 memory=16Gi vendor.example/card=2 limits.gpu=2.5 &&
        ends 0 "$berth" quota show user/zoe group/lab || return 1
    prints '^user/zoe +cpu +0 +0 +4 ' && prints '^user/zoe +memory +0 +0 +16Gi' &&
        prints '^user/zoe +vendor.example/card +0 +0 +2 ' || return 1
    ends 2 "$berth" quota set user/zoe cpu && says 'should be RESOURCE=AMOUNT' || return 1
    ends 0 "$berth" quota set user/zoe cpu=null vendor.example/card=null memory=null &&
        ends 0 "$berth" quota show user/zoe group/lab || return 1
    prints '^user/zoe +gpu +0 +0 +2.5 *' || prints '^user/zoe +gpu +0 +0 +2500m' || return 1
    prints '^group/lab +gpu +0 +0 +8 +4' && ends 2 "$berth" quota show app/x && says 'expected user/NAME' || return 1
    ends 0 "$berth" quota show || return 1
    cat >"$work/queues.yaml" <<'YAML'
kind: queue
id: prod
policy: mine
groups: [lab]
max_time: 2h
---
kind: policy
id: mine
formula: age + fair_share
---
kind: window
id: night
start: 2099-01-01T00:00:00Z
duration: 8h
require: {rack: r9}
maintenance: true
---
kind: domain
id: east
require: {side: east}
YAML
    ends 0 "$berth" apply -f "$work/queues.yaml" && prints '^queue/prod created$' && prints '^policy/mine created$' ||
        return 1
    ends 0 "$berth" apply -f "$work/queues.yaml" && prints '^window/night unchanged$' || return 1
    ends 0 "$berth" get queues && prints '^prod ' && ends 0 "$berth" get windows && prints '^night +coming' || return 1
    ends 6 "$berth" delete policy mine && says 'queue prod uses policy' || return 1
    ends 0 "$berth" delete queue/prod policy/mine window/night domain/east user/zoe group/lab
}

users() {
    ends 0 "$berth" group add family --display 'The family' && ends 0 "$berth" user add alice --group family || return 1
    ends 0 "$berth" get users && prints '^alice +family +user' && ends 0 "$berth" get users --group family -o name ||
        return 1
    [ "$(cat "$work/out")" = user/alice ] || return 1
    ends 0 "$berth" token add --user alice --ttl 1h --to "$work/alice.token" && prints '^token/.* created in' ||
        return 1
    [ "$(stat -c %a "$work/alice.token")" = 600 ] && ends 1 "$berth" token add --to "$work/alice.token" &&
        says 'already exists' || return 1
    alice=("$berth" --server "$url" --token-file "$work/alice.token")
    ends 0 "${alice[@]}" whoami && prints '^user +alice' && prints 'expires' || return 1
    ends 0 "${alice[@]}" app add blog --image blog:1 && ends 0 "${alice[@]}" get apps -o name || return 1
    [ "$(cat "$work/out")" = app/blog.alice ] && ends 5 "${alice[@]}" user add eve && says 'may not' || return 1
    ends 4 "${alice[@]}" get app photos.admin && ends 0 "${alice[@]}" status && prints '^  apps +1' || return 1
    ends 0 "$berth" user disable alice && ends 5 "${alice[@]}" whoami && ends 0 "$berth" user enable alice || return 1
    ends 0 "${alice[@]}" whoami || return 1
    ends 0 "$berth" user export alice --to "$work/alice.json" && [ "$(stat -c %a "$work/alice.json")" = 600 ] ||
        return 1
    ends 0 "$berth" user export alice && python3 -m json.tool <"$work/out" >/dev/null || return 1
    ends 6 "$berth" user import "$work/alice.json" && says 'alice already exists' && says '--merge' || return 1
    ends 0 "$berth" user import "$work/alice.json" --merge && prints '^user/alice imported$' || return 1
    ends 0 "$berth" user import "$work/alice.json" --as alice2 --dry-run && ends 4 "$berth" get user alice2 || return 1
    ends 0 "$berth" user import "$work/alice.json" --as alice2 && prints '^user/alice2 imported$' || return 1
    ends 0 "$berth" get app blog.alice2 && ends 1 "$berth" user import "$work/missing.json" || return 1
    ends 0 "$berth" token ls && prints 'alice' || return 1
    token=$("$berth" get tokens -o json | python3 -c 'import json, sys
print(next(t["id"] for t in json.load(sys.stdin)["items"] if t.get("user") == "alice"))')
    ends 0 "$berth" token rm "$token" && ends 5 "${alice[@]}" whoami || return 1
    ends 0 "$berth" token add --note 'one more' && prints '^berth_' && ends 0 "$berth" user rm alice2 --force ||
        return 1
    ends 6 "$berth" group rm family && ends 0 "$berth" audit --who admin --limit 3 && prints 'users' || return 1
    ends 0 "$berth" get roles && prints '^viewer '
}

systems() {
    ends 0 "$berth" system settings && prints '^lease_s: ' && ends 0 "$berth" system settings lease_s=40 --dry-run ||
        return 1
    ends 0 "$berth" system settings lease_s=41 && ends 0 "$berth" system settings -o json || return 1
    python3 -c 'import json, sys; assert json.load(sys.stdin)["lease_s"] == 41' <"$work/out" || return 1
    ends 1 "$berth" system settings lease_s=soon && says 'lease_s' || return 1
    ends 0 "$berth" system services && ends 0 "$berth" system services -o yaml || return 1
    ends 4 "$berth" system configure nothing && ends 4 "$berth" system configure nothing a=1 || return 1
    ends 4 "$berth" system restart nothing && ends 4 "$berth" system enable nothing &&
        ends 4 "$berth" system disable nothing
}

watches() {
    "$berth" get apps --watch >"$work/watched" 2>"$work/watch.err" &
    watcher=$!
    children=("$watcher")
    until_ok grep -q '^photos.admin' "$work/watched" || return 1
    ends 0 "$berth" app add seen --image seen:1 || return 1
    until_ok grep -q '^seen.admin' "$work/watched" || return 1
    ends 0 "$berth" app rm seen && until_ok grep -q '^seen.admin *gone' "$work/watched" || return 1
    # The daemon goes and comes back on its port; what it does then is seen.
    stop && until_ok grep -q 'does not respond' "$work/watch.err" &&
        listen=${url#http://} start "$work/data" || return 1
    ends 0 "$berth" app add after --image seen:1 && until_ok grep -q '^after.admin' "$work/watched" &&
        ends 0 "$berth" app rm after || return 1
    kill "$watcher" && wait "$watcher"
    "$berth" get groups --watch -o json >"$work/watched" 2>"$work/watch.err" &
    watcher=$!
    children=("$watcher")
    # Adds groups until the stream is open and sees one.
    until_ok sh -c "'$berth' group add w\$(date +%N) >/dev/null; grep -q '\"type\":\"put\"' '$work/watched'" || return 1
    head -1 "$work/watched" | python3 -m json.tool >/dev/null || return 1
    kill "$watcher"
    wait "$watcher"
    # Revoking a token ends its watches; without a stream the next request is refused.
    ends 0 "$berth" token add --to "$work/short.token" || return 1
    token=$(sed -n 's,^token/\([^ ]*\) .*,\1,p' "$work/out")
    "$berth" --token-file "$work/short.token" get nodes --watch >"$work/watched" 2>"$work/watch.err" &
    watcher=$!
    children=("$watcher")
    until_ok grep -q '^n1 ' "$work/watched" && sleep 0.3 && ends 0 "$berth" token rm "$token" || return 1
    wait "$watcher"
    [ $? = 5 ] && grep -Eq 'revoked|token' "$work/watch.err" || return 1
    children=()
}

# waiter NAME COMMAND...: runs the command in the background until it has seen its job waiting; its output is in
# $work/NAME and $work/NAME.err.
waiter() {
    local name=$1
    shift
    "$@" >"$work/$name" 2>"$work/$name.err" </dev/null &
    children+=($!)
    until_ok grep -q '^job/[0-9]* pending' "$work/$name.err"
}

# waiter_ends CODE PROCESS
waiter_ends() {
    local got=0
    wait "$2" || got=$?
    [ "$got" = "$1" ] && return
    echo "exit code $got, not $1"
    return 1
}

# The daemon restarts on the same port while commands wait for jobs that have no place.
waits_outlive_the_daemon() {
    local name job
    ends 0 "$berth" submit --cpu 64 -- true || return 1
    job=$(sed -n 's,^job/\([0-9]*\) .*,\1,p' "$work/out")
    waiter waited "$berth" wait "$job" && waiter limited "$berth" wait "$job" -t 3 || return 1
    waiter cancelling "$berth" run --cpu 64 -- true && waiter leaving "$berth" submit --wait --cpu 64 -- true ||
        return 1
    stop || return 1
    for name in waited cancelling leaving; do
        until_ok grep -q 'does not respond; waiting until' "$work/$name.err" || return 1
    done
    waiter_ends 3 "${children[1]}" || return 1
    # Ctrl-C is heard meanwhile; what it asks of the server is done when that is back.
    kill -INT "${children[3]}" && waiter_ends 130 "${children[3]}" &&
        grep -q 'keeps running' "$work/leaving.err" || return 1
    kill -INT "${children[2]}" && until_ok grep -q 'cancelling job/' "$work/cancelling.err" || return 1
    listen=${url#http://} start "$work/data" || return 1
    waiter_ends 130 "${children[2]}" && grep -q '^job/[0-9]* cancelled$' "$work/cancelling.err" || return 1
    ends 0 "$berth" job cancel "$job" && waiter_ends 1 "${children[0]}" &&
        grep -q "^job/$job cancelled$" "$work/waited" || return 1
    [ "$(grep -c 'does not respond' "$work/waited.err")" = 1 ] || return 1
    children=()
}

backups() {
    ends 0 "$berth" backup "$work/all.db" --store-only && prints '^Wrote' && [ "$(stat -c %a "$work/all.db")" = 600 ] ||
        return 1
    ends 1 "$berth" backup "$work/all.db" --store-only && says 'already exists' || return 1
    ends 0 "$berth" backup "$work/data.db" --store-only --data "$work/data" &&
        [ "$(stat -c %a "$work/data.db")" = 600 ] || return 1
    ends 1 "$berth" backup "$work/none.db" --store-only --data "$work/nowhere" && ! [ -e "$work/none.db" ] || return 1
    ends 5 "$berth" --server "$url" --token-file "$work/bad2.token" backup "$work/refused.db" --store-only &&
        ! [ -e "$work/refused.db" ] || return 1
    compgen -G "$work/*.part-*" && return 1
    ends 1 "$berth" restore "$work/n2.yaml" --data "$work/other" || return 1
    ends 0 "$berth" restore "$work/all.db" --data "$work/restored" && prints 'berthd --data' || return 1
    ends 1 "$berth" restore "$work/all.db" --data "$work/restored" || return 1
    ends 0 "$berth" get apps -o name && mv "$work/out" "$work/before"
}

restored_daemon() {
    stop
    start "$work/restored" || return 1
    ends 0 "$berth" --server "$url" --token-file "$work/admin.token" get apps -o name || return 1
    cmp "$work/before" "$work/out" && [ -s "$work/out" ] && stop
}

removals() {
    ends 6 "$berth" node rm n1 n2
    ends 0 "$berth" app rm photos clock && ends 0 "$berth" node rm n1 n2 --force && ends 0 "$berth" get nodes -o name ||
        return 1
    ! [ -s "$work/out" ]
}

https() {
    local pin
    start "$work/tls" --init --tls --token-file "$work/tls.token" || return 1
    pin=$(grep -h "tls.identity" "$work/daemon.log" | grep -oE 'sha256//[A-Za-z0-9+/=]+' | tail -1)
    [ -n "$pin" ] || return 1
    ends 7 "$berth" --server "$url" --token-file "$work/tls.token" whoami && says 'pin' || return 1
    ends 7 "$berth" --server "$url" --token-file "$work/tls.token" --pin \
        sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= whoami || return 1
    ends 0 "$berth" --server "$url" --token-file "$work/tls.token" --pin "$pin" whoami || return 1
    stop
}

printf 'berth_z_z\n' >"$work/bad2.token"
chmod 600 "$work/bad2.token"
check "a server that is down ends with 7" server_down
check "mistakes end with 2" mistakes_are_usage
check "contexts" contexts
check "manual pages" manuals
check "requests are repeated after a broken connection and for a busy server" tries_again
if ! listen=127.0.0.1:$(free_port) start "$work/data" --init --token-file "$work/admin.token"; then
    echo "berthd does not start"
    exit 1
fi
check "a wrong token ends with 5" wrong_token
check "options, environment and context name the server" connects
check "nodes" nodes
check "apps" apps
check "jobs, why, describe, events, status" jobs
check "wait" waits
check "virtual machines" vms
check "manifests are applied" manifests
check "bad manifests are reported with their position" bad_manifests
check "edit" edits
check "users, groups, tokens" users
check "quotas, queues and policies" quotas_and_queues
check "system" systems
check "watch" watches
check "waiting survives a restart of the daemon" waits_outlive_the_daemon
check "backup and restore" backups
check "removal" removals
check "a restored daemon" restored_daemon
check "https and pins" https
kit_end
