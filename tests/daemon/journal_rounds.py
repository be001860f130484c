#!/usr/bin/env python3
"""Makes a journal of many decisions, with kills and restarts of the daemon, and replays it.

    journal_rounds.py BERTHD BERTH DECISIONS SEED [OTHER_BERTH...]

Users submit, cancel and resize workloads; nodes are drained and return; placed instances run and end. Every few seconds
the daemon is killed or stopped, and started again on the same folder. Segments are small, so that some kills interrupt
their making. Then the journal is verified and every decision is made again, by this build and by each other one. Prints
TAP.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import http.client

from crash_rounds import Daemon, Failure, expect

NODES = 24
COUNT_EVERY = 4  # rounds
SEGMENTS, KILLS_MAX = 3, 20  # segments wanted; after KILLS_MAX rounds the test does not wait for more
CROWD = 150  # at most so many waiting jobs: more make decisions slower but not different
CANARY = "canary-of-the-journal-5d1f"
CHECKS = ["runs", "decisions", "segments", "secrets", "verify", "replay", "others"]
TROUBLE = (OSError, http.client.HTTPException, ValueError)


class Actor(threading.Thread):
    """Repeats an action until the daemon is gone."""

    def __init__(self, daemon, seed, act, pause):
        super().__init__()
        self.daemon_ = daemon
        self.random = random.Random(seed)
        self.act = act
        self.pause = pause
        self.over = False
        self.wrong = None

    def ask(self, method, path, body=None):
        status, answer = self.daemon_.ask(self.connection, method, path, body)
        if status == 503:
            raise OSError("it is stopping")
        if status >= 500:
            raise Failure("runs", f"{method} {path} is answered with {status}: {answer}")
        return status, answer

    def run(self):
        try:
            self.connection = self.daemon_.connect()
            while not self.over:
                self.act(self)
                time.sleep(self.pause)
        except TROUBLE:
            pass  # the daemon was killed
        except Failure as e:
            self.wrong = e


def submit(a):
    r = a.random
    if a.daemon_.crowded:
        return
    job = {"name": f"j{r.randrange(50)}", "command": ["/bin/true"], "priority": r.choice([0, 0, 0, 10, 500]),
           "requests": {"cpu": f"{r.randrange(1, 24) * 100}m", "memory": f"{r.randrange(1, 32) * 256}Mi"}}
    if r.random() < 0.2:
        job["replicas"] = r.randrange(2, 6)
    if r.random() < 0.3:
        job["time_limit"] = f"{r.randrange(1, 90)}m"
    a.ask("POST", "/v1/jobs", job)


def meddle(a):
    r = a.random
    what = r.random()
    if what < 0.4:
        _, page = a.ask("GET", "/v1/queue?limit=200")  # held jobs never end by themselves
        for job in r.sample(page["items"], min(len(page["items"]), 5)):
            a.ask("POST",
                  f"/v1/jobs/{job['id']}/{'cancel' if a.daemon_.crowded else r.choice(['cancel', 'hold', 'release'])}")
    elif what < 0.6:
        a.ask("PUT", f"/v1/apps/web{r.randrange(3)}.admin",
              {"name": f"web{r.randrange(3)}", "replicas": r.randrange(1, 7), "requests": {"cpu": "500m"}})
        a.ask("POST", "/v1/apps", {"name": f"web{r.randrange(3)}", "replicas": 2, "requests": {"cpu": "500m"}})
    elif what < 0.8:
        a.ask("POST", f"/v1/nodes/n{r.randrange(NODES)}/{r.choice(['cordon', 'enable', 'enable', 'drain'])}")
    elif what < 0.9:
        a.ask("PATCH", "/v1/system/settings", {"backfill": r.choice(["on", "on", "strict"])})
    else:
        a.ask("GET", f"/v1/why/jobs/{r.randrange(1, 200)}")


def agents(a):
    """Reports for all nodes: placed instances run, some end, stopping instances have stopped."""
    _, queue = a.ask("GET", "/v1/queue?limit=1")
    a.daemon_.crowded = queue["total"] > CROWD
    told = {}
    for item in [i for state in ("assigned", "running", "stopping")
                 for i in a.ask("GET", f"/v1/instances?limit=1000&state={state}")[1]["items"]]:
        said = {"assigned": "running", "stopping": "stopped"}.get(item["state"])
        if item["state"] == "running" and a.random.random() < 0.8:
            said = "ended"
        if said:
            row = {"id": item["id"], "state": said, "usage": {"cpu": "100m", "memory": "64Mi"}}
            if said == "ended":
                row["exit"] = 0 if a.random.random() < 0.9 else 1
                del row["usage"]
            told.setdefault(item["node"], []).append(row)
    for node, rows in sorted(told.items()):
        a.ask("POST", f"/v1/nodes/{node}/report", {"epoch": 1, "seq": time.time_ns(), "instances": rows})


def begin(daemon):
    daemon.crowded = False
    daemon.start()
    changes = [{"op": "put", "kind": "node", "id": f"n{i}", "object": {
        "allocatable": {"cpu": 8, "memory": "64Gi", "pods": 100}}} for i in range(NODES)]
    for method, path, body in [
            ("POST", "/v1/txn", {"changes": changes}),
            ("POST", "/v1/secrets", {"name": "db", "data": {"password": CANARY}}),
            ("PATCH", "/v1/system/settings",
             {"journal_segment_mb": 1, "journal_segment_s": 7, "job_keep_s": 60, "reservations": 5})]:
        status, answer = daemon.ask(daemon.connect(), method, path, body)
        expect("runs", status in (200, 201), f"{method} {path} is answered with {status}: {answer}")


def round_of(daemon, rng):
    actors = [Actor(daemon, rng.random(), act, pause)
              for act, pause in [(submit, 0.001), (submit, 0.004), (meddle, 0.03), (agents, 0.05)]]
    for a in actors:
        a.start()
    time.sleep(rng.uniform(2, 9))
    if rng.random() < 0.3:
        daemon.process.terminate()
        daemon.process.wait()
        daemon.process.stdout.close()
    else:
        daemon.kill()
    for a in actors:
        a.over = True
        a.join()
        if a.wrong:
            raise a.wrong


def decisions(berth, data):
    """Returns the number of decisions so far."""
    done = subprocess.run([berth, "journal", "grep", "--data", data, "--kind", "unit", "--count"], capture_output=True,
                          text=True)
    expect("decisions", done.returncode == 0, done.stdout + done.stderr)
    return int(done.stdout)


def replay(check, berth, args, want=None):
    done = subprocess.run([berth, "replay", *args], capture_output=True, text=True)
    expect(check, done.returncode == 0, f"exit code {done.returncode}: {done.stdout}{done.stderr}")
    made = int(done.stdout.split(" decisions")[0].rsplit(" ", 1)[1])
    expect(check, ("all the same" in done.stdout) == (made > 0), done.stdout)
    expect(check, want is None or made == want, f"{made} decisions were made again instead of {want}: {done.stdout}")
    return made


def has_canary(path):
    done = subprocess.run(["zstd", "-dcq", path], capture_output=True)
    return CANARY.encode() in done.stdout


def segments_of(daemon):
    folder = os.path.join(daemon.data, "journal")
    return sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".seg"))


def rounds(daemon, berth, want, rng, others):
    begin(daemon)
    kills = made = 0
    # a slow machine needs longer to make them
    while made < want or (len(segments_of(daemon)) < SEGMENTS and kills < KILLS_MAX):
        round_of(daemon, rng)
        kills += 1
        if kills % COUNT_EVERY == 0:  # the count reads the whole journal
            made = decisions(berth, daemon.data)
        daemon.start()
    daemon.process.terminate()
    daemon.process.wait()
    segments = segments_of(daemon)
    expect("segments", len(segments) >= SEGMENTS, f"there are only {len(segments)}")
    if shutil.which("zstd"):
        expect("secrets", not any(has_canary(s) for s in segments), "a secret is in the journal")
    done = subprocess.run([berth, "journal", "verify", "--data", daemon.data], capture_output=True, text=True)
    expect("verify", done.returncode == 0, done.stdout + done.stderr)
    begin_s = time.monotonic()
    n = replay("replay", berth, ["--data", daemon.data])
    took_s = time.monotonic() - begin_s
    alone = sum(replay("replay", berth, [s]) for s in rng.sample(segments, min(3, len(segments))))
    for other in others:
        replay("others", other, ["--data", daemon.data], n)
    print(f"# {n} decisions in {made} units, {kills} kills and stops, {len(segments)} segments; "
          f"replayed in {took_s:.1f} s, {alone} of them from three segments alone, all by {len(others)} other builds")


def main():
    berthd, berth, want, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    folder = tempfile.mkdtemp(prefix="berth-journal.")
    daemon = Daemon(berthd, folder)
    failure = None
    print(f"# seed {seed}")
    try:
        rounds(daemon, berth, want, random.Random(seed), sys.argv[5:])
    except Failure as e:
        failure = e
    finally:
        if daemon.process and daemon.process.poll() is None:
            daemon.kill()
    print(f"1..{len(CHECKS)}")
    for i, check in enumerate(CHECKS, 1):
        bad = failure is not None and failure.check not in CHECKS and check == "runs" or \
            failure is not None and failure.check == check
        print(f"{'not ok' if bad else 'ok'} {i} - {check}")
    if failure:
        print(f"# {failure}")
        print("# the log ends with:\n# " + daemon.tail().replace("\n", "\n# "))
        print(f"# kept: {folder}")
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
