"""Cases of submit_test.sh: jobs from the command line to the process, with one daemon and two real agents on this
machine."""
import fcntl
import os
import pathlib
import pty
import select
import signal
import struct
import subprocess
import termios
import time

from agent_kit import BERTH, BERTHD, AGENT, PATIENCE, SHIM, Cluster, case, main, skip_unless, skip_unless_root, wait_for

skip_unless_root()
skip_unless(BERTH, BERTHD, AGENT, SHIM)
C = None  # the cluster, set by the first case


def berth(*words, code=0, stdin=None):
    """Runs berth; returns its standard output and its standard error."""
    done = C.run(*words, stdin=stdin)
    assert done.returncode == code, f"berth {words}: {done.returncode}, not {code}: {done.stdout}{done.stderr}"
    return done.stdout, done.stderr


def submit(*words):
    out, _ = berth("submit", *words)
    assert out.startswith("job/") and out.endswith(" submitted\n"), out
    return out.split()[0].split("/")[1]


def script(name, text):
    path = C.work / name
    path.write_text(text)
    return path


def over(job, state="ended"):
    return C.wait_state("jobs", job, state)


def env_of(text):
    """Returns lines NAME=VALUE, of several pods by their labels."""
    found = {}
    for line in text.splitlines():
        label, _, rest = line.partition("] ") if line.startswith("[") else ("", "", line)
        name, _, value = rest.partition("=")
        found.setdefault(label.lstrip("["), {})[name] = value
    return found


@case
def run_exits_with_the_status_of_the_command():
    out, err = berth("run", "--name", "first", "--", "sh", "-c", "echo to you; exit 5", code=5)
    assert out == "to you\n", out
    assert "job/1 submitted" in err and "job/1 failed: exit code 5" in err, err
    out, _ = berth("run", "--", "printf", "%s|", "a b", "$HOME", "--name")
    assert out == "a b|$HOME|--name|", out
    assert C.get("/v1/jobs/1")["name"] == "first"


@case
def options_are_kept():
    job = submit("--name", "all", "--time", "1-12:00:00", "--estimate", "90", "--hold", "--urgency", "7", "--retries",
                 "2",
                 "--no-requeue", "--type", "train", "--class", "llm", "--network", "transformer", "--parameters", "7e9",
                 "--attr", "team=red", "--checkpoint", "USR1@30s", "--notify", "https://127.0.0.1:9/told@ended",
                 "--data", "/data", "--begin", "+1h", "--deadline", "+3d", "-e", "A=b", "--cpu", "100m", "--", "true")
    doc = C.get(f"/v1/jobs/{job}")
    for key, want in {"time_limit": "1d12h", "estimate": "1m30s", "hold": True, "urgency": 7, "retries": 2,
                      "requeue": False, "type": "train", "class": "llm", "network": "transformer",
                      "attributes": {"team": "red"}, "checkpoint": {"signal": "USR1", "grace": "30s"},
                      "notify": [{"to": "https://127.0.0.1:9/told", "on": ["ended"]}], "data": ["/data"],
                      "env": {"A": "b"}}.items():
        assert doc[key] == want, (key, doc[key])
    assert float(doc["parameters"]) == 7e9 and doc["begin"] < doc["deadline"], doc
    berth("scancel", job)
    _, err = berth("submit", "--time", "soon", "--", "true", code=2)
    assert "invalid duration" in err and "30m" in err, err
    _, err = berth("submit", code=2)
    assert "nothing to run" in err, err
    out, _ = berth("submit", "--dry-run", "--name", "draft", "--", "true")
    assert "(dry run)" in out and "name: draft" in out, out
    assert not [j for j in C.get("/v1/jobs")["items"] if j.get("name") == "draft"]


@case
def files_hold_several_jobs_and_the_command_line_wins():
    path = script("jobs.yaml", "name: one\ncommand: [echo, one]\n---\nkind: job\nname: two\ncommand: [echo, two]\n"
                               "env: {A: '1', B: '1'}\n")
    out, _ = berth("submit", "-f", path, "-e", "B=2", "--wait")
    ids = [line.split("/")[1].split()[0] for line in out.splitlines()]
    assert len(ids) == 2, out
    docs = [C.get(f"/v1/jobs/{i}") for i in ids]
    assert [d["name"] for d in docs] == ["one", "two"] and docs[1]["env"] == {"A": "1", "B": "2"}, docs
    assert all(d["status"]["state"] == "ended" for d in docs)
    _, err = berth("submit", "-f", script("app.yaml", "kind: app\nname: x\n"), code=1)
    assert "expected kind job, found app" in err, err
    again, _ = berth("submit", "-f", "-", stdin=C.berth("get", "job", ids[0], "-o", "yaml"))
    assert again.endswith(" submitted\n") and again.split()[0] != f"job/{ids[0]}", again


@case
def scripts_travel_with_their_job():
    path = script("ours.sh", "#!/bin/sh\n# hello\n#BERTH --name 'from the script' -e GREETING='hello there'\n"
                             "#BERTH --time 10m --cpu 100m\n\necho \"$0: $GREETING $*\"\n#BERTH --name late\nexit 3\n")
    out, _ = berth("run", path, "--lr", "0.1", "a b", code=3)
    assert out == "/run/berth-job/ours.sh: hello there --lr 0.1 a b\n", out
    job = max(C.get("/v1/jobs")["items"], key=lambda j: j["id"])
    assert job["name"] == "from the script" and job["time_limit"] == "10m", job
    out, _ = berth("run", "--name", "nearer", "-e", "GREETING=hi", path, code=3)
    assert out.startswith("/run/berth-job/ours.sh: hi"), out


@case
def slurm_scripts_run_as_they_are():
    path = script("theirs.sh",
                  "#!/bin/bash\n#SBATCH -J slurmy --nodes=1\n#SBATCH --ntasks-per-node=2\n#SBATCH --mem=64M\n"
                               "#SBATCH --mystery=5\n#SBATCH -t 5\n#BERTH --cpu 100m\n"
                  "srun -n 2 --cpu-bind=none echo \"$SLURM_JOB_NAME rank $SLURM_PROCID of $SLURM_NTASKS\"\n")
    done = C.run("sbatch", "--parsable", path)
    assert done.returncode == 0 and "theirs.sh:5: --mystery=5: unknown option" in done.stderr, done.stderr
    job = done.stdout.strip()
    over(job)
    lines = sorted(line.split("] ")[1] for line in C.berth("logs", job).splitlines())
    assert lines == ["slurmy rank 0 of 2", "slurmy rank 1 of 2"], lines
    assert C.get(f"/v1/jobs/{job}")["time_limit"] == "5m"
    out, _ = berth("srun", "-J", "now", "sh", "-c", "echo $SLURM_JOB_ID $SLURM_JOB_NAME")
    assert out.split()[1] == "now" and out.split()[0].isdigit(), out


@case
def an_array_is_one_job_of_many_tasks():
    out, _ = berth("run", "--array", "10-14:2%2", "--cpu", "100m", "--", "sh", "-c",
                   "echo $BERTH_ARRAY_INDEX $BERTH_TASK ${RANK:-none}")
    assert sorted(line.split("] ")[1] for line in out.splitlines()) == ["10 0 none", "12 1 none", "14 2 none"], out


@case
def gang_tasks_know_their_rank_and_size():
    show = "env | grep -E '^(RANK|WORLD_SIZE|LOCAL_|NODE_RANK|MASTER_|BERTH_)'; sed s/^/host=/ $BERTH_HOSTFILE"
    out, _ = berth("run", "--tasks", "2", "--tasks-per-node", "1", "--cpu", "100m", "--", "sh", "-c", show)
    tasks = env_of(out)
    assert len(tasks) == 2, out
    address = {n["id"]: n.get("address", n["id"]) for n in C.get("/v1/nodes")["items"]}
    by_rank = sorted(tasks.values(), key=lambda t: int(t["RANK"]))
    for rank, task in enumerate(by_rank):
        want = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                "NODE_RANK": str(rank),
                "MASTER_ADDR": address[by_rank[0]["BERTH_NODE"]], "BERTH_TASK": str(rank), "BERTH_NODES": "2",
                "MASTER_PORT": str(61000 + int(task["BERTH_JOB_ID"]) % 4000)}
        assert {k: task[k] for k in want} == want, (task, want)
        assert task["host"].endswith(" slots=1"), task
    assert by_rank[0]["BERTH_NODE"] != by_rank[1]["BERTH_NODE"]


@case
def gang_tasks_reach_each_other_by_their_environment():
    meet = ("import os, socket\n"
            "rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])\n"
            "at = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))\n"
            "if rank == 0:\n"
            "    s = socket.create_server(at)\n"
            "    print(sorted(s.accept()[0].recv(9).decode() for _ in range(size - 1)))\n"
            "else:\n"
            "    import time\n"
            "    for _ in range(600):\n"
            "        try:\n"
            "            s = socket.create_connection(at)\n"
            "            break\n"
            "        except OSError:\n"
            "            time.sleep(0.1)\n"
            "    s.sendall(str(rank).encode())\n")
    out, _ = berth("run", "--tasks", "3", "--cpu", "100m", "--node", "n1", "--", "python3", "-c", meet)
    assert "['1', '2']" in out, out


@case
def roles_start_together():
    path = script("roles.yaml", """
name: set
roles:
  - name: driver
    command: [sh, -c, 'echo $BERTH_ROLE $RANK/$WORLD_SIZE']
    resources: {cpu: 100m}
  - name: worker
    replicas: 2
    command: [sh, -c, 'echo $BERTH_ROLE $RANK/$WORLD_SIZE']
    resources: {cpu: 100m}
""")
    out, _ = berth("submit", "-f", path)
    ids = [line.split("/")[1].split()[0] for line in out.splitlines()]
    assert [line.split(" as ")[1] for line in out.splitlines()] == ["driver", "worker"], out
    for job in ids:
        over(job)
    assert C.berth("logs", ids[0]) == "driver 0/3\n"
    assert sorted(line.split("] ")[1] for line in C.berth("logs", ids[1]).splitlines()) == ["worker 1/3", "worker 2/3"]


@case
def dependencies_hold_and_release():
    first = submit("--hold", "--", "true")
    after = submit("--after-ok", first, "--", "true")
    never = submit("--after-failed", first, "--", "true")
    wait_for("both wait", lambda: C.state("jobs", after) not in ("running", "ended"))
    assert C.state("jobs", first) == "held"
    berth("job", "release", first)
    over(first)
    over(after)
    C.wait_state("jobs", never, "failed")
    _, err = berth("job", "cancel", never, code=6)
    assert "has already ended: failed" in err, err
    bad = submit("--retries", "0", "--", "false")
    C.wait_state("jobs", bad, "failed")
    over(submit("--after-failed", bad, "--", "true"))
    over(submit("--after", bad + "," + first, "--", "true"))


@case
def ended_jobs_can_be_requeued():
    job = submit("--retries", "0", "--", "sh", "-c", "echo try; exit 1")
    C.wait_state("jobs", job, "failed")
    before = {i["instance"] for i in C.get(f"/v1/jobs/{job}")["status"]["last"]}
    berth("job", "requeue", job)
    wait_for("it ran again",
             lambda: {i["instance"] for i in C.get(f"/v1/jobs/{job}")["status"].get("last", [])} - before)


@case
def schedules_are_made():
    out, _ = berth("submit", "--name", "nightly", "--cron", "0 3 * * *", "--", "true")
    assert out == "cron/nightly.admin added\n", out
    cron = C.get("/v1/crons/nightly.admin")
    assert cron["schedule"] == "0 3 * * *" and cron["job"]["command"] == ["true"], cron
    _, err = berth("submit", "--cron", "0 3 * * *", "--", "true", code=2)
    assert "needs --name" in err, err


@case
def slurm_commands_work():
    running = submit("--name", "one", "--time", "1h", "--cpu", "100m", "--", "sleep", "600")
    waiting = submit("--name", "two", "--hold", "--", "true")
    C.wait_state("jobs", running, "running")
    rows = {line.split()[0]: line.split() for line in C.berth("squeue", "-u", "admin", "-h").splitlines()}
    assert rows[running][1:5] == ["default", "one", "admin", "R"] and rows[running][6] == "1", rows
    assert rows[waiting][4] == "PD" and "JobHeldUser" in rows[waiting][-1] or "(" in rows[waiting][-1], rows
    assert C.berth("squeue", "-h", "-u", "nobody") == ""
    link = C.work / "squeue"
    link.symlink_to(BERTH)
    done = subprocess.run([str(link), "-h", "-j", running], capture_output=True, text=True, env=C.berth_env(),
                          check=False)
    assert done.returncode == 0 and done.stdout.split()[0] == running, done
    info = C.berth("sinfo")
    assert info.splitlines()[0].split()[:2] == ["PARTITION", "AVAIL"] and "default*" in info and "n1" in info, info
    berth("scancel", "--me", "-n", "one,two")
    wait_for("both are cancelled", lambda: all(C.get(f"/v1/jobs/{j}").get("cancelled") for j in (running, waiting)))
    assert C.berth("squeue", "-h", "-t", "CA", "-j", waiting).split()[4] == "CA"
    _, err = berth("scancel", code=2)
    assert "no jobs selected" in err


@case
def outcomes_are_distinct():
    small = ("--cpu", "100m", "--retries", "0")
    jobs = {"succeeded": submit("--name", "well", *small, "--", "true"),
            "failed": submit("--name", "bad", *small, "--", "false"),
            "timed-out": submit("--name", "long", "--time", "1", *small, "--", "sleep", "600"),
            "cancelled": submit("--name", "unwanted", *small, "--", "sleep", "600")}
    C.wait_state("jobs", jobs["cancelled"], "running")
    _, err = berth("job", "hold", jobs["cancelled"], code=6)
    assert "affects only pending jobs" in err, err
    assert C.state("jobs", jobs["cancelled"]) == "running"
    berth("job", "cancel", jobs["cancelled"])
    codes = {"succeeded": "CD", "failed": "F", "timed-out": "TO", "cancelled": "CA"}
    for outcome, job in jobs.items():
        out, _ = berth("wait", job, "-t", str(PATIENCE), code=0 if outcome == "succeeded" else 1)
        assert out == f"job/{job} {outcome}\n", out
        assert C.get(f"/v1/jobs/{job}")["status"]["outcome"] == outcome
        shown, listed = C.berth("jobs", "--over"), C.berth("get", "jobs", "--state", outcome)
        assert any(line.split()[0] == job and outcome in line.split() for line in shown.splitlines()), shown
        assert any(line.split()[0] == job and outcome in line.split() for line in listed.splitlines()), listed
        assert C.berth("squeue", "-h", "-t", codes[outcome], "-j", job).split()[4] == codes[outcome]
        assert f"job {job} " in (heading := C.berth("job", "show", job).splitlines()[0]) and outcome in heading, heading
        _, err = berth("job", "cancel", job, code=0 if outcome == "cancelled" else 6)
        assert outcome == "cancelled" or f"has already ended: {outcome}" in err, err


@case
def examples_run():
    folder = pathlib.Path(os.environ["BERTH_SOURCE"]) / "examples/jobs"
    for name, lines in {"roles.yaml": {"driver 0 of 4", "worker 3 of 4"}, "pipeline.yaml": {"fetch", "publish"},
                        "elastic.yaml": {"task 1 of"}}.items():
        ids = [line.split("/")[1].split()[0] for line in berth("submit", "--wait", "-f", folder / name)[0].splitlines()]
        logs = "".join(C.berth("logs", job) for job in ids)
        assert all(line in logs for line in lines), (name, logs)
    out, _ = berth("run", folder / "array.sh", "there")
    assert out.count("of 99 into there") == 100, out
    out, _ = berth("run", "--cpu", "100m", folder / "slurm.sh")
    assert "task 0 of 2 on n" in out and "task 1 of 2 on n" in out, out
    out, _ = berth("submit", "--dry-run", "-f", folder / "train.yaml")
    assert "gang: true" in out, out


class Terminal:
    """berth in a terminal of its own."""

    def __init__(self, *words, rows=31, columns=97):
        self.seen = b""
        self.fd, its = pty.openpty()
        self.size(rows, columns)
        self.process = subprocess.Popen(["setsid", "--ctty", str(BERTH), *words], stdin=its, stdout=its, stderr=its,
                                        env=dict(C.berth_env(), TERM="dumb"))
        os.close(its)

    def size(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self):
        """Reads some output. Returns False at the end."""
        ready, _, _ = select.select([self.fd], [], [], 0.2)
        try:
            piece = os.read(self.fd, 65536) if ready else None
        except OSError:
            return False
        self.seen += piece or b""
        return piece != b""

    def until(self, word):
        end = time.monotonic() + PATIENCE
        while word.encode() not in self.seen:
            assert time.monotonic() < end and self.read(), (word, self.seen)
        self.seen = self.seen.split(word.encode(), 1)[1]

    def code(self):
        end = time.monotonic() + PATIENCE
        while self.read():
            assert time.monotonic() < end, self.seen
        os.close(self.fd)
        return self.process.wait(PATIENCE)


def latest():
    return max(j["id"] for j in C.get("/v1/jobs")["items"])


@case
def a_terminal_in_a_job():
    t = Terminal("run", "-it", "--cpu", "100m", "--", "sh", "-c",
                 "stty size; trap 'stty size' WINCH; trap 'exit 7' INT; echo go; while :; do sleep 0.1; done")
    t.until("31 97")
    t.until("go")
    t.size(44, 133)
    t.until("44 133")
    t.type("\x03")
    assert t.code() == 7, t.seen
    job = latest()
    C.wait_state("jobs", job, "failed")
    last = C.get(f"/v1/jobs/{job}")["status"]["last"][0]
    assert last["exit"] == 7, last
    t = Terminal("run", "-it", "--cpu", "100m", "--", "true")
    assert t.code() == 0, t.seen
    over(latest())


@case
def a_closed_terminal_cancels_its_job():
    t = Terminal("run", "-it", "--cpu", "100m", "--", "sh", "-c", "echo go; sleep 1000")
    t.until("go")
    job = latest()
    t.process.kill()
    t.code()
    C.wait_state("jobs", job, "failed")
    assert C.get(f"/v1/jobs/{job}")["status"]["last"][0]["exit"] == 129
    assert "the terminal was disconnected" in C.berth("logs", str(job))


@case
def ctrl_c_cancels_and_a_second_one_leaves_the_job():
    t = Terminal("run", "--cpu", "100m", "--", "sh", "-c", "echo go; sleep 1000")
    t.until("go")
    job = latest()
    t.type("\x03")
    t.until("press Ctrl-C again to leave it running")
    assert t.code() == 130, t.seen
    assert C.get(f"/v1/jobs/{job}")["cancelled"] is True
    for _ in range(10):
        t = Terminal("run", "--cpu", "100m", "--", "sh", "-c", "echo go; sleep 1000")
        t.until("go")
        job = latest()
        # One press after the other: how long it waits for the second is not tested.
        while b"keeps running" not in t.seen:
            t.process.send_signal(signal.SIGINT)
            if not t.read():
                break
        code = t.code()
        if b"keeps running" in t.seen:
            break
        assert C.get(f"/v1/jobs/{job}")["cancelled"] is True, t.seen  # the second press came too late: once more
    assert code == 130 and b"keeps running" in t.seen, (code, t.seen)
    assert C.state("jobs", job) == "running"
    berth("job", "cancel", str(job))


if __name__ == "__main__":
    with Cluster() as C:
        C.node("n1")
        C.node("n2")
        C.run("system", "settings", "notify_allow=https://127.0.0.1")
        main()
