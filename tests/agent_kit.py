"""A real cluster for tests: one berthd and real agents, each with a folder and a cgroup of its own. Standard library
only.

Processes, cgroups, mounts and folders that a test makes are removed however the test ends.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

from ports import free_ports

BUILD = pathlib.Path(os.environ["BERTH_BUILD"])
BERTH, BERTHD = BUILD / "src/cli/berth", BUILD / "src/berthd/berthd"
AGENT, SHIM = BUILD / "src/agent/berth-agent", BUILD / "src/shim/berth-shim"
# Seconds until an expected event counts as missing; no speed is tested here.
PATIENCE = int(os.environ.get("BERTH_PATIENCE", "60"))
CRASHES = {-signal.SIGILL, -signal.SIGABRT, -signal.SIGBUS, -signal.SIGFPE, -signal.SIGSEGV}
GROUPS = ["cpu", "cpuacct", "memory", "pids", "blkio", "freezer", "hugetlb", "unified", "",
          "cpuset", "devices", "systemd"]  # the last ones are used by container runtimes


def skip_unless(*programs):
    for program in programs:
        if not (os.access(program, os.X_OK) if "/" in str(program) else shutil.which(program)):
            print(f"skip: there is no {program}")
            sys.exit(77)


def skip_unless_root():
    if os.geteuid() != 0:
        print("skip: needs root, for cgroups, users and mounts")
        sys.exit(77)


BPF_CALLS = {"x86_64": 321, "aarch64": 280}
CGROUP_SKB, CGROUP_DEVICE = 8, 15


def kernel_takes(kind):
    """Returns whether the kernel accepts BPF programs of this kind for cgroup v2, without using the tested code."""
    if not any(pathlib.Path("/sys/fs/cgroup", tree, "cgroup.controllers").exists() for tree in ("", "unified")):
        return False
    passes = ctypes.create_string_buffer(struct.pack("<BBhi", 0xb7, 0, 0, 1) + struct.pack("<BBhi", 0x95, 0, 0, 0))
    license_ = ctypes.create_string_buffer(b"MIT")
    asked = ctypes.create_string_buffer(
        struct.pack("<IIQQ", kind, 2, ctypes.addressof(passes), ctypes.addressof(license_)), 120)
    fd = ctypes.CDLL(None, use_errno=True).syscall(BPF_CALLS[os.uname().machine], 5, asked, 120)
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def wait_for(what, check, patience=PATIENCE):
    """Waits until check() returns a true value, and returns it."""
    end = time.monotonic() + patience
    last = None
    while time.monotonic() < end:
        last = check()
        if last:
            return last
        time.sleep(0.05)
    raise AssertionError(f"never: {what}")


class Process:
    """A program in the background. Its output is kept; ready() waits for its line 'ready ...'."""

    started = []  # all processes, with those that a case has replaced

    def __init__(self, words, env=None):
        Process.started.append(self)
        self.words, self.log, self.out = [str(w) for w in words], [], []
        self.process = subprocess.Popen(self.words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **(env or {})), start_new_session=True)
        for pipe, into in ((self.process.stdout, self.out), (self.process.stderr, self.log)):
            threading.Thread(target=self.read, args=(pipe, into), daemon=True).start()

    @staticmethod
    def read(pipe, into):
        for line in pipe:
            into.append(line.rstrip("\n"))

    @property
    def pid(self):
        return self.process.pid

    def ready(self):
        def look():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.words} ended with {self.process.returncode}: {self.log[-20:]}")
            return [line for line in self.out if line.startswith("ready ")]
        return wait_for(f"{self.words[0]} is ready", look)[0].split()[1]

    def kill(self, signo=signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signo)

    def end(self, signo=signal.SIGTERM):
        self.kill(signo)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.wait()


def print_crashes():
    """Prints the programs that a crash signal ended: tools/test fails a test that prints such a line and does not retry
    it."""
    for one in Process.started:
        if one.process.poll() in CRASHES:
            print(f"# crash: {one.words[0]} ended with {one.process.returncode}: {one.log[-3:]}", flush=True)


class Agent:
    """One agent. Its state folder and its cgroup stay when it is stopped and started again."""

    def __init__(self, cluster, name, prefix=(), options=()):
        self.cluster, self.name, self.prefix, self.options = cluster, name, list(prefix), list(options)
        self.state = cluster.work / f"agent-{name}"
        self.group = f"berth-test-{os.getpid()}-{name}"
        self.process, self.joining = None, []
        self.program, self.shim = AGENT, SHIM

    def join(self, line=None):
        line = line or self.cluster.berth("node", "add", self.name).strip()
        words = line.split()
        assert words[0] == "echo" and words[2:5] == ["|", "berth-agent", "join"], line
        done = subprocess.run([*self.prefix, str(self.program), "join", *words[5:], "--state", str(self.state),
                               *self.joining],
                              input=words[1], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return self

    def start(self, ready=True):
        self.process = Process([*self.prefix, self.program, "--state", self.state, "--cgroup", self.group, "--shim",
                                self.shim, "--heartbeat", "500", *self.options])
        if ready:
            self.process.ready()
        return self

    def instances(self):
        """Returns the instances that have a folder on this agent."""
        folder = self.state / "instances"
        return sorted(int(f.name) for f in folder.iterdir() if f.name.isdigit()) if folder.is_dir() else []

    def processes(self):
        """Returns the pids of all processes in this agent's cgroups."""
        while True:
            with contextlib.suppress(FileNotFoundError):  # a cgroup was removed during the search
                return self.look()

    def leader(self):
        """Returns the first process of an instance, which leads a session. Its children are in the same session or
        begin another."""
        def find():
            for pid in self.processes():
                with contextlib.suppress(OSError):
                    if os.getsid(pid) == pid:
                        return pid
            return None
        return wait_for("a first process", find)

    def look(self):
        found = set()
        for controller in GROUPS:
            root = pathlib.Path("/sys/fs/cgroup", controller, self.group)
            for procs in [*root.glob("[io]*/**/cgroup.procs"), *root.glob("mps-*/cgroup.procs")]:
                with contextlib.suppress(OSError):
                    found.update(int(n) for n in procs.read_text().split())
        return sorted(found)

    def clear(self):
        if self.process:
            self.process.end(signal.SIGKILL)
        for _ in range(100):
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not self.processes():
                break
            time.sleep(0.05)
        subprocess.run(["pkill", "-KILL", "-f", str(self.state)], check=False)
        time.sleep(0.1)
        for controller in GROUPS:
            root = pathlib.Path("/sys/fs/cgroup", controller, self.group)
            for folder in sorted(root.glob("**/"), key=lambda f: -len(f.parts)) if root.is_dir() else []:
                with contextlib.suppress(OSError):
                    folder.rmdir()
        for line in reversed(pathlib.Path("/proc/self/mounts").read_text().splitlines()):
            if line.split()[1].startswith(str(self.state)):
                subprocess.run(["umount", "-l", line.split()[1]], check=False)


class Cluster:
    """A daemon in a folder of its own, and its agents. After a restart it has the same addresses."""

    def __init__(self, options=(), agents_address=None, prefix=()):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-"))
        os.chmod(self.work, 0o711)  # owners reach their homes below it, as in /var/lib
        self.listen, own = (f"127.0.0.1:{port}" for port in free_ports(2))
        self.options, self.agents_address, self.prefix = list(options), agents_address or own, list(prefix)
        self.agents = {}
        self.daemon = None
        self.guard = subprocess.Popen([sys.executable, __file__, str(self.work), f"berth-test-{os.getpid()}-"],
                                      stdin=subprocess.PIPE, start_new_session=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, value, trace):
        if kind:
            for name, process in [("berthd", self.daemon)] + [(a.name, a.process) for a in self.agents.values()]:
                for line in process.log[-30:] if process else []:
                    print(f"# {name}: {line}")
        for agent in self.agents.values():
            agent.clear()
        if self.daemon:
            self.daemon.end(signal.SIGKILL)
        shutil.rmtree(self.work, ignore_errors=True)
        self.guard.stdin.close()
        self.guard.wait()

    def start(self):
        self.daemon = Process([*self.prefix, BERTHD, "--data", self.work / "data", "--init", "--token-file",
                               self.work / "token", "--listen", self.listen, "--agents", self.agents_address,
                               *self.options])
        self.url = self.daemon.ready()
        self.token = (self.work / "token").read_text().strip()
        return self

    def agent(self, name, prefix=(), options=()):
        self.agents[name] = Agent(self, name, prefix, options)
        return self.agents[name]

    def node(self, name, prefix=(), options=()):
        """Makes a new agent that has joined and is ready."""
        return self.agent(name, prefix, options).join().start()

    def berth_env(self):
        return dict(os.environ, BERTH_SERVER=self.url, BERTH_TOKEN=self.token, NO_COLOR="1",
                    BERTH_CONFIG=str(self.work / "config"))

    def run(self, *words, stdin=None, timeout=PATIENCE):
        return subprocess.run([str(BERTH), *map(str, words)], capture_output=True, text=True, env=self.berth_env(),
                              timeout=timeout, input=stdin if stdin is not None else "")

    def start_berth(self, *words, stdin="", read=True):
        """Starts berth without waiting, with this text as standard input. Its output is dropped, or with read=False
        never read."""
        given = self.work / f"stdin-{len(list(self.work.glob('stdin-*')))}"
        given.write_text(stdin)
        with given.open() as text:
            return subprocess.Popen([str(BERTH), *map(str, words)], stdin=text, env=self.berth_env(),
                                    stdout=subprocess.DEVNULL if read else subprocess.PIPE, stderr=subprocess.DEVNULL)

    def berth(self, *words, stdin=None):
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"berth {words}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def ask(self, method, path, body=None, token=None):
        """Returns (status, decoded answer)."""
        request = urllib.request.Request(self.url + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": f"Bearer {token or self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def get(self, path):
        status, answer = self.ask("GET", path)
        assert status == 200, f"{path}: {status} {answer}"
        return answer

    def app(self, **keys):
        status, answer = self.ask("POST", "/v1/apps", keys)
        assert status == 201, answer
        return answer["id"]

    def job(self, command, **keys):
        status, answer = self.ask("POST", "/v1/jobs", {"name": "t", "command": command, **keys})
        assert status == 201, answer
        return answer["id"]

    def state(self, kind, ident):
        return self.get(f"/v1/{kind}/{ident}")["status"]["state"]

    def wait_state(self, kind, ident, *states):
        return wait_for(f"{kind}/{ident} is {states}", lambda: self.state(kind, ident) in states and
                        self.get(f"/v1/{kind}/{ident}"))

    def instances(self, workload=None):
        query = f"?workload={workload}" if workload else ""
        return self.get(f"/v1/instances{query}")["items"]


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


def net_sandbox_of(agent):
    """Returns the pid of this agent's net sandbox, or None."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[:2] == [b"berth-agent",
                             b"network"] and int(status_of(folder.name)["PPid"][0]) == agent.process.pid:
                return int(folder.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return None


def clear_after(work, groups):
    """Runs as a process of its own; the end of its standard input tells it that the test is over. Then it removes what
    the test could not."""
    sys.stdin.read()
    for folder in work.glob("agent-*"):
        agent = Agent.__new__(Agent)
        agent.state, agent.group, agent.process = folder, groups + folder.name.split("-", 1)[1], None
        agent.clear()
    if work.is_dir():
        subprocess.run(["pkill", "-KILL", "-f", "--", f"--data {work}/"], check=False)
        time.sleep(0.1)
        shutil.rmtree(work, ignore_errors=True)


CASES = []


def case(function):
    CASES.append(function)
    return function


def main():
    """Runs every case, or the cases whose names contain an argument; prints TAP."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # run the clean-up
    wanted = [c for c in CASES if len(sys.argv) < 2 or any(word in c.__name__ for word in sys.argv[1:])]
    failed = 0
    for number, function in enumerate(wanted, 1):
        begin = time.monotonic()
        try:
            function()
            print(f"ok {number} - {function.__name__} # {time.monotonic() - begin:.1f} s", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {function.__name__}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)
    print(f"1..{len(wanted)}")
    print_crashes()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    clear_after(pathlib.Path(sys.argv[1]), sys.argv[2])
