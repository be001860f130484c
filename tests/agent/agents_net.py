"""Agents in network namespaces of their own, for agents_test.py and agents_check.py.

There is a namespace with a bridge, one for each agent, and one for the test and the daemon (made by agents_test.sh).
Both ends of every link are in these. The namespaces have no names: each exists as long as the process that holds it,
which ends with the test in any case.
"""
import os
import signal
import subprocess

from agent_kit import Cluster, wait_for

DAEMON = "10.77.0.1"
LEASE_S, FENCE_S = 3, 5


def tool(*words, inside=None):
    prefix = ["nsenter", f"--net=/proc/{inside}/ns/net"] if inside else []
    subprocess.run([*prefix, *map(str, words)], check=True, capture_output=True, text=True, timeout=30)


class Holder:
    """A network namespace. It exists until the test closes this process's standard input."""

    def __init__(self):
        self.process = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        mine = os.readlink("/proc/self/ns/net")
        wait_for("a namespace", lambda: os.readlink(f"/proc/{self.process.pid}/ns/net") != mine)
        tool("ip", "link", "set", "lo", "up", inside=self.pid)

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Net:
    """The bridge, and the hosts connected to it."""

    def __init__(self):
        self.bridge, self.hosts = Holder(), {}
        tool("ip", "link", "add", "br0", "type", "bridge", inside=self.bridge.pid)
        tool("ip", "link", "set", "br0", "up", inside=self.bridge.pid)
        tool("ip", "link", "set", "lo", "up")
        self.plug("daemon", os.getpid(), DAEMON)

    def plug(self, port, pid, address):
        tool("ip", "link", "add", port, "type", "veth", "peer", "name", "berth0", "netns", pid, inside=self.bridge.pid)
        tool("ip", "link", "set", port, "master", "br0", "up", inside=self.bridge.pid)
        tool("ip", "address", "add", f"{address}/24", "dev", "berth0", inside=pid)
        tool("ip", "link", "set", "berth0", "up", inside=pid)

    def host(self, name):
        """Makes a host; returns the command prefix that runs a program in it."""
        holder = Holder()
        address = f"10.77.0.{len(self.hosts) + 2}"
        self.hosts[name] = (holder, address)
        self.plug(name, holder.pid, address)
        return ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]

    def cut(self, name):
        """Cuts the link in both directions."""
        tool("ip", "link", "set", name, "down", inside=self.bridge.pid)

    def mute(self, name):
        """Drops everything from the host to the daemon, by a link-layer address that nobody has."""
        tool("ip", "neigh", "replace", DAEMON, "lladdr", "02:00:00:00:00:99", "dev", "berth0", "nud", "permanent",
             inside=self.hosts[name][0].pid)

    def deafen(self, name):
        """Drops everything from the daemon to the host."""
        tool("ip", "neigh", "replace", self.hosts[name][1], "lladdr", "02:00:00:00:00:99", "dev", "berth0", "nud",
             "permanent")

    def heal(self, name):
        holder, address = self.hosts[name]
        tool("ip", "link", "set", name, "up", inside=self.bridge.pid)
        for to, inside in ((DAEMON, holder.pid), (address, os.getpid())):
            subprocess.run(["nsenter", f"--net=/proc/{inside}/ns/net", "ip", "neigh", "del", to, "dev", "berth0"],
                           check=False, capture_output=True)

    def end(self):
        for holder, _ in self.hosts.values():
            holder.end()
        self.bridge.end()
        subprocess.run(["ip", "link", "del", "berth0"], check=False, capture_output=True)


class NetCluster(Cluster):
    """A daemon and `count` agents, each behind its own link."""

    def __init__(self, count, options=(), prefix=(), agent_prefix=(), lease=LEASE_S):
        self.net = Net()
        super().__init__(["--lease", str(lease), *options], f"{DAEMON}:3981", prefix)
        self.count, self.agent_prefix = count, list(agent_prefix)
        self.work.chmod(0o711)
        self.shared = self.work / "shared"
        self.shared.mkdir()
        self.shared.chmod(0o777)
        for file in ("diary", "lock"):
            (self.shared / file).touch()
            (self.shared / file).chmod(0o666)

    def __enter__(self):
        try:
            self.start()
            for i in range(self.count):
                name = f"n{i + 1}"
                agent = self.agent(name, [*self.net.host(name), *self.agent_prefix])
                agent.join()
                agent.start(ready=False)
            for agent in self.agents.values():
                agent.process.ready()
            return self
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise

    def __exit__(self, kind, value, trace):
        for agent in self.agents.values():  # waiting for a paused process would never end
            if agent.process:
                agent.process.kill(signal.SIGCONT)
        self.daemon.kill(signal.SIGCONT)
        super().__exit__(kind, value, trace)
        self.net.end()

    def diary(self):
        return [line.split() for line in (self.shared / "diary").read_text().splitlines()]

    def node_state(self, name):
        return self.get(f"/v1/nodes/{name}")["state"]

    def wait_node(self, name, *states):
        wait_for(f"{name} is {states}", lambda: self.node_state(name) in states)

    def wait_all(self):
        for name in self.agents:
            self.wait_node(name, "ready")

    def lost_ever(self):
        return [e for e in self.get("/v1/events")["items"] if e["type"] == "NodeLost"]

    def sole(self, fence=FENCE_S, **keys):
        """Submits a job that may run once at a time; it writes to the diary if two of it run."""
        return self.job(["/usr/bin/python3", "-c", SOLE, str(self.shared)], on_lost="fence", fence=f"{fence}s", **keys)

    def place_of(self, work):
        """Returns (node, instance) of the running instance."""
        found = [(i["node"], i["id"]) for i in self.instances(work) if i["state"] == "running"]
        return found[0] if len(found) == 1 else None

    def instance_of(self, work, but=None):
        return wait_for(f"{work} runs", lambda: (p := self.place_of(work)) and p[1] != but and p)


# Ignores SIGTERM and has a child in another session. The lock is released when both have ended.
SOLE = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
lock = open(sys.argv[1] + "/lock", "a")
diary = os.open(sys.argv[1] + "/diary", os.O_WRONLY | os.O_APPEND)
who = os.environ["BERTH_INSTANCE"] + " " + os.environ["BERTH_NODE"] + "\\n"
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(diary, ("begin " + who).encode())
except BlockingIOError:
    os.write(diary, ("overlap " + who).encode())
if os.fork() == 0:
    os.setsid()
time.sleep(600)
"""


CLOCK = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static const volatile int64_t *ahead_s;
__attribute__((constructor)) static void find(void)
{
    int fd = open(getenv("CLOCK_AHEAD"), O_RDONLY | O_CLOEXEC);
    void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead_s, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        abort();
    ahead_s = at;
    close(fd);
}
int clock_gettime(clockid_t clock, struct timespec *t)
{
    long rc = syscall(SYS_clock_gettime, clock, t);
    if (rc == 0 && ahead_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        t->tv_sec += *ahead_s;
    return (int)rc;
}
time_t time(time_t *ret)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (ret)
        *ret = t.tv_sec;
    return t.tv_sec;
}
int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec t;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    ret->tv_sec = t.tv_sec;
    ret->tv_usec = t.tv_nsec / 1000;
    return 0;
}
"""


class Clock:
    """A wall clock for one program and its children that can be set without changing the machine's."""

    def __init__(self, folder, name):
        self.file, library = folder / f"clock-{name}", folder / "clock.so"
        self.file.write_bytes(bytes(8))
        if not library.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), "-xc", "-"], input=CLOCK, text=True,
                           check=True)
        checks = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        self.prefix = ["env", f"LD_PRELOAD={library}", f"CLOCK_AHEAD={self.file}", f"ASAN_OPTIONS={checks}"]

    def set(self, seconds):
        with open(self.file, "r+b") as f:
            f.write(int(seconds).to_bytes(8, "little", signed=True))


def fence_round(c, job, how, kill=None):
    """Loses one connection: waits until the job runs on a node, disconnects the node, and waits until the job runs on
    another node, and only there.

    `how`: the method of Net for the node's link (None: the link stays); `kill`: the signal that its agent gets.
    """
    node, instance = c.instance_of(job)
    agent = c.agents[node]
    wait_for("it has begun", lambda: ["begin", str(instance), node] in c.diary())
    if how:
        getattr(c.net, how)(node)
    if kill:
        agent.process.kill(kill)
    elsewhere, following = c.instance_of(job, but=instance)
    assert elsewhere != node, (node, elsewhere)
    wait_for("the next has begun", lambda: str(following) in [line[1] for line in c.diary()])
    assert not [line for line in c.diary() if line[0] == "overlap"], (how, kill, c.diary())
    assert not agent.processes(), "its machine has not stopped it"
    if how:
        c.net.heal(node)
    if kill == signal.SIGKILL:
        agent.process.end(signal.SIGKILL)
        agent.start(ready=False)
    elif kill:
        agent.process.kill(signal.SIGCONT)
    c.wait_node(node, "ready")
    wait_for("nothing of it is left", lambda: not agent.instances() and not agent.processes())
    assert c.place_of(job) == (elsewhere, following)
