"""Cases of agent_test.sh: real processes under a real agent, controlled by a real daemon."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

from agent_kit import (AGENT, BERTH, BERTHD, PATIENCE, SHIM, Cluster, Process, case, main, skip_unless,
                       skip_unless_root, status_of, wait_for)

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3")
skip_unless_root()
WEB = ["/bin/sh", "-c", 'exec python3 -m http.server --bind 127.0.0.1 "$PORT"']


def environ(pid):
    return dict(v.split("=", 1) for v in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0") if v)


# Prints the state of the seccomp filter, and the results of making a user namespace and a mount.
NARROWED = "p=; [ -x /bin/busybox ] && p=busybox; $p grep ^Seccomp: /proc/self/status; "\
           "$p unshare -U true 2>/dev/null; u=$?; $p mount -t tmpfs none /tmp 2>/dev/null; echo $u $(($? > 0))"


@case
def system_calls_are_filtered():
    with Cluster() as c:
        c.node("n1")
        job = c.job(["/bin/sh", "-c", f"{NARROWED}; sleep 60"], retries=0)
        c.wait_state("jobs", job, "running")
        wait_for("it has spoken", lambda: c.berth("logs", job).startswith("Seccomp:\t2\n1 1"))
        assert c.berth("exec", job, "--", "/bin/sh", "-c", NARROWED).startswith("Seccomp:\t2\n1 1")
        c.berth("delete", "job", job)
        c.berth("node", "drain", "n1")
        c.node("n2", options=["--all-syscalls"])
        free = c.job(["/bin/sh", "-c", "grep ^Seccomp: /proc/self/status"], retries=0)
        c.wait_state("jobs", free, "ended")
        assert "Seccomp:\t0" in c.berth("logs", free)


@case
def a_job_runs_and_ends():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sh", "-c", "echo hello; echo oops >&2; exit 0"])
        c.wait_state("jobs", job, "ended")
        assert "hello" in c.berth("logs", job) and "oops" in c.berth("logs", job)
        wait_for("nothing of it is left", lambda: not agent.instances() and not agent.processes())


@case
def a_job_that_fails_says_so():
    with Cluster() as c:
        c.node("n1")
        job = c.job(["/bin/sh", "-c", "echo it hurts; exit 7"], retries=0)
        c.wait_state("jobs", job, "failed")
        assert "exit code 7" in c.berth("describe", "job", job)
        missing = c.job(["/no/such/program"], retries=0)
        c.wait_state("jobs", missing, "failed")
        assert "no such" in c.berth("describe", "job", missing).lower()


@case
def arguments_and_environment_byte_for_byte():
    words = ["a b", "", "\"'$HOME`id`;|&\n", "ünïcode", "-x", "*"]
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/usr/bin/python3", "-c", "import time; time.sleep(600)", *words],
                    env={"QUOTE": "a\"b'c\nd", "EMPTY": ""})
        c.wait_state("jobs", job, "running")
        pid = next(p for p in agent.processes() if b"python3" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes())
        argv = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
        assert argv[3:] == words, argv
        env = environ(pid)
        assert env["QUOTE"] == "a\"b'c\nd" and env["EMPTY"] == "" and "BERTH_TOKEN" not in env, env
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1" in status, status
        uid = int(next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1])
        assert uid >= 300000, uid
        # python itself opens files for a moment while it starts
        wait_for("no inherited descriptor", lambda: len(os.listdir(f"/proc/{pid}/fd")) <= 4)
        assert os.getsid(pid) == pid


@case
def a_service_with_two_replicas_on_one_node():
    with Cluster() as c:
        agent = c.node("n1")
        app = c.app(name="web", command=WEB, replicas=2, endpoints=[{"name": "http"}],
                    health={"tcp": {"endpoint": "http"}, "every": "1s", "timeout": "500ms"})
        wait_for("two are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 2)
        ports = {p["port"] for i in c.instances(app) for p in i["ports"]}
        assert len(ports) == 2 and all(10000 <= p < 32768 for p in ports), ports
        for port in ports:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE).read()
        url = c.berth("url", app).strip()
        assert any(url.endswith(f":{p}") or f":{p}/" in url for p in ports), (url, ports)
        c.berth("app", "scale", app, "1")
        wait_for("one is left", lambda: len(c.instances(app)) == 1 and len(agent.instances()) == 1)
        watcher = Process([BERTH, "get", "apps", "--watch"], c.berth_env())
        try:
            wait_for("it is watched", lambda: watcher.out and watcher.out[-1].startswith(app))
            c.berth("app", "stop", app)
            wait_for("none is left", lambda: not agent.processes() and not agent.instances())
            wait_for("whoever watches sees it stopped", lambda: watcher.out[-1].split()[:2] == [app, "stopped"])
        finally:
            watcher.end()


def pid_namespaces(pids):
    return {os.readlink(f"/proc/{pid}/ns/pid") for pid in pids}


@case
def a_workload_has_its_own_pid_namespace():
    """Instances of one workload share a pid namespace on a node, whichever agent started them. They see no other
    processes, not even other workloads of their owner."""
    count = "for p in /proc/[0-9]*; do echo $p; done | wc -l"
    with Cluster() as c:
        agent = c.node("n1")
        app = c.app(name="pair", command=["/bin/sleep", "600"], replicas=2)
        wait_for("two run", lambda: len(agent.processes()) == 2)
        pair = agent.processes()
        assert len(pid_namespaces(pair)) == 1 and not pid_namespaces(pair) & pid_namespaces(["self"])
        job = c.job(["/bin/sh", "-c", f"echo number $$; {count}; sleep 600"])
        c.wait_state("jobs", job, "running")
        wait_for("it has counted", lambda: len(c.berth("logs", job).split()) == 3)
        assert int(c.berth("logs", job).split()[1]) < 10 and int(c.berth("logs", job).split()[2]) <= 3
        assert c.berth("exec", job, "--", "/bin/sh", "-c", count).strip() in ("4", "5")
        agent.process.end(signal.SIGKILL)
        agent.start()
        c.berth("app", "scale", app, "3")
        wait_for("three run", lambda: len(c.instances(app)) == 3 and len(agent.processes()) >= 5)
        assert len(pid_namespaces(agent.processes())) == 2
        folder = agent.state / "pid-namespaces"
        assert len(list(folder.iterdir())) == 2
        c.berth("app", "stop", app)
        c.berth("delete", "job", job)
        wait_for("nothing is left", lambda: not agent.processes() and not list(folder.iterdir()))


@case
def instances_survive_a_kill_of_the_agent():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sh", "-c", "echo begin; exec sleep 600"])
        c.wait_state("jobs", job, "running")
        before = agent.processes()
        for signo in (signal.SIGKILL, signal.SIGTERM):
            agent.process.end(signo)
            assert agent.processes() == before
            agent.start()
            time.sleep(1)
            assert agent.processes() == before, "started again, or lost"
        assert c.state("jobs", job) == "running"
        assert c.berth("logs", job).count("begin") == 1
        # An end while no agent runs is reported later.
        go = c.work / "go"
        short = c.job(["/bin/sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done"])
        c.wait_state("jobs", short, "running")
        agent.process.end(signal.SIGKILL)
        go.touch()
        wait_for("it has ended", lambda: len(agent.processes()) == len(before))
        agent.start()
        c.wait_state("jobs", short, "ended")


@case
def instances_survive_a_kill_of_the_daemon():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sleep", "600"])
        c.wait_state("jobs", job, "running")
        before = agent.processes()
        c.daemon.end(signal.SIGKILL)
        time.sleep(3)
        assert agent.processes() == before
        c.start()
        wait_for("it is heard again", lambda: c.state("jobs", job) == "running")
        again = c.job(["/bin/true"])
        c.wait_state("jobs", again, "ended")
        assert agent.processes() == before


class Watched:
    """A `berth` whose output goes to files."""

    def __init__(self, c, *words):
        self.out, self.err = (c.work / f"{words[0]}.{end}" for end in ("out", "err"))
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen([str(BERTH), *map(str, words)], env=c.berth_env(), stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=err)

    def lines(self):
        return self.out.read_text().splitlines()

    def told(self, words):
        return self.err.read_text().count(words)


COUNTS = "i=0; while :; do echo line $i; i=$((i+1)); sleep 0.02; done"


@case
def logs_are_followed_over_restarts_of_daemon_and_agent():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sh", "-c", COUNTS], retries=0)
        c.wait_state("jobs", job, "running")
        logs = Watched(c, "logs", "-f", job)
        wait_for("lines come", lambda: len(logs.lines()) > 20)
        for told, how in enumerate((signal.SIGKILL, signal.SIGTERM), 1):
            c.daemon.end(how)
            wait_for("it says so", lambda: logs.told("reconnecting") == told)
            c.start()
            before = len(logs.lines())
            wait_for("lines come again", lambda: len(logs.lines()) > before + 20 or logs.process.poll() is not None)
            assert logs.process.poll() is None, logs.err.read_text()
        agent.process.end(signal.SIGKILL)
        before = len(logs.lines())
        agent.start()
        wait_for("lines come again", lambda: len(logs.lines()) > before + 20 or logs.process.poll() is not None)
        c.berth("job", "cancel", job)
        assert logs.process.wait(PATIENCE) == 0, logs.err.read_text()
        assert logs.lines() == [f"line {i}" for i in range(len(logs.lines()))], logs.lines()
        assert logs.told("reconnecting") <= 3, logs.err.read_text()


@case
def a_missing_log_after_a_restart_is_reported():
    with Cluster() as c:
        c.node("n1")
        job = c.job(["/bin/sh", "-c", COUNTS], retries=0)
        c.wait_state("jobs", job, "running")
        logs = Watched(c, "logs", "-f", job)
        wait_for("lines come", lambda: len(logs.lines()) > 20)
        logs.process.send_signal(signal.SIGSTOP)
        c.daemon.end(signal.SIGKILL)
        c.start()
        c.berth("delete", "job", job)
        wait_for("it is gone", lambda: c.ask("GET", f"/v1/jobs/{job}")[0] == 404 and not c.instances())
        logs.process.send_signal(signal.SIGCONT)
        assert logs.process.wait(PATIENCE) == 4, logs.err.read_text()
        assert logs.told("no instance") == 1, logs.err.read_text()


@case
def waiting_for_a_migration_survives_a_restart_of_the_daemon():
    slow = "sleep 4; " + WEB[2]
    with Cluster() as c:
        c.node("n1"), c.node("n2")
        app = c.app(name="web", command=["/bin/sh", "-c", slow], endpoints=[{"name": "http"}],
                    health={"tcp": {"endpoint": "http"}, "every": "500ms"})
        wait_for("it is ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        here = c.instances(app)[0]["node"]
        moved = Watched(c, "migrate", f"{app}/0", "--wait")
        wait_for("it starts there", lambda: moved.told("starting") == 1)
        c.daemon.end(signal.SIGKILL)
        wait_for("it says so", lambda: moved.told("reconnecting") or moved.process.poll() is not None)
        assert moved.process.poll() is None, moved.err.read_text()
        c.start()
        assert moved.process.wait(PATIENCE) == 0, moved.err.read_text()
        assert moved.lines()[-1] == f"{app}/0 moved", moved.lines()
        assert moved.told("reconnecting") == 1, moved.err.read_text()
        assert [i["node"] for i in c.instances(app) if i["state"] == "running"] != [here]


@case
def instances_that_ignore_sigterm_are_killed_with_double_forks():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sh", "-c",
                     "trap '' TERM; (setsid sleep 600 &) ; (setsid setsid sleep 601 &); while :; do sleep 1; done"],
                    stop={"grace": "1s"})
        c.wait_state("jobs", job, "running")
        wait_for("all of it runs", lambda: len(agent.processes()) >= 4)
        c.berth("job", "cancel", job)
        wait_for("all of it is gone", lambda: not agent.processes() and not agent.instances())


@case
def exec_signal_and_progress():
    with Cluster() as c:
        c.node("n1")
        job = c.job(["/bin/sh", "-c", "trap 'echo got HUP; echo 50% half >&$BERTH_PROGRESS_FD' HUP; "
                                      "echo '250/1000 a quarter' >&$BERTH_PROGRESS_FD; while :; do sleep 0.2; done"],
                    env={"COLOUR": "blue"})
        c.wait_state("jobs", job, "running")
        assert c.berth("exec", job, "--", "/bin/sh", "-c",
                       "echo $COLOUR; id -u").split() == ["blue", str(uid_of(c, job))]
        done = c.run("exec", job, "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 5")
        assert (done.returncode, done.stdout, done.stderr.splitlines()[0]) == (5, "out\n", "err"), done
        assert c.run("exec", "-i", job, "--", "/bin/cat", stdin="to and fro\n").stdout == "to and fro\n"
        wait_for("progress shows", lambda: c.get(f"/v1/jobs/{job}")["status"].get("progress") == 250)
        c.berth("signal", job, "HUP")
        wait_for("the signal came", lambda: "got HUP" in c.berth("logs", job))
        wait_for("so does what it says later", lambda: c.get(f"/v1/jobs/{job}")["status"].get("progress") == 500)


@case
def slow_or_unread_sessions_do_not_delay_others():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sleep", "600"])
        c.wait_state("jobs", job, "running")
        before = agent.processes()
        # Sends more than a pipe holds to a program that never reads.
        deaf = c.start_berth("exec", "-i", job, "--", "/bin/sleep", "600", stdin="x" * 1000000)
        wait_for("it runs", lambda: len(agent.processes()) > len(before))
        # The command has written everything and nobody reads it: the agent must wait without using CPU.
        mute = c.start_berth("exec", job, "--", "/usr/bin/head", "-c", "8000000", "/dev/zero", read=False)
        time.sleep(1)
        c.wait_state("jobs", c.job(["/bin/true"]), "ended")
        assert "no program" in c.run("exec", job, "--", "no-such-program").stderr
        begin, ticks = time.monotonic(), cpu_ticks(agent.process.pid)
        time.sleep(2)
        ticks = cpu_ticks(agent.process.pid) - ticks
        assert ticks < (time.monotonic() - begin) * os.sysconf("SC_CLK_TCK") / 2, "the agent is busy with nothing"
        for process in (deaf, mute):
            process.kill()
            process.wait()
        wait_for("both are gone", lambda: agent.processes() == before)


def cpu_ticks(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


@case
def a_health_check_may_print():
    with Cluster() as c:
        c.node("n1")
        app = c.app(name="calm", command=["/bin/sleep", "600"],
                    health={"exec": ["/bin/sh", "-c", "head -c 200000 /dev/zero && echo fine"], "every": "1s",
                            "timeout": "900ms"})
        wait_for("it is ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)


def uid_of(c, job):
    (agent,) = c.agents.values()
    return os.stat(f"/proc/{agent.leader()}").st_uid


@case
def limits_are_enforced():
    with Cluster() as c:
        c.node("n1")
        hog = c.job(["/usr/bin/python3", "-c", "x = bytearray(400 << 20); import time; time.sleep(600)"],
                    resources={"memory": "64Mi"}, limits={"memory": "64Mi"}, retries=0)
        def seen():
            status = c.get(f"/v1/jobs/{hog}")["status"]
            return status if status["state"] == "failed" or "memory" in status.get("unenforced", []) else None
        if wait_for("the limit shows", seen)["state"] == "failed":
            assert "memory" in c.berth("describe", "job", hog)
            assert c.get(f"/v1/jobs/{hog}")["status"]["outcome"] == "out-of-memory"
            assert "out-of-memory" in c.berth("jobs", "--over"), c.berth("jobs", "--over")
        bomb = c.job(["/bin/sh", "-c", "for i in $(seq 200); do sleep 600 & done; wait"], limits={"pids": 30},
                     retries=0)
        (agent,) = c.agents.values()
        wait_for("it has begun", lambda: len(agent.processes()) >= 20 or c.state("jobs", bomb) != "pending")
        time.sleep(1)
        assert len(agent.processes()) <= 40
        assert c.job(["/bin/true"])


@case
def settings_files_and_secrets():
    with Cluster() as c:
        agent = c.node("n1")
        c.berth("secret", "set", "db", "password=hunter2-and-more")
        app = c.app(name="reader",
                    command=["/bin/sh", "-c", 'while :; do cat "$BERTH_SETTINGS" /etc/reader.conf; echo; '
                             'cat /run/secret/db | wc -c; sleep 0.3; done'],
                    settings={"title": "first"}, settings_schema={"title": {"type": "text"}},
                    install={"hidden": "installed"}, files=[{"path": "/etc/reader.conf", "text": "conf-text"},
                                                            {"path": "/run/secret/db", "secret": "db",
                                                             "key": "password"}])
        wait_for("it runs", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        wait_for("it reads",
                 lambda: (log := c.berth("logs", app)) and "first" in log and "conf-text" in log
                 and "16" in log.split())
        c.ask("PATCH", f"/v1/apps/{app}/settings", {"title": "second"})
        wait_for("it reads the change", lambda: "second" in c.berth("logs", app))
        assert "installed" not in c.berth("logs", app)
        for pid in agent.processes():
            with contextlib.suppress(OSError):  # some processes exist for a moment only
                assert b"hunter2" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
        assert "hunter2" not in "\n".join(agent.process.log + c.daemon.log)
        c.berth("app", "rm", app)
        wait_for("all is gone", lambda: not agent.instances() and str(agent.state) not in
                 pathlib.Path("/proc/mounts").read_text())


@case
def containers():
    busybox = shutil.which("busybox")
    if not busybox or not (shutil.which("crun") or shutil.which("runc")):
        print("# skip: there is no busybox, or neither crun nor runc")
        return
    with Cluster() as c:
        agent = c.node("n1")
        root = c.work / "rootfs"
        (root / "bin").mkdir(parents=True)
        os.chmod(c.work, 0o755)
        for folder in (root, root / "bin"):
            os.chmod(folder, 0o755)
        shutil.copy(busybox, root / "bin/busybox")
        (root / "bin/sh").symlink_to("busybox")
        job = c.job(["/bin/sh", "-c",
                     'PATH=/bin; busybox echo "pid $$ uid $(busybox id -u)"; busybox cat /etc/note; busybox ls /; '
                                      'busybox touch /scratch/here && echo wrote; echo 1/2 half >&$BERTH_PROGRESS_FD; '
                                      'until [ -e /scratch/go ]; do busybox sleep 0.1; done'],
                    rootfs=str(root), runtime="oci", files=[{"path": "/etc/note", "text": "a note\n"}],
                    limits={"memory": "64Mi"}, retries=0, mounts=[{"path": "/scratch", "tmpfs": "1Mi"}])
        c.wait_state("jobs", job, "running")
        assert "inside" in c.berth("exec", job, "--", "/bin/sh", "-c", "echo inside")
        assert c.berth("exec", job, "--", "/bin/busybox", "sh", "-c", NARROWED).startswith("Seccomp:\t2\n1 1")
        c.berth("exec", job, "--", "/bin/busybox", "touch", "/scratch/go")
        c.wait_state("jobs", job, "ended")
        log = c.berth("logs", job)
        assert "pid 1 uid 3000" in log and "a note" in log and "wrote" in log and "scratch" in log, log
        assert not (root / "here").exists()
        wait_for("nothing is left", lambda: not agent.instances() and not agent.processes() and str(agent.state) not in
                 pathlib.Path("/proc/mounts").read_text())
        failed = c.job(["/bin/true"], image="localhost:1/no/such:image", retries=0)
        c.wait_state("jobs", failed, "failed")
        assert "no/such" in c.berth("describe", "job", failed)


def oci_image(folder, user):
    """Makes an image layout with busybox that runs as this user; returns its name, or None if it cannot be made."""
    if not shutil.which("busybox") or not shutil.which("umoci") or not (shutil.which("crun") or shutil.which("runc")):
        print("# skip: there is no busybox, no umoci, or neither crun nor runc")
        return None
    source = pathlib.Path(os.environ["BERTH_SOURCE"])
    subprocess.run([source / "examples/containers.sh", folder], check=True, capture_output=True)
    subprocess.run(["umoci", "config", "--image", f"{folder}:1", "--config.user", user], check=True,
                   capture_output=True)
    return f"oci:{folder}:1"


def first_process(agent):
    """Returns /proc status of the first process of the only container, as the node sees it."""
    (ident,) = agent.instances()
    return status_of(int((agent.state / "instances" / str(ident) / "shim").read_text().split()[2]))


@case
def containers_in_user_namespaces():
    with Cluster() as c:
        image = oci_image(c.work / "image", "33:34")
        if not image:
            return
        agent = c.node("n1")
        if any("container.no-userns" in line for line in agent.process.log):
            print("# skip: no user namespaces here:", *[l for l in agent.process.log if "no-userns" in l])
            return
        c.berth("secret", "set", "db", "password=hunter2")
        c.berth("apply", "-f", "-", stdin="kind: volume\nid: kept\ntype: local\n")
        loop = (
            'id -u; echo mine >/data/mine; cat /run/secret/db; echo; while :; do cat "$BERTH_SETTINGS" >/dev/stdout; '
                'sleep 0.3; done')
        app = c.app(name="boxed", image=image, command=["/bin/sh", "-c", loop], stop={"grace": "1s"},
                    settings={"title": "first"}, settings_schema={"title": {"type": "text"}},
                    mounts=[{"path": "/data", "volume": "kept"}],
                    files=[{"path": "/run/secret/db", "secret": "db", "key": "password"}])
        wait_for("it runs", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        wait_for("it reads", lambda: "first" in c.berth("logs", app))
        assert c.berth("logs", app).startswith("33\nhunter2\n"), c.berth("logs", app)
        owner = (agent.state / "volumes/kept").stat().st_uid  # the container's user is mapped to the owner
        assert owner >= 300000 and (agent.state / "volumes/kept/mine").stat().st_uid == owner
        uid = int(first_process(agent)["Uid"][0])
        assert uid >= 0x70000000 and uid % 65536 == 33, uid
        assert c.berth("exec", f"{app}/0", "--", "/bin/id", "-u").split() == ["33"]
        # The next agent has user namespaces switched off, and still serves the container that it adopts.
        agent.process.end(signal.SIGKILL)
        agent.options = ["--no-user-namespaces"]
        agent.start()
        c.ask("PATCH", f"/v1/apps/{app}/settings", {"title": "second"})
        wait_for("it reads the change", lambda: "second" in c.berth("logs", app))
        assert c.berth("exec", f"{app}/0", "--", "/bin/id", "-u").split() == ["33"]
        job = c.job(["/bin/sh", "-c", "id -u; cat /data/mine"], image=image, retries=0,
                    mounts=[{"path": "/data", "volume": "kept"}])
        c.wait_state("jobs", job, "ended")
        assert c.berth("logs", job).split() == [str(owner), "mine"], c.berth("logs", job)
        # A workload can switch them off, too.
        agent.process.end(signal.SIGKILL)
        agent.options = []
        agent.start()
        for keys, uid in ({}, 33), ({"run_as": "owner"}, owner):
            job = c.job(["/bin/id", "-u"], image=image, retries=0, **keys)
            c.wait_state("jobs", job, "ended")
            assert c.berth("logs", job).split() == [str(uid)], c.berth("logs", job)
        c.berth("app", "rm", app)
        wait_for("all is gone", lambda: not agent.instances() and not agent.processes() and
                 not list((agent.state / "roots").iterdir()) and
                 str(agent.state) not in pathlib.Path("/proc/mounts").read_text())


@case
def root_of_a_container_is_not_root():
    with Cluster() as c:
        image = oci_image(c.work / "image", "")
        if not image:
            return
        agent = c.node("n1")
        if any("container.no-userns" in line for line in agent.process.log):
            print("# skip: no user namespaces here")
            return
        closed = c.work / "closed"
        closed.mkdir()
        (closed / "secret").write_text("the node's")
        (closed / "secret").chmod(0o600)
        script = ('PATH=/bin; id -u; touch /etc/x && chown 5:6 /etc/x && stat -c %u:%g /etc/x; cat /host/secret; '
                  'touch /host/x; chown 0 /host; mount -t tmpfs x /tmp; unshare -U true; mknod /tmp/d c 1 1; '
                  'echo 1 >/proc/sys/kernel/panic; echo x >/sys/power/state; kill -9 $PPID; sleep 600')
        job = c.job(["/bin/sh", "-c", script], image=image, retries=0, stop={"grace": "1s"},
                    mounts=[{"path": "/host", "bind": str(closed)}])
        c.wait_state("jobs", job, "running")
        wait_for("it has tried", lambda: "/sys/power/state" in c.berth("logs", job))
        log = c.berth("logs", job).splitlines()
        assert log[:2] == ["0", "5:6"], log
        assert "the node's" not in "\n".join(log) and sum("denied" in l or "not permitted" in l or "Read-only" in l or
                                                         "an't" in l for l in log[2:]) >= 6, log
        assert list(closed.iterdir()) == [closed / "secret"] and closed.stat().st_uid == 0
        status = first_process(agent)
        assert int(status["Uid"][0]) in range(300000, 400000) and status["NoNewPrivs"] == ["1"], status
        # The container's files belong to uids that are used nowhere else, and are still removed.
        (ident,) = agent.instances()
        file = (agent.state / "instances" / str(ident) / "bundle/upper/etc/x").stat()
        assert (file.st_uid % 65536, file.st_gid % 65536) == (5, 6) and file.st_uid >= 0x70000000, file
        c.berth("delete", "job", job)
        wait_for("all is gone", lambda: not agent.instances() and not agent.processes() and
                 not list((agent.state / "roots").iterdir()) and
                 str(agent.state) not in pathlib.Path("/proc/mounts").read_text())


@case
def ports_by_socket_and_exclusive_resources():
    listener = ("import os, socket, time; fds = int(os.environ['LISTEN_FDS']); "
                "assert int(os.environ['LISTEN_PID']) == os.getpid(); "
                "s = socket.socket(fileno=3); print(os.environ['LISTEN_FDNAMES'], s.getsockname()[1], "
                "os.environ['BERTH_EXCLUSIVE_ACME_EXAMPLE_ARM'], flush=True)\n"
                "while True:\n  c, _ = s.accept(); c.sendall(b'hi'); c.close()")
    with Cluster() as c:
        agent = c.node("n1")
        app = c.app(name="robot", command=["/usr/bin/python3", "-c", listener], replicas=2,
                    endpoints=[{"name": "door", "listen": "socket"}], exclusive={"acme.example/arm": ["left", "right"]})
        wait_for("two are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 2)
        taken = sorted(i["exclusive"]["acme.example/arm"] for i in c.instances(app))
        assert taken == ["left", "right"], taken
        agent.process.end(signal.SIGKILL)  # the next agent knows which devices are taken
        agent.start()
        c.berth("app", "scale", app, "3")
        wait_for("a third has no arm", lambda: "already allocated" in c.berth("events"))
        # the third instance is started again and again
        ports = {p["port"] for i in c.instances(app) if i.get("ready") for p in i["ports"]}
        assert len(ports) == 2, ports
        for port in ports:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s:
                assert s.recv(2) == b"hi"


@case
def a_resource_named_tcp_is_not_a_port():
    with Cluster() as c:
        c.node("n1")
        greedy = c.app(name="greedy", command=["/bin/sleep", "600"], replicas=2,
                       endpoints=[{"name": "a", "await": False}],
                       exclusive={"tcp": [str(10000 + i) for i in range(16)]})
        wait_for("both run", lambda: c.get(f"/v1/apps/{greedy}")["status"]["ready"] == 2)
        taken = sorted(i["exclusive"]["tcp"] for i in c.instances(greedy))
        assert taken == ["10000", "10001"], taken


@case
def without_a_health_check_an_app_is_ready_when_its_port_accepts():
    slow = 'until [ -e "$OPEN" ]; do sleep 0.05; done; ' + WEB[2]
    with Cluster() as c:
        agent = c.node("n1")
        flag = c.work / "open"
        env = {"OPEN": str(flag)}
        app = c.app(name="web", command=["/bin/sh", "-c", slow], env=env, endpoints=[{"name": "http"}])
        eager = c.app(name="eager", command=["/bin/sleep", "600"], endpoints=[{"name": "http", "await": False}])
        plain = c.app(name="plain", command=["/bin/sleep", "600"])
        other = c.app(name="other", command=["/bin/sleep", "600"], endpoints=[{"name": "dns", "protocol": "udp"}])
        for name in (eager, plain, other):
            wait_for(f"{name} is ready", lambda name=name: c.get(f"/v1/apps/{name}")["status"]["ready"] == 1)

        def why():
            return " ".join(c.berth("why", app).split())
        wait_for("why says so", lambda: "(http) does not accept connections: tcp: Connection refused" in why())
        assert c.get(f"/v1/apps/{app}")["status"]["ready"] == 0
        agent.process.end(signal.SIGKILL)
        agent.start()
        wait_for("the next agent finds it out, too", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 0)
        flag.touch()
        wait_for("it is ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        assert "does not accept" not in why()
        status, _ = c.ask("PATCH", f"/v1/apps/{app}", {"endpoints": [{"name": "http", "await": 1}]})
        assert status == 400, status


@case
def files_are_copied_and_pods_migrate():
    with Cluster() as c:
        one, two = c.node("n1"), c.node("n2")
        app = c.app(name="web", command=WEB, endpoints=[{"name": "http"}],
                    health={"tcp": {"endpoint": "http"}, "every": "500ms"})
        wait_for("it is ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        sent, back = c.work / "sent", c.work / "back"
        sent.write_bytes(bytes(range(256)) * 4096)
        c.berth("cp", sent, f"{app}/0:copied")
        c.berth("cp", f"{app}/0:copied", back)
        assert back.read_bytes() == sent.read_bytes()
        here = c.instances(app)[0]["node"]
        there = "n2" if here == "n1" else "n1"
        c.berth("migrate", f"{app}/0", "--to", there, "--wait")
        wait_for("it is there alone", lambda: [i["node"] for i in c.instances(app)] == [there])
        agents = {"n1": one, "n2": two}
        wait_for("and nothing is left here", lambda: not agents[here].processes() and agents[there].processes())


@case
def a_dead_address_is_skipped():
    with Cluster() as c:
        agent = c.agent("n1").join()
        path = agent.state / "identity/node.json"
        doc = json.loads(path.read_text())
        doc["control"].insert(0, "https://127.0.0.1:1")
        path.write_text(json.dumps(doc))
        agent.start()
        job = c.job(["/bin/true"])
        c.wait_state("jobs", job, "ended")


@case
def a_drained_node_is_released():
    with Cluster() as c:
        one, two = c.node("n1"), c.node("n2")
        # Waits for readiness: both nodes are this machine, so a port that is not bound yet is free for the other.
        app = c.app(name="web", command=WEB, replicas=2, endpoints=[{"name": "http"}],
                    health={"tcp": {"endpoint": "http"}, "every": "500ms"})
        wait_for("two are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 2)
        c.berth("node", "drain", "n1")
        wait_for("n1 is empty", lambda: not one.instances() and not one.processes())
        wait_for("both are on n2", lambda: {i["node"] for i in c.instances(app)} == {"n2"} and
                 c.get(f"/v1/apps/{app}")["status"]["ready"] == 2)
        c.berth("node", "rm", "n1")
        assert c.ask("GET", "/v1/nodes/n1")[0] == 404
        assert two.instances()


main()
