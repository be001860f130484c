"""Cases of hostile_jobs_test.sh. Each runs beside a neighbour job that writes a line ten times a second.

After each case the neighbour must be the same process and still run, the node must never have been lost, and nothing of
the hostile job may be left: no process, cgroup, mount, folder or secret.
"""
import base64
import contextlib
import io
import json
import os
import pathlib
import shutil
import stat
import tarfile
import time
import zlib

from agent_kit import AGENT, BERTH, BERTHD, GROUPS, SHIM, Cluster, case, main, skip_unless, skip_unless_root, wait_for

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3")
skip_unless_root()
PIDS = 40
TIGHT = {"pids": PIDS, "memory": "64Mi", "cpu": "500m"}
BOMB = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.05)
"""
HOG = """
import os
while True:
    if os.fork() == 0:
        x = bytearray(400 << 20)
        os._exit(0)
    os.wait()
"""
STUBBORN = "trap '' TERM HUP INT; "
# Three generations of processes that leave their parents' sessions; the first process ends after a second.
HIDE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for depth in range(3):
    if os.fork():
        os._exit(0) if depth else time.sleep(1) or os._exit(0)
    os.setsid()
os.closerange(0, 64)
while True:
    time.sleep(1)
"""
LISTEN = "import socket, time; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); time.sleep(600)"
LEFT = ("f=berth-left-$BERTH_INSTANCE; mkdir -p /tmp/$f/deep; echo x >/tmp/$f/deep/x; echo x >/dev/shm/$f; "
        "echo x >/var/tmp/$f; ipcmk -M 4096 -Q -S 2")


class Beside(Cluster):
    """A daemon, an agent and the neighbour. The end of the context checks the final state."""

    def __enter__(self):
        super().__enter__()
        try:
            # uids that no other test on this machine uses
            self.node("n1", options=["--uid-first", str(10000000 + os.getpid())])
            self.neighbour = self.job(["/bin/sh", "-c", "while :; do echo tick; sleep 0.1; done"], name="neighbour")
            self.wait_state("jobs", self.neighbour, "running")
            (self.instance,) = [int(i["id"]) for i in self.instances()]
            self.uid = os.stat(f"/proc/{self.agent_here.leader()}").st_uid
            return self
        except BaseException as error:
            super().__exit__(type(error), error, None)
            raise

    def __exit__(self, kind, value, trace):
        try:
            if not kind:
                self.held()
        except BaseException as error:
            super().__exit__(type(error), error, None)
            raise
        super().__exit__(kind, value, trace)

    @property
    def agent_here(self):
        return self.agents["n1"]

    def ticks(self):
        folder = self.agent_here.state / "logs" / str(self.instance)
        return sum(file.read_text().count("tick") for file in folder.iterdir())

    def groups(self):
        """Returns the cgroups of instances."""
        return {g.name for c in GROUPS
                for g in pathlib.Path("/sys/fs/cgroup", c, self.agent_here.group).glob("i[0-9]*")}

    def mounts(self):
        return [line for line in pathlib.Path("/proc/mounts").read_text().splitlines()
                if str(self.agent_here.state) in line]

    def alone(self):
        """Returns whether only the neighbour is left."""
        return (self.agent_here.instances() == [self.instance] and len(self.groups()) == 1 and
                all(f"{self.instance}" in line for line in self.mounts()))

    def leftovers(self):
        """Returns files of the owner in shared folders, and its System V IPC objects."""
        files = []
        for entry in (e for folder in ("/tmp", "/var/tmp", "/dev/shm") for e in os.scandir(folder)):
            with contextlib.suppress(FileNotFoundError):  # the file was removed meanwhile
                if entry.stat(follow_symlinks=False).st_uid == self.uid:
                    files.append(entry.path)
        return files + [(kind, line) for kind, column in (("shm", 7), ("sem", 4), ("msg", 7))
                        for line in pathlib.Path("/proc/sysvipc", kind).read_text().splitlines()[1:]
                        if line.split()[column] == str(self.uid)]

    def held(self):
        before = self.ticks()
        wait_for("only the neighbour is left", self.alone)
        wait_for("it goes on", lambda: self.ticks() > before + 3)
        assert [int(i["id"]) for i in self.instances(self.neighbour)] == [self.instance]
        assert not [e for e in self.get("/v1/events")["items"] if e["type"] == "NodeLost"]
        assert self.agent_here.process.process.poll() is None
        self.berth("job", "cancel", self.neighbour)
        wait_for("nothing is left", lambda: not (self.agent_here.instances() or self.groups() or self.mounts() or
                                                 self.agent_here.processes()))
        wait_for("nothing lies about", lambda: not self.leftovers())
        strange = [line for line in self.agent_here.process.log if not line.startswith("time=")]
        assert not strange, strange

    def enforced(self, *resources):
        """Returns whether this kernel enforces limits of these resources; without them the case would harm the
        machine."""
        tame = self.job(["/bin/sleep", "600"], name="tame", limits=TIGHT)
        self.wait_state("jobs", tame, "running")
        time.sleep(1)
        lacking = set(resources) & set(self.get(f"/v1/jobs/{tame}")["status"].get("unenforced", []))
        self.berth("job", "cancel", tame)
        wait_for("it is gone", self.alone)
        if lacking:
            print(f"# skip: this kernel does not hold limits of {sorted(lacking)}")
        return not lacking

    def cancel(self, job):
        self.berth("job", "cancel", job)
        wait_for("nothing of it is left", self.alone)


def has(path, what):
    """Returns whether this is a file with these bytes in it; a file that is removed meanwhile is not."""
    with contextlib.suppress(OSError):
        return path.is_file() and what in path.read_bytes()
    return False


@case
def a_fork_bomb():
    with Beside() as c:
        if not c.enforced("pids"):
            return
        before = c.ticks()
        bomb = c.job(["/usr/bin/python3", "-c", BOMB], limits=TIGHT, stop={"grace": "1s"})
        wait_for("it explodes", lambda: len(c.agent_here.processes()) > PIDS / 2)
        for _ in range(10):
            assert len(c.agent_here.processes()) <= PIDS + 10
            time.sleep(0.2)
        wait_for("the neighbour goes on", lambda: c.ticks() > before + 3)
        c.cancel(bomb)


@case
def a_memory_hog_and_its_children():
    with Beside() as c:
        if not c.enforced("memory"):
            return
        job = c.job(["/usr/bin/python3", "-c", HOG], limits=TIGHT)
        c.wait_state("jobs", job, "running")
        time.sleep(2)
        used = [int(line.split()[1]) for p in c.agent_here.processes() for line in status_of(p)
                if line.startswith("VmRSS")]
        assert sum(used) < 200 << 10, used
        c.cancel(job)
        alone = c.job(["/usr/bin/python3", "-c", "x = bytearray(400 << 20)"], limits=TIGHT, retries=0, name="alone")
        c.wait_state("jobs", alone, "failed")
        assert "memory" in c.berth("describe", "job", alone)


def status_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []


@case
def processes_that_leave_their_session():
    with Beside() as c:
        ends = c.job(["/usr/bin/python3", "-c", HIDE])
        c.wait_state("jobs", ends, "ended")
        wait_for("what hid went with it", c.alone)
        stays = c.job(["/usr/bin/python3", "-c", HIDE.replace("time.sleep(1) or os._exit(0)", "time.sleep(600)")],
                      stop={"grace": "1s"})
        c.wait_state("jobs", stays, "running")
        wait_for("it hides", lambda: len(c.agent_here.processes()) >= 4)
        c.cancel(stays)


@case
def a_flood_of_output():
    with Beside() as c:
        before = c.ticks()
        flood = c.job(["/usr/bin/yes", "x" * 200], log={"size": "64Ki", "files": 2}, limits={"cpu": "500m"})
        c.wait_state("jobs", flood, "running")
        (instance,) = [i["id"] for i in c.instances(flood)]
        folder = c.agent_here.state / "logs" / str(instance)
        wait_for("it has been cut", lambda: (folder / "log.1").exists())
        for _ in range(20):
            sizes = []
            for file in folder.iterdir():
                with contextlib.suppress(FileNotFoundError):  # the file is being renamed
                    sizes.append(file.stat().st_size)
            assert len(sizes) <= 3 and sum(sizes) <= 65536 * 2 + 4096, sizes
            time.sleep(0.1)
        # the last lines, and lines that came while they were read
        tail = c.berth("logs", "--tail", "3", flood).splitlines()
        assert tail and all(set(line) <= {"x"} for line in tail), tail[:5]
        wait_for("the neighbour goes on", lambda: c.ticks() > before + 3)
        c.cancel(flood)


@case
def a_full_tmpfs():
    with Beside() as c:
        fill = c.job(["/bin/sh", "-c",
                      "dd if=/dev/zero of=/scratch/a bs=1M 2>&1; df -k /scratch; echo full; sleep 600"],
                     mounts=[{"path": "/scratch", "tmpfs": "8Mi"}])
        c.wait_state("jobs", fill, "running")
        wait_for("it is full", lambda: "full" in c.berth("logs", fill))
        assert "No space left" in c.berth("logs", fill), c.berth("logs", fill)
        c.cancel(fill)


@case
def a_stopped_job_with_a_secret():
    with Beside() as c:
        c.berth("secret", "set", "key", "value=keep-this-to-yourself")
        job = c.job(["/bin/sh", "-c",
                     STUBBORN + "cat /run/key/value >/dev/null; (" + STUBBORN + "kill -STOP $$; sleep 600) & "
                     "cd /run/key; exec 9</run/key/value; kill -STOP $$; while :; do sleep 1; done"],
                    files=[{"path": "/run/key/value", "secret": "key", "key": "value"}], stop={"grace": "1s"})
        c.wait_state("jobs", job, "running")
        wait_for("it has stopped itself",
                 lambda: any("State:\tT" in "\n".join(status_of(p)) for p in c.agent_here.processes()))
        assert "keep-this" not in "\n".join(c.agent_here.process.log + c.daemon.log)
        c.cancel(job)
        found = [f for f in c.agent_here.state.rglob("*") if has(f, b"keep-this")]
        assert not found, found


@case
def a_fork_storm_through_exec():
    with Beside() as c:
        if not c.enforced("pids"):
            return
        job = c.job(["/bin/sleep", "600"], limits=TIGHT)
        c.wait_state("jobs", job, "running")
        storm = STUBBORN + "for i in $(seq 200); do sleep 600 & done; echo done; wait"
        done = c.run("exec", job, "--", "/bin/sh", "-c", "for i in $(seq 200); do sleep 0.2 & done 2>/dev/null; exit 0")
        assert done.returncode in (0, 2), done
        assert len(c.agent_here.processes()) <= PIDS + 10
        c.run("exec", job, "--", "/bin/sh", "-c", f"({storm}) >/dev/null 2>&1 & exit 0")
        assert c.state("jobs", job) == "running"
        c.cancel(job)


@case
def a_hundred_jobs_that_end_at_once():
    with Beside() as c:
        jobs = [c.job(["/bin/sh", "-c", "exit 0"] if n % 2 else ["/bin/true"], name=f"t{n}") for n in range(100)]
        for job in jobs:
            c.wait_state("jobs", job, "ended")
        wait_for("nothing of them is left", c.alone)


@case
def a_hundred_hostile_jobs():
    kinds = [["/usr/bin/python3", "-c", BOMB], ["/usr/bin/python3", "-c", HOG], ["/usr/bin/python3", "-c", HIDE],
             ["/usr/bin/python3", "-c", LISTEN], ["/usr/bin/yes", "x" * 200],
             ["/bin/sh", "-c", "dd if=/dev/zero of=/scratch/a bs=1M; sleep 600"],
             ["/bin/sh", "-c", STUBBORN + "kill -STOP $$; while :; do sleep 1; done"],
             ["/bin/sh", "-c", f"{LEFT}; exit 1"], ["/bin/sh", "-c", f"{LEFT}; sleep 600"],
             ["/bin/sh", "-c", "unshare -Urm true; mount -t tmpfs none /mnt; chroot /tmp true; kill -9 1; exit 1"]]
    with Beside() as c:
        if not c.enforced("pids", "memory"):
            return
        before = c.ticks()
        jobs = [c.job(kinds[n % len(kinds)], name=f"h{n}", requests={"cpu": "10m", "memory": "16Mi"}, retries=0,
                      stop={"grace": "1s"},
                      limits={"pids": 10, "memory": "24Mi", "cpu": "20m"},
                      mounts=[{"path": "/scratch", "tmpfs": "2Mi"}],
                      log={"size": "64Ki", "files": 2}) for n in range(100)]
        wait_for("all have begun", lambda: all(c.state("jobs", job) != "pending" for job in jobs))
        wait_for("the neighbour goes on", lambda: c.ticks() > before + 3)
        for job in jobs:
            c.run("job", "cancel", job)
        wait_for("nothing of them is left", c.alone)
        assert c.leftovers()  # the neighbour's owner is the same, so its files may stay


# A fake tar that sends one of $ARCHIVES, whatever is requested.
EVIL_TAR = """mkdir $EVIL && cd $EVIL && printf '#!/bin/sh\\ncat $EVIL/$(cat $EVIL/which)\\n' >tar && chmod 755 tar
python3 -c 'import base64, json, os, zlib
for name, data in json.loads(zlib.decompress(base64.b64decode(os.environ["ARCHIVES"]))).items():
    open(name, "wb").write(bytes.fromhex(data))'
ln -s /etc/shadow mine; echo ready; sleep 600"""


def archive(*entries):
    """Returns a tar archive of (name, type, target, text) entries, as a pod's tar could send it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name, kind, target, text in entries:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, target, len(text), 0o6777
            info.devmajor, info.devminor = 1, 3
            made.addfile(info, io.BytesIO(text))
    return out.getvalue()


@case
def copies_out_of_a_pod_stay_in_their_folder():
    """A pod's tar may send anything: no file appears outside the copy, and no link in the copy leads outside. The pod's
    own tar reads no more than the pod's user may."""
    link, hard, plain, folder = tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE, tarfile.DIRTYPE
    with Beside() as c:
        home = c.work / "home"
        (home / "deep").mkdir(parents=True)
        (home / "secret").write_text("kept")
        evil = {
            "dots": archive(("../secret", plain, "", b"evil")),
            "absolute": archive((str(home / "secret"), plain, "", b"evil")),
            "through-a-link": archive(("x", folder, "", b""), ("x/l", link, "../..", b""),
                                      ("x/l/secret", plain, "", b"evil")),
            "links-of-links": archive(("x", folder, "", b""), ("x/d", link, ".", b""),
                                      ("x/l", link, "d/d/../../secret", b"")),
            "itself-a-link": archive(("x", link, "../secret", b"")),
            "beside": archive(("x", link, "deep", b"")),
            "hard-link": archive(("x", folder, "", b""), ("x/l", hard, "../secret", b"")),
            "absolute-link": archive(("x", folder, "", b""), ("x/l", link, str(home / "secret"), b"")),
            "device": archive(("x", folder, "", b""), ("x/null", tarfile.CHRTYPE, "", b""),
                              ("x/fifo", tarfile.FIFOTYPE, "", b"")),
            "set-uid": archive(("x", folder, "", b""), ("x/sh", plain, "", b"#!/bin/sh")),
        }
        where = f"/tmp/berth-evil-{c.work.name}"
        packed = base64.b64encode(
            zlib.compress(json.dumps({name: data.hex() for name, data in evil.items()}).encode())).decode()
        job = c.job(["/bin/sh", "-c", EVIL_TAR],
                    env={"ARCHIVES": packed, "EVIL": where, "PATH": f"{where}:/usr/bin:/bin"}, name="evil")
        wait_for("it is ready", lambda: "ready" in c.run("logs", job).stdout)
        for name in evil:
            c.berth("exec", job, "--", "/bin/sh", "-c", f"echo {name} >{where}/which")
            done = c.run("cp", f"{job}:/tmp/x", home / "deep")
            found = [path for path in home.rglob("*") if path != home / "deep"]
            for path in found:
                mode = path.lstat().st_mode
                assert not stat.S_ISCHR(mode) and not stat.S_ISFIFO(mode) and not mode & 0o6000, (name, path)
                assert (not path.is_symlink() or
                        (home / "deep/x") in (path.resolve(), *path.resolve().parents)), (name, path, os.readlink(path))
            assert (home / "secret").read_text() == "kept", name
            outside = [path for path in found if path.parent == home]
            assert outside == [home / "secret"], (name, outside)
            assert done.returncode or "skipped " in done.stderr or name == "set-uid", (name, done)
            shutil.rmtree(home / "deep/x", ignore_errors=True)
            (home / "deep/x").unlink(missing_ok=True)
        c.berth("exec", job, "--", "rm", f"{where}/tar")
        for path in (f"{where}/mine", "/etc/shadow"):
            done = c.run("cp", f"{job}:{path}", home / "deep")
            left = list((home / "deep").iterdir())
            assert not [one for one in left if one.is_symlink() or one.stat().st_size], (path, done, left)
        c.berth("exec", job, "--", "rm", "-r", where)
        c.run("job", "cancel", job)


# Binds the first available port of a range and listens; prints it, and the error for each port before it.
BIND = """
import errno, socket, sys, time
first, last = int(sys.argv[1]), int(sys.argv[2])
for port in range(first, last + 1):
    s = socket.socket(socket.AF_INET6 if sys.argv[3] == "6" else socket.AF_INET)
    try:
        s.bind(("::" if sys.argv[3] == "6" else "0.0.0.0", port))
        s.listen()
        print("bound", port, flush=True)
        break
    except OSError as error:
        print(errno.errorcode[error.errno], port, flush=True)
time.sleep(600)
"""


@case
def ports_of_other_apps_cannot_be_bound():
    """A job cannot bind a port in the range of an app on its node; a job that had bound one before is reported at
    both."""
    def binds(first, last, kind, name):
        job = c.job(["python3", "-c", BIND, str(first), str(last), kind], name=name)
        return job, wait_for(f"{name} has said something", lambda: c.run("logs", job).stdout.splitlines())

    def described(kind, ident, *parts):
        def look():
            text = c.berth("describe", kind, ident)
            return all(any("PortConflict" in line and part in line for line in text.splitlines()) for part in parts)
        wait_for(f"describe {kind} {ident} tells of {parts}", look)
    with Beside() as c:
        early, lines = binds(10002, 10015, "6", "early")  # the first app will get 10000 to 10015, which are still free
        held = lines[-1].split()[1]
        assert lines[-1] == f"bound {held}", lines
        app = c.app(name="web",
                    command=["python3", "-c", "import http.server, os; http.server.test(port=int(os.environ['PORT']))"],
                    endpoints=[{"name": "http"}], health={"tcp": {"endpoint": "http"}, "every": "500ms"})
        wait_for("it is ready", lambda: [i for i in c.instances(app) if i.get("ready")])
        (instance,) = c.instances(app)
        assert 10000 <= instance["ports"][0]["port"] <= 10015, instance
        jobs = []
        for kind in "46":
            job, _ = binds(10000, 10015, kind, f"late-{kind}")
            jobs.append(job)
            lines = wait_for("it has tried all", lambda which=job: c.run("logs", which).stdout.splitlines()[15:] and
                             c.run("logs", which).stdout.splitlines())
            assert lines == [f"EPERM {port}" for port in range(10000, 10016)], lines
        free, lines = binds(33000, 33999, "4", "free")
        assert lines[-1].startswith("bound "), lines
        described("job", early, f"port {held}, which is reserved for another app")
        for job in jobs:
            described("job", job, "port 10015, which is reserved for another app")
        described("app", app, "port 10015, which is reserved for this one",
                  f"port {held}, which is reserved for this one")
        assert "PortConflict" not in c.berth("describe", "job", free) and "web" not in c.berth("describe", "job", early)
        c.agent_here.process.end()  # the next agent reserves the same ports
        c.agent_here.start()
        job, lines = binds(10000, 10000, "4", "later")
        assert lines == ["EPERM 10000"], lines
        for job in (early, free, job, *jobs):
            c.run("job", "cancel", job)
        c.berth("app", "rm", app)
        wait_for("it is gone", c.alone)


@case
def control_characters_anywhere():
    with Beside() as c:
        evil = "a\x1b[31m\r\nlevel=error event=forged \x07\x7f"
        for keys in ({"name": evil}, {"env": {"A\nB": "1"}}, {"workdir": "/tmp\x00"}, {"name": "x\x00y"}):
            status, answer = c.ask("POST", "/v1/jobs", {"name": "t", "command": ["/bin/true"], **keys})
            assert status in (201, 400), (keys, answer)
        job = c.job(["/bin/sh", "-c", 'printf %s "$1" | od -An -tx1', "sh", evil], env={"EVIL": evil})
        c.wait_state("jobs", job, "ended")
        seen = bytes.fromhex("".join(c.berth("logs", job).split())).decode()
        assert seen == evil, seen
        missing = c.job([f"/no/such/{evil}"], retries=0, name="missing")
        c.wait_state("jobs", missing, "failed")
        for words in (("get", "jobs"), ("describe", "job", missing), ("events",), ("status",)):
            assert not set("\x1b\x07\x7f\r") & set(c.berth(*words)), words
        for line in c.agent_here.process.log + c.daemon.log:
            assert line.startswith("time=") and "\x1b" not in line, line


main()
