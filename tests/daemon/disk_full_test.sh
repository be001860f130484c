#!/bin/bash
# disk_full_test.sh - tests berthd on a full disk: it acknowledges only stored changes, reads still work, and writes
# work again without a restart once there is room. The disk is a small tmpfs in a mount namespace of its own.
# waits: processes
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berthd"
needs python3
if [ "${1:-}" != --inside ]; then
    namespace=(unshare --mount)
    [ "$(id -u)" = 0 ] || namespace=(unshare --mount --map-root-user)
    if ! "${namespace[@]}" sh -c 'mount -t tmpfs -o size=1m tmpfs /mnt' 2>/dev/null; then
        echo "skip: no file system can be mounted here"
        exit 77
    fi
    exec "${namespace[@]}" "$0" --inside
fi

work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null; rm -rf "$work"' EXIT
mkdir "$work/disk"
mount -t tmpfs -o size=24m tmpfs "$work/disk"
python3 - "$berthd" "$work" <<'PY'
import errno
import http.client
import json
import os
import signal
import subprocess
import sys
import time

berthd, work = sys.argv[1:]
disk = os.path.join(work, "disk")
filler = os.path.join(disk, "filler")
acknowledged = {}  # name to id
refused = set()
cases = []


def case(name, good, text=""):
    cases.append(name)
    print(f"{'ok' if good else 'not ok'} {len(cases)} - {name}", flush=True)
    if not good:
        print(f"# {text}")
        sys.exit(1)


class Daemon:
    def __init__(self):
        self.log = open(os.path.join(work, "log"), "ab")
        self.process = subprocess.Popen(
            [berthd, "--data", os.path.join(disk, "data"), "--listen", "127.0.0.1:0", "--init", "--token-file",
             os.path.join(work, "token")], stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.line = self.process.stdout.readline()
        if self.line:
            self.port = int(self.line.rsplit(":", 1)[1])
            with open(os.path.join(work, "token"), encoding="utf-8") as f:
                self.token = f.read().strip()

    def ask(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or "null"), answer.headers

    def submit(self, name):
        """The status; notes what was promised."""
        status, body, headers = self.ask("POST", "/v1/jobs", {"name": name, "command": ["x" * 2000], "hold": True})
        if status == 201:
            acknowledged[name] = body["id"]
        elif status == 503:
            refused.add(name)
            if body["error"]["code"] != "unavailable" or "Retry-After" not in headers:
                case("a refusal says that it is for now", False, f"{body} {headers}")
        else:
            case("submissions are acknowledged or refused for now", False, f"{status}: {body}")
        return status

    def jobs(self):
        found, after = {}, "0"
        while after:
            status, body, _ = self.ask("GET", f"/v1/jobs?limit=10000&after={after}")
            if status != 200:
                return None
            found |= {item["name"]: item["id"] for item in body["items"]}
            after = body.get("continue")
        return found

    def end(self, signo):
        self.process.send_signal(signo)
        code = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        return code


def fill():
    """Until not one more byte fits."""
    with open(filler, "ab", buffering=0) as f:
        for size in (1 << 20, 4096, 1):
            try:
                while f.write(b"\0" * size):
                    pass
            except OSError as e:
                if e.errno != errno.ENOSPC:
                    raise


def submit_until(daemon, prefix, status, most):
    """Until one is answered with this status; whether it was."""
    for i in range(most):
        if daemon.submit(f"{prefix}-{i}") == status:
            return True
    return False


def alarms(daemon):
    for _ in range(100):
        found = [item["alarm"] for item in daemon.ask("GET", "/v1/alarms")[1]["items"]]
        if found:
            return found
        time.sleep(0.1)
    return []


def ready(daemon):
    """Without a change by anybody: the daemon notices by itself."""
    for _ in range(600):
        if daemon.ask("GET", "/readyz")[0] == 200:
            return True
        time.sleep(0.1)
    return False


print("1..20")
d = Daemon()
case("it starts", d.line.startswith("ready "), d.line)
case("there is room at first", all(d.submit(f"first-{i}") == 201 for i in range(20)))
fill()
case("a full disk refuses", submit_until(d, "full", 503, 20000))
still = [d.submit(f"still-{i}") for i in range(50)]
case("and goes on refusing", 503 in still, str(still))
case("reads go on, and show what was acknowledged", d.jobs() == acknowledged)
case("it says that it is alive", d.ask("GET", "/healthz")[0] == 200)
status, body, _ = d.ask("GET", "/readyz")
case("it says that it is not ready, and why", status == 503 and "disk of the store is full" in body["error"]["message"],
     f"{status} {body}")
case("there is an alarm", alarms(d) == ["store"], str(alarms(d)))
gone = list(acknowledged)[:30]
deleted = [d.ask("DELETE", f"/v1/jobs/{acknowledged[name]}")[0] for name in gone]
case("deletion works on a full disk", set(deleted) == {204}, str(deleted))
for name in gone:
    del acknowledged[name]
case("nothing else is taken", d.submit("between") == 503 and d.ask("GET", "/readyz")[0] == 503)
case("what was deleted is gone", d.jobs() == acknowledged)

os.remove(filler)
case("it is ready again when there is room", ready(d))
deadline = time.monotonic() + 60
n = 0
while d.submit(f"again-{n}") != 201 and time.monotonic() < deadline:
    n += 1
    time.sleep(0.1)
case("with room again it takes more, without a restart",
     f"again-{n}" in acknowledged and all(d.submit(f"more-{i}") == 201 for i in range(20)) and d.process.poll() is None)
case("what was acknowledged is there, what was refused is not", d.jobs() == acknowledged)

fill()
submit_until(d, "crash", 503, 20000)
d.end(signal.SIGKILL)
d = Daemon()
case("after a crash on a full disk it starts and has what was acknowledged", d.line and d.jobs() == acknowledged,
     d.line)
d.end(signal.SIGKILL)
fill()  # all but the reserve
d = Daemon()
case("with its reserve it starts on a disk without any room", d.line and d.jobs() == acknowledged, d.line)
gone = list(acknowledged)[0]
case("there, too, deletion works",
     d.ask("DELETE", f"/v1/jobs/{acknowledged.pop(gone)}")[0] == 204 and d.jobs() == acknowledged)
status, body, _ = d.ask("GET", "/readyz")
case("it is not ready, and says why", d.submit("there") == 503 and status == 503, str(body))
d.end(signal.SIGKILL)
os.remove(filler)
d = Daemon()
case("with room again it starts with all that was acknowledged", d.line and d.jobs() == acknowledged, d.line)
case("and takes more", d.submit("last") == 201 and d.end(signal.SIGTERM) == 0)
print(f"# {len(acknowledged)} acknowledged, {len(refused - acknowledged.keys())} refused")
PY
