#!/bin/bash
# billing_test.sh - tests the real programs: usage records, bills and budgets by the example in docs/billing.md, and
# notifications.
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
bill=$BERTH_BUILD/src/bill/berth-bill
needs_built "$berth" "$berthd" "$bill"
needs python3 curl
kit_begin
PATH=$(dirname "$berth"):$(dirname "$bill"):$PATH

serve() {
    start "$work/data" --agents none --lease 3600 "$@" || return 1
    export BERTH_SERVER=$url
}

crash() {
    kill -9 "$daemon"
    wait "$daemon" 2>/dev/null
    daemon=
}

call() { # METHOD PATH [BODY]
    curl -sS -f -X "$1" "$BERTH_SERVER$2" -H "Authorization: Bearer $(cat "$work/admin.token")" \
        ${3:+-H "Content-Type: application/json" -d "$3"}
}

# This script acts as the agent of the only node.
seq=0
report() { # INSTANCES
    seq=$((seq + 1))
    call POST /v1/nodes/n1/report "{\"epoch\": 1, \"seq\": $seq, \"instances\": [$1]}" >/dev/null
}

# run_job OWNER JOB STATE: runs a job for a second and then reports this state.
run_job() {
    local id instance
    id=$(call POST /v1/jobs "{\"owner\": \"$1\", \"name\": \"train\", \"restart_policy\": \"never\", $2}" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])') || return 1
    until_ok has_instance "$id" || return 1
    instance=$(instance_of "$id")
    report "{\"id\": $instance, \"state\": \"running\"}" || return 1
    sleep 1.1
    report "{\"id\": $instance, $3}"
}

instance_of() {
    call GET "/v1/instances?workload=$1" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["items"][0]["id"])'
}

has_instance() { [ "$(instance_of "$1" 2>/dev/null)" -gt 0 ]; }

# ---- the cluster -----------------------------------------------------------------------------------------------------

# The node has so many cores that a second of usage has a cost.
begin() {
    serve --init --token-file "$work/admin.token" || return 1
    export BERTH_TOKEN_FILE=$work/admin.token
    berth group add vision && berth user add ann --group vision --role user || return 1
    call POST /v1/nodes '{"id": "n1", "allocatable": {"cpu": 100000, "memory": "64Ti"}}' >/dev/null
}

used() {
    run_job ann '"requests": {"cpu": 3600, "memory": "3600Gi"}' '"state": "ended", "exit": 0' || return 1
    run_job ann '"requests": {"cpu": 3600}' '"state": "failed", "exit": 1' || return 1
    berth usage >"$work/out" && cat "$work/out" || return 1
    grep -qE '^vision +ann +2 ' "$work/out" || return 1
    berth usage --from 7d | grep -qE '^vision +ann +2 ' || return 1
    berth usage --from 2026-01-01 --to 2026-01-02 | grep -q '^no usage records' || return 1
    berth usage -o json | python3 -c 'import json, sys
total = json.load(sys.stdin)["total"]
assert total["core_hours"] > 2 and total["memory_gib_hours"] > 1 and total["gpu_hours"] == 0, total'
}

mistakes() {
    ends 2 berth usage --month 2026-3 && grep -q 'such as 2026-03' "$work/err" || return 1
    ends 2 berth usage --month 2026-03 --from 2026-01-01T00:00:00Z || return 1
    ends 2 berth usage --from yesteryear && grep -q 'such as 7d' "$work/err" || return 1
    ends 2 berth bill && grep -q -- '--prices' "$work/err" || return 1
    ends 2 berth bill --prices "$work/nothing" || return 1
    ends 2 berth-bill && grep -q -- '--prices' "$work/err" || return 1
    ends 0 berth-bill --help && grep -q -- '--enforce' "$work/out" || return 1
    echo 'currency: EUR' >"$work/bad.yaml"
    ends 1 berth-bill --prices "$work/bad.yaml" --book "$work/b.json" && grep -q 'prices' "$work/err"
}

# ---- docs/billing.md -------------------------------------------------------------------------------------------------

# blocks LANGUAGE: prints the fenced blocks of this language.
blocks() {
    awk -v want="\`\`\`$1" '$0 == want {on = 1; next} /^```/ {on = 0} on' "$BERTH_SOURCE/docs/billing.md"
}

example() {
    mkdir -p "$work/example" && cd "$work/example" || return 1
    blocks yaml >prices.yaml
    blocks sh >example.sh
    bash -eu example.sh >out 2>err </dev/null || { cat out err; return 1; }
    cat out
    grep -qE '^[0-9]{4}-[0-9]{2} +vision +ann +2 ' out || return 1
    grep -q 'limits would be lowered' out && grep -q 'limits are lowered' out || return 1
    grep -q '"currency": "EUR"' out && grep -q '^month,group,user,ended' out || return 1
    grep -qE 'pods: "?0' out
}

bill_of() { berth-bill --token-file biller.token --prices prices.yaml --book book.json --output csv; }

book_counts_once() {
    cd "$work/example" || return 1
    bill_of >one && bill_of >two && cmp one two || return 1
    berth-bill --prices prices.yaml --book book.json --no-fetch --output csv >three && cmp one three || return 1
    berth bill --prices prices.yaml --output csv >four && cmp one four || return 1
    exec 9>book.json.lock # hold the lock like another berth-bill
    flock 9 || return 1
    ends 1 berth-bill --prices prices.yaml --book book.json 9>&- && grep -q 'another berth-bill' "$work/err"
    rc=$?
    exec 9>&-
    return $rc
}

# The daemon crashes just after it acknowledged the end of a job.
crash_counts_once() {
    cd "$work/example" || return 1
    call PATCH /v1/groups/vision '{"quota": {"limits": {"pods": null}}}' >/dev/null || return 1
    run_job ann '"requests": {"cpu": 3600}' '"state": "ended", "exit": 0' || return 1
    crash
    serve || return 1
    bill_of >after || return 1
    grep -qE ',vision,ann,3,' after || { cat after; return 1; }
    berth usage | grep -qE '^vision +ann +3 '
}

biller_may_no_more() {
    cd "$work/example" || return 1
    BERTH_TOKEN_FILE=biller.token ends 5 berth node drain n1 || return 1
    BERTH_TOKEN_FILE=biller.token ends 5 berth system settings
}

# ---- notifications ---------------------------------------------------------------------------------------------------

listen() {
    cat >"$work/listener.py" <<'END'
import http.server, json, socketserver, sys, threading
out = sys.argv[1]
class Hook(http.server.BaseHTTPRequestHandler):
    failures = 1
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if Hook.failures and self.path == "/flaky":
            Hook.failures -= 1
            self.send_response(500)
        else:
            with open(out, "a") as f:
                f.write(json.dumps([self.path, self.headers.get("X-Berth-Signature"), body]) + "\n")
            self.send_response(204)
        self.end_headers()
    def log_message(self, *args):
        pass
class Mail(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 here\r\n")
        data = None
        for line in self.rfile:
            if data is not None:
                if line == b".\r\n":
                    with open(out, "a") as f:
                        f.write(json.dumps(["smtp", None, data]) + "\n")
                    data = None
                    self.wfile.write(b"250 taken\r\n")
                else:
                    data += line.decode()
            elif line.upper().startswith(b"DATA"):
                data = ""
                self.wfile.write(b"354 go on\r\n")
            elif line.upper().startswith(b"QUIT"):
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 fine\r\n")
hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
mail = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail)
threading.Thread(target=mail.serve_forever, daemon=True).start()
print(hook.server_port, mail.server_address[1], flush=True)
hook.serve_forever()
END
    : >"$work/told"
    python3 "$work/listener.py" "$work/told" >"$work/ports" &
    children=($!)
    until_ok test -s "$work/ports"
    read -r hook_port smtp_port <"$work/ports"
}

tells() { berth events -o json | grep -qF -- "$1"; }

told() { grep -qF -- "$1" "$work/told"; }

webhooks() {
    listen || return 1
    berth secret set hook key=hush && berth system settings notify_allow=https://,http://127.0.0.1 \
        notify_secret="hook.$(berth whoami -o json | sed -n 's/.*"user": *"\([^"]*\)".*/\1/p')/key" || return 1
    run_job ann "\"notify\": [{\"to\": \"http://127.0.0.1:$hook_port/x?a=b\", \"on\": [\"started\", \"ended\"]}]" \
        '"state": "ended", "exit": 0' || return 1
    until_ok told '\"event\":\"started\"' && until_ok told '\"event\":\"ended\"' || return 1
    python3 - "$work/told" <<'END'
import hashlib, hmac, json, sys
for line in open(sys.argv[1]):
    path, signature, body = json.loads(line)
    assert path == "/x?a=b", path
    assert signature == "sha256=" + hmac.new(b"hush", body.encode(), hashlib.sha256).hexdigest(), signature
    doc = json.loads(body)
    assert doc["owner"] == "ann" and doc["name"] == "train" and doc["job"], doc
END
}

webhook_again() {
    run_job ann "\"notify\": [\"http://127.0.0.1:$hook_port/flaky\"]" '"state": "failed", "exit": 9' || return 1
    until_ok told '"/flaky"' && told 'exit code 9'
}

mail_by_program() {
    [ "$(id -u)" = 0 ] || { echo 'skip: only root has files of root'; return 0; }
    mkdir -p "$work/bin"
    printf '#!/bin/sh\nprintf "%%s|" "$@" >%s/mail\ncat >>%s/mail\n' "$work" "$work" >"$work/bin/sendmail"
    chmod +x "$work/bin/sendmail"
    ! berth system settings mail_command="$work/bin/sendmail" 2>"$work/err" || return 1
    grep -q '/etc/berth/berthd.conf' "$work/err" || return 1
    echo "mail_command = $work/bin/sendmail" >"$work/berthd.conf"
    stop && serve --config "$work/berthd.conf" && berth system settings mail_from=berth@here.example || return 1
    run_job ann '"notify": ["mailto:ann@there.example"]' '"state": "failed", "exit": 4' || return 1
    until_ok grep -q 'exit code 4' "$work/mail" || return 1
    grep -qF -- '-i|-f|berth@here.example|--|ann@there.example|' "$work/mail" &&
        grep -q '^Subject: Berth: job' "$work/mail"
}

mail_by_smtp() {
    stop && serve && berth system settings smtp_url="smtp://127.0.0.1:$smtp_port" || return 1
    run_job ann '"notify": ["ann@there.example"]' '"state": "failed", "exit": 5' || return 1
    until_ok told 'exit code 5' && told 'To: ann@there.example'
}

# berthd runs only programs for mail, and only those that root's settings name.
mail_by_shell() {
    [ "$(id -u)" = 0 ] || { echo 'skip: only root has files of root'; return 0; }
    stop || return 1
    echo "mail_command = /bin/sh" >"$work/berthd.conf"
    ends 1 "$berthd" --data "$work/data" --listen 127.0.0.1:0 --config "$work/berthd.conf" || return 1
    grep -q 'the absolute path of sendmail' "$work/err" || return 1
    echo "mail_command = $work/bin/sendmail" >"$work/berthd.conf"
    chown 1234 "$work/bin/sendmail"
    ends 1 "$berthd" --data "$work/data" --listen 127.0.0.1:0 --config "$work/berthd.conf" || return 1
    grep -q 'must belong to root' "$work/err"
}

# Host names that resolve to this machine are refused; the messages do not reveal which ports are open.
webhook_inside() {
    local hosts=(localhost 127.1 2130706433 0.0.0.0 '[::1]' '[::ffff:127.0.0.1]' 169.254.169.254 no-such-host.invalid)
    local host list="\"http://127.0.0.1:$hook_port/named\""
    stop && serve && berth system settings notify_allow=http://,http://127.0.0.1 || return 1
    for host in "${hosts[@]}"; do list="$list, \"http://$host:$hook_port/inside\""; done
    run_job ann "\"notify\": [$list]" '"state": "failed", "exit": 7' || return 1
    until_ok told '"/named"' && until_ok undelivered "${#hosts[@]}" && ! told '"/inside"'
}

undelivered() {
    [ "$(grep 'event=notice.undelivered' "$work/daemon.log" | grep -o 'to=[^ ]*' | sort -u | wc -l)" -ge "$1" ]
}

check 'a cluster' begin
check 'usage is summed up' used
check 'mistakes are reported' mistakes
check 'the example of docs/billing.md' example
check 'a book has each record once' book_counts_once
check 'a book has each record once after a crash' crash_counts_once
check 'the biller has no other rights' biller_may_no_more
check 'webhooks are signed' webhooks
check 'a failed webhook is repeated' webhook_again
check 'mail through a program' mail_by_program
check 'mail through SMTP' mail_by_smtp
check 'webhooks to this machine are refused' webhook_inside
check 'mail programs run without a shell' mail_by_shell
kit_end
