"""Cases of hostile_tenants_check.sh: the submit-to-start time of one user's jobs while another user attacks the daemon.

The attacker is a plain user with 64 connections (tests/daemon/hostile_attacker.py) whose program is limited to half a
core. Quiet phases separate the attacks. BERTH_HOSTILE_SECONDS is the time for all phases together: 60 in part, 300 for
the whole bed.

The goal is a p99 of at most 3 times the quiet p99. The result of each attack is printed beside it. In part a phase has
about two hundred starts, so its p99 is nearly the slowest start, which another load on the machine can cause: in part
the test fails at 6 times the quiet p99, the whole bed fails at the goal. An attack above its bound is measured again,
with a quiet phase of its own, and two of three measurements decide.
"""
import contextlib
import http.client
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import hostile_attacker
from agent_kit import AGENT, BERTH, BERTHD, PATIENCE, SHIM, Cluster, case, main, skip_unless, skip_unless_root, wait_for

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3")
skip_unless_root()

WHOLE = os.environ.get("BERTH_BED") == "whole"
SECONDS = float(os.environ.get("BERTH_HOSTILE_SECONDS", "300" if WHOLE else "60"))
RATIO_GOAL = 3.0  # p99 under attack, relative to the quiet p99
RATIO_MAX = RATIO_GOAL if WHOLE else 2 * RATIO_GOAL
MEASUREMENTS = 3  # at most, of one attack; the majority decides
HALF_A_CORE = 50000  # microseconds of each 100,000
MEMORY_MAX_KB = 500 * 1000
ATTACKS = os.environ.get("BERTH_HOSTILE_ATTACKS", "").split() or [*hostile_attacker.ATTACKS, "all"]
QUOTA = {"limits": {"cpu": 1, "memory": "2Gi", "pods": 50}}


def p99(samples):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


class CappedGroup:
    """A cgroup with half a core; processes enter it before they run the attack."""

    def __init__(self):
        name = f"berth-test-{os.getpid()}-attacker"
        v1 = pathlib.Path("/sys/fs/cgroup/cpu")
        self.folder = (v1 if v1.is_dir() else pathlib.Path("/sys/fs/cgroup")) / name
        self.folder.mkdir()
        if v1.is_dir():
            (self.folder / "cpu.cfs_period_us").write_text("100000")
            (self.folder / "cpu.cfs_quota_us").write_text(str(HALF_A_CORE))
        else:
            (self.folder / "cpu.max").write_text(f"{HALF_A_CORE} 100000")

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        wait_for("the attacker's group is empty", lambda: not (self.folder / "cgroup.procs").read_text().strip())
        self.folder.rmdir()


class Victim:
    """A user who submits one small job after the other; a watch of instances tells when each job runs."""

    def __init__(self, cluster, token):
        self.token = token
        self.host = cluster.url.split("//")[1]
        self.started = {}
        self.seen = threading.Condition()
        self.connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        revision = self.ask("GET", "/v1/instances")["revision"]
        self.stream = http.client.HTTPConnection(self.host, timeout=10 * PATIENCE)
        self.stream.request("GET", f"/v1/instances?watch={revision}", headers=self.headers())
        self.lines = self.stream.getresponse()
        assert self.lines.status == 200, self.lines.status
        threading.Thread(target=self.follow, daemon=True).start()

    def headers(self):
        return {"Authorization": f"Bearer {self.token}"}

    def ask(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body), self.headers())
        answer = self.connection.getresponse()
        data = json.loads(answer.read() or b"null")
        assert answer.status in (200, 201), f"{method} {path}: {answer.status} {data}"
        return data

    def follow(self):
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            while line := self.lines.readline():
                if not line.strip():
                    continue
                change = json.loads(line)
                state = change.get("object", {}).get("state")
                if state in ("running", "ended"):
                    with self.seen:
                        self.started.setdefault(str(change["object"]["workload"]).rsplit("/", 1)[-1], time.monotonic())
                        self.seen.notify_all()

    def start_one(self):
        """Returns the seconds from the submission of a job until the watch tells that it runs."""
        begin = time.monotonic()
        job = str(self.ask("POST", "/v1/jobs", {"name": "victim", "command": ["/bin/true"],
                                                "resources": {"cpu": "10m", "memory": "16Mi"}})["id"])
        with self.seen:
            assert self.seen.wait_for(lambda: job in self.started, PATIENCE), f"job {job} never started"
            return self.started[job] - begin

    def measure(self, seconds):
        end = time.monotonic() + seconds
        samples = [self.start_one()]
        while time.monotonic() < end:
            samples.append(self.start_one())
        return samples


class Battle(Cluster):
    """A daemon, one agent, the attacker with a quota and the victim."""

    def __enter__(self):
        super().__enter__()
        try:
            self.node("n1", options=["--uid-first", str(12000000 + os.getpid())])
            self.attacker = self.user("mallory", quota=QUOTA)
            self.victim = Victim(self, self.user("alice"))
            self.group = CappedGroup()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, trace):
        super().__exit__(kind, value, trace)
        if hasattr(self, "group"):
            self.group.remove()

    def user(self, name, **keys):
        status, answer = self.ask("POST", "/v1/users", {"id": name, "role": "user", **keys})
        assert status == 201, answer
        status, answer = self.ask("POST", "/v1/tokens", {"user": name})
        assert status == 201, answer
        return answer["token"]

    def attack(self, name, seconds):
        return subprocess.Popen([sys.executable, hostile_attacker.__file__, name, self.url, self.attacker,
                                 str(seconds)],
                                stdout=subprocess.PIPE, text=True, preexec_fn=self.group.enter)

    def clear(self):
        """Removes the attacker's objects, so that the next quiet phase is quiet."""
        for kind in ("apps", "jobs"):
            while items := self.get(f"/v1/{kind}?owner=mallory&limit=1000")["items"]:
                for item in items:
                    self.ask("DELETE", f"/v1/{kind}/{item['id']}")
        wait_for("the attacker's instances are gone", lambda: not self.get("/v1/instances?owner=mallory")["items"])

    def memory_peak_kb(self):
        lines = pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text().splitlines()
        return int([line.split()[1] for line in lines if line.startswith("VmHWM:")][0])


def phase(battle, name, seconds, quiet):
    """Runs one attack; returns the victim's samples and prints the rates that the daemon accepted."""
    if name in ("exec_floods", "all"):
        status, answer = battle.ask("POST", "/v1/jobs", {"name": "own", "command": hostile_attacker.SLEEP},
                                    battle.attacker)
        assert status == 201, answer
        battle.wait_state("jobs", answer["id"], "running")
    attacker = battle.attack(name, seconds)
    samples = battle.victim.measure(seconds)
    told = json.loads(attacker.communicate(timeout=PATIENCE + seconds)[0])
    rates = ", ".join(f"{key} {count / told['seconds']:.0f}/s" for key, count in sorted(told["counts"].items()))
    worst = p99(samples)
    print(f"# {name:<17} p99 {worst * 1000:6.0f} ms = {worst / quiet:4.1f} x quiet, {len(samples)} starts; "
          f"{rates}; {told['bytes'] / told['seconds'] / 1e6:.1f} MB/s"
          f"{'; GOAL MISSED' if worst > RATIO_GOAL * quiet else ''}", flush=True)
    assert attacker.returncode == 0
    assert sum(told["counts"].values()) > 0, "the attacker did nothing"
    return worst


def is_late(battle, name, share, quiet_samples):
    """Measures one attack, up to three times if it is above the goal. Returns the measurements if the goal is missed,
    else None."""
    seconds = 2 * share if name == "all" else share
    late, samples = [], quiet_samples
    for left in reversed(range(MEASUREMENTS)):
        quiet = p99(samples)
        worst = phase(battle, name, seconds, quiet)
        battle.clear()
        if worst > RATIO_MAX * quiet:
            late.append(f"{worst * 1000:.0f} ms, quiet {quiet * 1000:.0f} ms")
        if not late or 2 * len(late) > MEASUREMENTS or len(late) + left < 2:
            break
        samples = battle.victim.measure(share)
    return f"{name}: {'; '.join(late)}" if 2 * len(late) > MEASUREMENTS else None


@case
def another_users_jobs_start_in_time_under_every_attack():
    share = SECONDS / (len(ATTACKS) + 5)
    late = []
    with Battle() as battle:
        battle.victim.measure(share / 2)
        quiet_samples = battle.victim.measure(2 * share)
        for name in ATTACKS:
            if missed := is_late(battle, name, share, quiet_samples):
                late.append(missed)
            quiet_samples += battle.victim.measure(share / 8)
        peak = battle.memory_peak_kb()
        print(f"# quiet p99 {p99(quiet_samples) * 1000:.0f} ms, {len(quiet_samples)} starts; "
              f"berthd's peak {peak / 1000:.0f} MB (goal 500)")
        assert battle.daemon.process.poll() is None, "berthd ended"
        assert battle.state("nodes", "n1") == "ready"
        assert peak < MEMORY_MAX_KB, f"berthd took {peak} kB"
    assert not late, late


main()
