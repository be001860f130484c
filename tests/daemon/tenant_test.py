"""Cases of tenant_test.sh: a plain user requests far too much of one berthd; tests the refusals and the effect on other
users.

Nodes are simulated: the daemon places on them, but nothing runs. Nothing here measures time. Prints TAP.
"""
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

BERTHD = sys.argv[1]
PATIENCE = int(os.environ.get("BERTH_PATIENCE", "60"))
# The address sanitizer keeps 256 MB of freed memory, and shadow memory for all of it.
MEMORY_MB_MAX = 1000 if "ASAN_OPTIONS" in os.environ else 500
HUGE = 3000000
CASES = []


def case(function):
    CASES.append(function)
    return function


class Daemon:
    """A berthd in a folder of its own, with the users admin, mallory and ann."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="berth-tenant-"))
        self.log = open(self.root / "log", "w+", encoding="utf-8")  # pylint: disable=consider-using-with
        words = [BERTHD, "--data", self.root / "data", "--listen", "127.0.0.1:0", "--init"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log, text=True)
        ready = self.process.stdout.readline()
        assert ready.startswith("ready http://"), ready
        self.port = int(ready.rsplit(":", 1)[1])
        self.tokens = {"admin": (self.root / "data/admin.token").read_text(encoding="ascii").strip()}
        for user in "mallory", "ann":
            self.ask("POST", "/v1/users", {"id": user, "role": "user"}, want=201)
            self.tokens[user] = self.ask("POST", "/v1/tokens", {"user": user}, want=201)["token"]

    def raw(self, method, path, body=None, who="admin"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Authorization": "Bearer " + self.tokens[who]})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None

    def ask(self, method, path, body=None, who="admin", want=200):
        status, answer = self.raw(method, path, body, who)
        assert status == want, f"{method} {path}: {status}, not {want}: {answer}"
        return answer

    def refused(self, method, path, body, *words, who="mallory", status=403):
        message = self.ask(method, path, body, who, status)["error"]["message"]
        assert all(word in message for word in words), message

    def nodes(self, count, **more):
        changes = [{"op": "put", "kind": "node", "id": f"n{n}",
                    "object": {"allocatable": {"cpu": 64, "memory": "256Gi", **more}}} for n in range(count)]
        self.ask("POST", "/v1/txn", {"changes": changes})

    def metric(self, name):
        """Returns the sum of a metric's rows."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics", headers={"Authorization": "Bearer " + self.tokens["admin"]})
            text = connection.getresponse().read().decode()
        return sum(float(row.rsplit(" ", 1)[1]) for row in text.splitlines() if re.match(name + r"[ {]", row))

    def check_memory(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        peak_mb = int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) // 1024
        print(f"# berthd had {peak_mb} MB at most", flush=True)
        assert peak_mb < MEMORY_MB_MAX, peak_mb

    def end(self):
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.log.seek(0)
        said = self.log.read()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.root, ignore_errors=True)
        return code, said


def until(true, what):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.02)


def placed(daemon, workload):
    return daemon.ask("GET", f"/v1/instances?workload={workload}&limit=10000")["items"]


@case
def three_million_replicas_are_refused(daemon):
    daemon.nodes(20)
    app = {"replicas": HUGE}
    daemon.refused("PUT", "/v1/apps/huge", app, "replicas: 3000000", "the limit of one app, 100000", "replicas_max")
    daemon.refused("PUT", "/v1/apps/huge", app, "replicas_max", who="admin")
    daemon.refused("PUT", "/v1/apps/huge?dry_run=true", app, "replicas_max")
    daemon.refused("POST", "/v1/jobs", app, "the limit of one job")
    daemon.ask("PATCH", "/v1/system/settings", {"replicas_max": 0})
    daemon.refused("PUT", "/v1/apps/huge", app, "cap instances: user mallory has 0 of 10000", "needs 3000000 more",
                   "ask an administrator to raise the setting cap_instances")
    daemon.refused("PUT", "/v1/apps/huge?dry_run=true", app, "cap instances")
    daemon.refused("POST", "/v1/jobs", app, "cap jobs: user mallory has 0 of 50000")
    daemon.refused("POST", "/v1/jobs?dry_run=true&forecast=true", app, "cap jobs")
    job = daemon.ask("POST", "/v1/jobs", {"command": ["/bin/true"]}, "ann", 201)["id"]
    until(lambda: placed(daemon, job), "another user's job has a place")
    daemon.check_memory()


@case
def three_million_replicas_are_bounded_where_they_are_allowed(daemon):
    """With every cap raised, one user's plan is bounded, and another user's job is placed within a few cycles."""
    daemon.nodes(500)
    daemon.ask("PATCH", "/v1/system/settings", {"replicas_max": 0, "cap_instances": 0})
    daemon.ask("PUT", "/v1/apps/huge", {"replicas": HUGE, "requests": {"cpu": "1m", "memory": "1Mi"}}, "mallory", 201)
    until(lambda: len(placed(daemon, "huge.mallory")) == 1000, "the placement budget is used")
    why = daemon.ask("GET", "/v1/why/apps/huge.mallory")
    assert "waits until earlier pods of this user have started" in json.dumps(why), why
    cycles = daemon.metric("berth_cycles_total")
    job = daemon.ask("POST", "/v1/jobs", {"command": ["/bin/true"]}, "ann", 201)["id"]
    until(lambda: placed(daemon, job), "another user's job has a place")
    assert daemon.metric("berth_cycles_total") - cycles <= 10, "it took more than the next plans"
    assert len(placed(daemon, "huge.mallory")) == 1000
    daemon.nodes(1, pods=10)  # a change starts plans, which the budget bounds
    assert len(placed(daemon, "huge.mallory")) == 1000
    daemon.check_memory()


@case
def without_a_budget_nodes_bound_the_pods(daemon):
    """Without caps and a budget, a node that states no other number takes 250 pods, whatever is requested."""
    daemon.nodes(10)
    daemon.ask("PATCH", "/v1/system/settings", {"replicas_max": 0, "cap_instances": 0, "placement_budget": 0})
    daemon.ask("PUT", "/v1/apps/huge", {"replicas": HUGE, "requests": {"cpu": "1m", "memory": "1Mi"}}, "mallory", 201)
    until(lambda: len(placed(daemon, "huge.mallory")) >= 2500, "every node is full")
    cycles = daemon.metric("berth_cycles_total")
    daemon.ask("POST", "/v1/jobs", {"command": ["/bin/true"]}, "ann", 201)  # starts another plan
    until(lambda: daemon.metric("berth_cycles_total") > cycles, "another plan is made")
    assert len(placed(daemon, "huge.mallory")) == 2500
    daemon.check_memory()


def main():
    print(f"1..{len(CASES)}", flush=True)
    failed = 0
    for number, function in enumerate(CASES, 1):
        name = function.__name__.replace("_", " ")
        daemon, trouble = Daemon(), ""
        try:
            function(daemon)
        except Exception:  # pylint: disable=broad-except
            trouble = traceback.format_exc()
        code, said = daemon.end()
        if code != 0 and not trouble:
            trouble = f"berthd ended with {code}"
        failed += bool(trouble)
        print(f"{'not ok' if trouble else 'ok'} {number} - {name}", flush=True)
        for line in (trouble + "\n".join(said.splitlines()[-10:])).splitlines() if trouble else []:
            print("# " + line)
    sys.exit(1 if failed else 0)


main()
