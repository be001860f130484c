#!/usr/bin/env python3
"""Kills berthd with SIGKILL in the middle of a stream of writes, again and again.

    crash_rounds.py BERTHD BERTH ROUNDS [SEED]

Several writers submit jobs, each with an idempotency key of its own; one client watches. After each crash, on the same
folder:

  there      every acknowledged job exists, with its id and its name
  ids        no id is used twice, and a new id is greater than all earlier ones
  keys       repeating an answered request gives the same answer; an unanswered request takes effect exactly once
  watch      a watch from the last seen revision delivers every later job once and in order, and no others
  places     no pod of a job has two instances
  replay     `berth replay` finds no difference (every few rounds)

The time until berthd is ready again is printed beside the goal but not checked, since machines differ. Prints TAP.
"""
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

WRITERS = 4
NODES = 20
REPLAY_EVERY = 10
ALL_EVERY = 20  # rounds between checks of every job; the other rounds check the jobs of the last round only
KEYS_KEPT = 5000  # berthd forgets a user's oldest keys beyond some thousands
START_S_MAX = 60
READY_JOBS = (20000, 30000)  # the goal for the start time applies to about 25,000 jobs
READY_P99_S = 4
CHECKS = ["there", "ids", "keys", "watch", "places", "replay", "ready"]


class Failure(Exception):
    def __init__(self, check, text):
        super().__init__(f"{check}: {text}")
        self.check = check


def expect(check, condition, text):
    if not condition:
        raise Failure(check, text)


class Daemon:
    """berthd on one folder; it is started again after each crash."""

    def __init__(self, program, folder):
        self.program = program
        self.data = os.path.join(folder, "data")
        self.token_file = os.path.join(folder, "token")
        self.log = os.path.join(folder, "log")
        self.process = None
        self.ready_s = []  # (jobs, seconds) of each start

    def spawn(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--data", self.data, "--listen", "127.0.0.1:0", "--init", "--token-file",
                 self.token_file, "--lease", "86400"], stdout=subprocess.PIPE, stderr=log, text=True)

    def start(self, jobs=0):
        begin = time.monotonic()
        self.spawn()
        timer = threading.Timer(START_S_MAX, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        expect("ready", line.startswith("ready http://127.0.0.1:"),
               f"berthd does not start; its log ends with:\n{self.tail()}")
        self.ready_s.append((jobs, time.monotonic() - begin))
        self.port = int(line.rsplit(":", 1)[1])
        with open(self.token_file, encoding="utf-8") as f:
            self.token = f.read().strip()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()

    def tail(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return "".join(f.readlines()[-5:])

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, connection, method, path, body=None, key=None):
        headers = {"Authorization": f"Bearer {self.token}"}
        if key:
            headers["Idempotency-Key"] = key
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def get(self, path):
        status, body = self.ask(self.connect(), "GET", path)
        expect("there", status == 200, f"GET {path} is answered with {status}: {body}")
        return body

    def list(self, kind, after=None):
        """Returns every object of a kind (after an id), and the revision of the last page."""
        items = []
        while True:
            page = self.get(f"/v1/{kind}?limit=10000" + (f"&after={after}" if after else ""))
            items += page["items"]
            after = page.get("continue")
            if after is None:
                return items, page["revision"]


def job(key):
    """Returns a job. Most jobs are held; some run, so that plans are committed between submissions."""
    return {"name": key, "command": ["/bin/true"], "requests": {"cpu": "10m", "memory": "16Mi"},
            "hold": sum(key.encode()) % 8 != 0}


class Writer(threading.Thread):
    """Submits jobs until the daemon is gone. `told` has the acknowledged ones, `asked` the one without an answer."""

    def __init__(self, daemon, prefix):
        super().__init__()
        self.daemon_ = daemon
        self.prefix = prefix
        self.told = []  # (key, id, revision), in order
        self.asked = None
        self.refused = None

    def run(self):
        connection = self.daemon_.connect()
        n = 0
        while self.refused is None:
            key = f"{self.prefix}-{n}"
            self.asked = key
            try:
                status, body = self.daemon_.ask(connection, "POST", "/v1/jobs", job(key), key)
            except (OSError, http.client.HTTPException, ValueError):
                return
            if status != 201:
                self.refused = f"{status}: {body}"
                return
            self.told.append((key, body["id"], body["revision"]))
            self.asked = None
            n += 1


class Watcher(threading.Thread):
    """Watches jobs from a revision on until the daemon is gone, or until the revision `until`."""

    def __init__(self, daemon, revision, until=None):
        super().__init__()
        self.daemon_ = daemon
        self.revision = revision
        self.until = until
        self.seen = []  # (revision, id)
        self.trouble = None

    def run(self):
        try:
            self.follow()
        except (OSError, http.client.HTTPException):
            if self.until is not None:
                self.trouble = "it ends before everything was told"
        except ValueError:
            pass  # the crash has cut the line

    def follow(self):
        connection = self.daemon_.connect(timeout=60)
        connection.request("GET", f"/v1/jobs?watch={self.revision}", None,
                           {"Authorization": f"Bearer {self.daemon_.token}"})
        answer = connection.getresponse()
        if answer.status != 200:
            self.trouble = f"it is answered with {answer.status}: {answer.read()!r}"
            return
        while self.until is None or self.revision < self.until:
            line = answer.readline()
            if not line.endswith(b"\n"):
                if self.until is not None:
                    self.trouble = "it ends before everything was told"
                return
            if line == b"\n":
                continue
            event = json.loads(line)
            if event["type"] != "put" or event["revision"] <= self.revision:
                self.trouble = f"after revision {self.revision} it says {line!r}"
                return
            self.revision = event["revision"]
            self.seen.append((event["revision"], event["object"]["id"]))


class Rounds:
    def __init__(self, berthd, berth, folder, seed):
        self.daemon = Daemon(berthd, folder)
        self.berth = berth
        self.random = random.Random(seed)
        self.jobs = {}  # id to name, of every acknowledged job
        self.keys = {}  # name, which is also the key, to id
        self.last_id = 0
        self.revision = 0  # the last revision that the watch has seen
        self.watched = set()  # ids
        self.unanswered = self.replays = 0

    def begin(self):
        self.daemon.start()
        changes = [{"op": "put", "kind": "node", "id": f"n{i}",
                    "object": {"allocatable": {"cpu": 64, "memory": "256Gi", "pods": 10000}}} for i in range(NODES)]
        status, body = self.daemon.ask(self.daemon.connect(), "POST", "/v1/txn", {"changes": changes})
        expect("there", status == 200, f"nodes are refused: {status}: {body}")

    def acknowledged(self, key, id_, fresh):
        """Records that a submission was answered with an id. `fresh`: it cannot have taken effect before this round."""
        expect("ids", self.jobs.get(id_, key) == key, f"{id_} is given to {key}, and was given to {self.jobs.get(id_)}")
        expect("keys", self.keys.get(key, id_) == id_, f"{key} is {id_} now, and was {self.keys.get(key)}")
        expect("ids", not fresh or id_ > self.last_id, f"{id_} is given out after {self.last_id}")
        self.jobs[id_] = key
        self.keys[key] = id_

    def write_and_kill(self, n):
        """Runs one round of writing; returns the keys of the unanswered submissions."""
        watcher = Watcher(self.daemon, self.revision)
        writers = [Writer(self.daemon, f"r{n}-w{w}") for w in range(WRITERS)]
        for thread in [watcher, *writers]:
            thread.start()
        time.sleep(self.random.uniform(0.02, 0.4))
        self.daemon.kill()
        for thread in [watcher, *writers]:
            thread.join()
        open_keys = []
        for w in writers:
            expect("there", w.refused is None, f"a submission is refused: {w.refused}")
            for key, id_, _ in w.told:
                self.acknowledged(key, id_, fresh=True)
            if w.asked:
                open_keys.append(w.asked)
        self.watch_took(watcher)
        return open_keys

    def watch_took(self, watcher):
        expect("watch", watcher.trouble is None, watcher.trouble)
        for revision, id_ in watcher.seen:
            expect("watch", id_ not in self.watched, f"job {id_} is told twice, again at revision {revision}")
            self.watched.add(id_)
        self.revision = max(self.revision, watcher.revision)

    def check_there(self, floor):
        """Checks the jobs above an id; floor 0 checks all."""
        items, _ = self.daemon.list("jobs", floor)
        there = {item["id"]: item["name"] for item in items}
        expect("ids", len(there) == len(items), "the list has an id twice")
        names = set(there.values())
        expect("keys", len(names) == len(there), "a request has happened twice")
        for id_, name in self.jobs.items():
            if id_ > floor:
                expect("there", there.get(id_) == name,
                       f"job {id_} ({name}) was acknowledged; there is {there.get(id_)}")
        return there

    def check_keys(self, open_keys, there):
        """Repeats the unanswered submissions and some of the answered ones."""
        known = {name: id_ for id_, name in there.items()}
        connection = self.daemon.connect()
        again = self.random.sample(list(self.keys)[-KEYS_KEPT:], min(5, len(self.keys)))
        for key in open_keys + again:
            status, body = self.daemon.ask(connection, "POST", "/v1/jobs", job(key), key)
            expect("keys", status == 201, f"{key} is answered with {status}: {body}")
            if key in known:
                expect("keys", body["id"] == known[key], f"{key} is {known[key]}, but asked again it is {body['id']}")
            self.acknowledged(key, body["id"], fresh=key in open_keys and key not in known)
        self.unanswered += len(open_keys)

    def check_watch(self, floor):
        jobs, _ = self.daemon.list("jobs", floor)
        watcher = Watcher(self.daemon, self.revision, max((item["revision"] for item in jobs), default=0))
        watcher.start()
        watcher.join()
        self.watch_took(watcher)
        ids = {item["id"] for item in jobs}
        told = {id_ for id_ in self.watched if id_ > floor}
        expect("watch", told == ids,
               f"it has told of {sorted(told - ids)[:5]} too many, and not of {sorted(ids - told)[:5]}")

    def check_places(self):
        items, _ = self.daemon.list("instances")
        places = [(item["workload"], item["ordinal"]) for item in items]
        expect("places", len(set(places)) == len(places), "a pod has two instances")

    def check_replay(self):
        done = subprocess.run([self.berth, "replay", "--data", self.daemon.data], capture_output=True, text=True)
        expect("replay", done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
        self.replays += 1

    def round(self, n, last):
        floor = self.last_id
        open_keys = self.write_and_kill(n)
        if n % REPLAY_EVERY == 0 or last:
            self.check_replay()
        if self.random.random() < 0.25:  # another crash during recovery
            self.daemon.spawn()
            time.sleep(self.random.uniform(0, 0.05))
            self.daemon.kill()
        self.daemon.start(len(self.jobs))
        floor = 0 if n % ALL_EVERY == 0 or last else floor
        there = self.check_there(floor)
        self.last_id = max([self.last_id, *there, *self.jobs])
        self.check_keys(open_keys, there)
        self.check_watch(floor)
        if n % REPLAY_EVERY == 0 or last:
            self.check_places()
        self.last_id = max(self.last_id, *self.jobs)


def print_ready(which, seconds, goal):
    """Prints the times until berthd was ready again, for some of its starts."""
    if seconds:
        ordered = sorted(seconds)
        p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
        print(f"# ready again, {which}: {len(ordered)} starts, median {ordered[len(ordered) // 2]:.3f} s, "
              f"p99 {p99:.3f} s{goal}, longest {ordered[-1]:.3f} s")


def main():
    berthd, berth, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1 << 32)
    folder = tempfile.mkdtemp(prefix="berth-crash.")
    rounds = Rounds(berthd, berth, folder, seed)
    failure = None
    n = 0
    try:
        rounds.begin()
        for n in range(1, count + 1):
            rounds.round(n, n == count)
    except Failure as e:
        failure = e
    finally:
        if rounds.daemon.process and rounds.daemon.process.poll() is None:
            rounds.daemon.kill()
    print(f"# {n} crashes, {len(rounds.jobs)} jobs acknowledged, {rounds.unanswered} submissions cut off and repeated, "
          f"{rounds.replays} replays, seed {seed}")
    print_ready("all", [s for _, s in rounds.daemon.ready_s], "")
    low, high = READY_JOBS
    print_ready(f"with {low:,} to {high:,} jobs", [s for jobs, s in rounds.daemon.ready_s if low <= jobs <= high],
                f" (goal {READY_P99_S} s)")
    print(f"1..{len(CHECKS)}")
    for i, check in enumerate(CHECKS, 1):
        bad = failure is not None and failure.check == check
        print(f"{'not ok' if bad else 'ok'} {i} - {check}")
    if failure:
        print(f"# in round {n}: {failure}")
        print(f"# the log ends with:\n# " + rounds.daemon.tail().replace("\n", "\n# "))
        print(f"# kept: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
