"""Cases of limits_test.sh: a real agent enforces limits of the network, the disk and huge pages with this machine's
kernel."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess

from agent_kit import (AGENT, CGROUP_SKB, GROUPS, Cluster, case, kernel_takes, main, skip_unless, skip_unless_root,
                       wait_for)

POOL = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB")
PAGES = 8


def run(*words):
    return subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)


def print_skip(what):
    print(f"# skip: {what}")


# ---- the network ----

class Line:
    """A network device without a peer: packets to its neighbour are lost."""

    def __init__(self):
        self.name = f"bt{os.getpid() % 100000}"
        self.net = f"10.{96 + os.getpid() % 16}.{os.getpid() // 16 % 250}"

    def __enter__(self):
        done = run("ip", "link", "add", self.name, "type", "veth", "peer", "name", self.name + "x")
        if done.returncode != 0:
            return None
        for words in (("addr", "add", f"{self.net}.1/24", "dev", self.name), ("link", "set", self.name, "up"),
                      ("link", "set", self.name + "x", "up"),
                      ("neigh", "add", f"{self.net}.2", "lladdr", "02:00:00:00:00:02", "dev", self.name)):
            assert run("ip", *words).returncode == 0, words
        return self

    def __exit__(self, *_):
        run("ip", "link", "del", self.name)

    def sends(self, bytes_each, times, pause, stays=600):
        """Returns a program that sends packets."""
        return ["/usr/bin/python3", "-u", "-c",
                f"import socket, time\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                f"for i in range({times}):\n  s.sendto(bytes({bytes_each}), ('{self.net}.2', 9)); time.sleep({pause})\n"
                f"time.sleep({stays})"]

    def queues(self):
        """Returns whether the kernel has the htb queue."""
        able = run("tc", "qdisc", "add", "dev", self.name, "root", "handle", "5:", "htb").returncode == 0
        run("tc", "qdisc", "del", "dev", self.name, "root")
        return able

    def queue(self):
        return run("tc", "qdisc", "show", "dev", self.name).stdout + run("tc", "class", "show", "dev", self.name).stdout


def has_v2():
    return any((pathlib.Path(p) / "cgroup.controllers").exists() for p in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"))


@case
def bandwidth_and_traffic():
    with Line() as line, Cluster() as c:
        if not line or not has_v2():
            return print_skip("no veth, or no cgroup v2")
        can = line.queues() and kernel_takes(CGROUP_SKB)
        agent = c.agent("n1", options=("--uplink", line.name, "--bandwidth", "30M"))
        agent.joining = ["--bandwidth", "30M"]
        agent.join().start()
        assert c.get("/v1/nodes/n1")["allocatable"]["network"] == "30M"
        c.ask("POST", "/v1/resources", {"name": "traffic", "kind": "cumulative", "period": "30d"})
        has = c.get("/v1/nodes/n1")["allocatable"]
        assert c.ask("PATCH", "/v1/nodes/n1", {"allocatable": {**has, "traffic": "1G"}})[0] == 200
        weighed = c.job(line.sends(1000, 4000, 0.001),
                        limits={"network": {"weight": 20}, "network-out": "5M", "traffic": "1G"})
        c.wait_state("jobs", weighed, "running")
        told = c.get(f"/v1/jobs/{weighed}")["status"].get("unenforced", "")
        if not can:
            assert "network" in told, told
            return print_skip("this kernel has no queue htb, or no programs for cgroups")
        assert "network" not in told, told
        assert "htb be: root" in line.queue() and "class htb be:3 parent be:1" in line.queue(), line.queue()
        wait_for("what it sends is told", lambda: "traffic" in c.instances(weighed)[0].get("usage", {}))
        wait_for("its node has consumed it",
                 lambda: c.get("/v1/nodes/n1").get("consumed", {}).get("traffic", "0") != "0")

        # Another agent adopts the traffic class and its counters, and does not count the bytes again.
        agent.process.end()
        agent.start()
        c.berth("job", "cancel", weighed)
        wait_for("the queue goes with it", lambda: "htb" not in line.queue())

        before = c.get("/v1/nodes/n1")["consumed"]["traffic"]
        brief = c.job(line.sends(60000, 200, 0, stays=0), limits={"traffic": "1G"}, retries=0)
        c.wait_state("jobs", brief, "ended")
        wait_for("its last word counts", lambda: c.get("/v1/nodes/n1")["consumed"]["traffic"] != before)

        # Bytes sent while no agent runs count, too, even of an instance that has ended before the next agent starts.
        before, go = c.get("/v1/nodes/n1")["consumed"]["traffic"], c.work / "go"
        late = c.job(["/bin/sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done; exec \"$@\"", "sh",
                      *line.sends(60000, 200, 0, stays=0)], limits={"traffic": "1G"}, retries=0)
        c.wait_state("jobs", late, "running")
        folder = agent.state / "instances" / str(c.instances(late)[0]["id"])
        agent.process.end(signal.SIGKILL)
        go.touch()
        wait_for("it has ended", lambda: (folder / "exit").exists())
        agent.start()
        c.wait_state("jobs", late, "ended")
        wait_for("what it sent counts", lambda: c.get("/v1/nodes/n1")["consumed"]["traffic"] != before)

        spent = c.job(line.sends(1000, 3000, 0), limits={"traffic": "1M"}, retries=0)
        c.wait_state("jobs", spent, "failed")
        assert "traffic limit of 1M" in c.berth("describe", "job", spent), c.berth("describe", "job", spent)
        wait_for("nothing stays", lambda: not agent.instances())
        assert "htb" not in line.queue()


# ---- after a restart of the agent ------------------------------------------------------------------------------------

def memory_bound(agent, instance):
    """Returns the file with the memory limit, or None."""
    found = (pathlib.Path("/sys/fs/cgroup", tree, agent.group, f"i{instance}", name) for tree in GROUPS
             for name in ("memory.max", "memory.limit_in_bytes"))
    return next((file for file in found if file.exists()), None)


@case
def limits_and_settings_outlive_the_agent():
    with Cluster() as c:
        agent = c.node("n1")
        seen = c.work / "seen"
        seen.mkdir()
        seen.chmod(0o777)
        watch = f"while sleep 0.1; do cat $BERTH_SETTINGS >{seen}/new && mv {seen}/new {seen}/now; done"
        app = c.app(name="kept", command=["/bin/sh", "-c", watch], settings={"title": "first"},
                    limits={"memory": "256Mi", "io": "10M", "acme.example/heat": 5})
        wait_for("it runs", lambda: [i for i in c.instances(app) if i["state"] == "running"])
        one = c.instances(app)[0]
        bound = memory_bound(agent, one["id"])
        if bound is None:
            return print_skip("no control group bounds memory")
        assert int(bound.read_text()) == 256 << 20 and "acme.example/heat" in one["unenforced"], one

        def sees(title):
            with contextlib.suppress(OSError):
                return title in (seen / "now").read_text()

        agent.process.end(signal.SIGKILL)
        bound.write_text(str(128 << 20))
        agent.start()
        assert int(bound.read_text()) == 256 << 20
        now = c.instances(app)
        assert [i["id"] for i in now] == [one["id"]] and now[0]["unenforced"] == one["unenforced"], (now, one)

        assert c.ask("PATCH", f"/v1/apps/{app}/settings", {"title": "second"})[0] == 200
        wait_for("other settings are in force", lambda: sees("second"))
        agent.process.end(signal.SIGKILL)
        assert c.ask("PATCH", f"/v1/apps/{app}/settings", {"title": "first"})[0] == 200  # the value at the first start
        agent.start()
        wait_for("so is what came meanwhile", lambda: sees("first"))
        assert [i["id"] for i in c.instances(app)] == [one["id"]]


# ---- the disk and huge pages ----

def fills(size):
    """Returns a program that fills a volume and keeps running."""
    return ["/bin/sh", "-c", f"head -c {size} /dev/zero >/mnt/berth-maps/full; sleep 600"]


def root_of(c):
    """Returns a root folder for containers, or None if there can be none."""
    busybox = shutil.which("busybox")
    if not busybox or not (shutil.which("crun") or shutil.which("runc")):
        return print_skip("there is no busybox, or neither crun nor runc")
    root = c.work / "rootfs"
    (root / "bin").mkdir(parents=True)
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    for folder in (c.work, root, root / "bin"):
        os.chmod(folder, 0o755)
    shutil.copy(busybox, root / "bin/busybox")
    return root


def disk_overuse_is_detected(c, job):
    c.wait_state("jobs", job, "failed")
    told = c.berth("describe", "job", job)
    assert "of storage, its limit is 1Mi" in told, told
    kept = c.job(fills(1000), retries=0, limits={"storage": "1Mi"},
                 mounts=[{"path": "/mnt/berth-maps", "volume": "maps"}])
    wait_for("it is counted", lambda: c.instances(kept) and "storage" in c.instances(kept)[0].get("usage", {}))
    assert "storage" in c.get(f"/v1/jobs/{kept}")["status"]["unenforced"]  # a process could also write elsewhere
    c.berth("job", "cancel", kept)


def usage_is_checked_at_each_count(c):
    """An instance above its limit at one count, but not at the next, keeps running."""
    go = c.work / "less"
    brief = c.job(["/bin/sh", "-c",
                   f"head -c 3000000 /dev/zero >/mnt/berth-maps/more; until [ -e {go} ]; do sleep 0.1; done; "
                   ">/mnt/berth-maps/more; sleep 600"], retries=0, limits={"storage": "1Mi"},
                  mounts=[{"path": "/mnt/berth-maps", "volume": "brief"}])

    def used():
        instances = c.instances(brief)
        return instances[0].get("usage", {}).get("storage", {}).get("used") if instances else None

    wait_for("too much is seen", lambda: used() and used() != "0")
    before = used()
    go.touch()
    wait_for("less is seen", lambda: used() != before)
    assert c.state("jobs", brief) == "running", c.berth("describe", "job", brief)
    c.berth("job", "cancel", brief)


def a_container_has_limits_too(c, root):
    job = c.job(["/bin/busybox", "sh", "-c", "busybox=/bin/busybox; $busybox head -c 50000 /dev/zero >/tmp/x; "
                 "$busybox df $BERTH_HUGEPAGES_2MI; $busybox sleep 600"], rootfs=str(root), runtime="oci",
                requests={"hugepages-2Mi": "2Mi"}, limits={"storage": "1Gi"}, retries=0)
    wait_for("it sees its pages", lambda: "/mnt/hugepages-2Mi" in c.run("logs", job).stdout)
    wait_for("its files are counted", lambda: "storage" in c.instances(job)[0].get("usage", {}))
    assert "storage" not in c.get(f"/v1/jobs/{job}")["status"].get("unenforced", "")
    c.berth("job", "cancel", job)


@contextlib.contextmanager
def pool(pages):
    before = (POOL / "nr_hugepages").read_text() if POOL.exists() else None
    try:
        done = run(AGENT, "hugepages", "2Mi", pages)
        yield int(done.stdout) if done.returncode == 0 else 0
    finally:
        if before is not None:
            (POOL / "nr_hugepages").write_text(before)


TAKES = """
import mmap, os
path = os.environ["BERTH_HUGEPAGES_2MI"]
def take(name, pages):
    try:
        fd = os.open(os.path.join(path, name), os.O_RDWR | os.O_CREAT)
        os.ftruncate(fd, pages << 21)
        m = mmap.mmap(fd, pages << 21)
        for at in range(0, pages << 21, 1 << 21):
            m[at] = 1
        return m
    except OSError as e:
        return None
kept = take("kept", 2)
at = os.statvfs(path)
print(path, at.f_blocks * at.f_frsize, "got", kept is not None, "more", take("more", 1) is not None, flush=True)
import time; time.sleep(1)
"""

# Takes a huge page without a mount, in a job that has requested none.
STEALS = """
import mmap
m = mmap.mmap(-1, 1 << 21, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
m[0] = 1
print("stolen", flush=True)
"""


def has_hugetlb():
    lists = [pathlib.Path(p)
             for p in ("/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers")]
    return pathlib.Path("/sys/fs/cgroup/hugetlb").exists() or any("hugetlb" in p.read_text() for p in lists
                                                                  if p.exists())


@case
def the_disk_and_huge_pages():
    with pool(PAGES) as got:
        if got < PAGES:
            return print_skip("this machine has no huge pages, or no memory for them")
        assert run(AGENT, "hugepages", "2Mi", "x").returncode == 2
        assert run(AGENT, "hugepages", "16Ti", "1").returncode == 1
        with Cluster() as c:
            agent = c.node("n1")
            assert c.get("/v1/nodes/n1")["allocatable"]["hugepages-2Mi"] == "16Mi"
            for volume in ("maps", "brief"):
                status, answer = c.ask("POST", "/v1/volumes", {"id": volume, "type": "local"})
                assert status == 201, answer
            greedy = c.job(fills(3000000), retries=0, limits={"storage": "1Mi"},
                           mounts=[{"path": "/mnt/berth-maps", "volume": "maps"}])
            status, answer = c.ask("POST", "/v1/jobs", {"command": ["/bin/true"], "requests": {"hugepages-2Mi": "2Mi"},
                                                        "limits": {"hugepages-2Mi": "14Mi"}})
            assert status == 400 and "must equal the request" in answer["error"]["message"], answer
            job = c.job(["/usr/bin/python3", "-c", TAKES], requests={"hugepages-2Mi": "4Mi"},
                        limits={"hugepages-2Mi": "4Mi"}, retries=0)
            wait_for("it runs", lambda: "got" in c.run("logs", job).stdout)
            assert f"/mnt/hugepages-2Mi {4 << 20} got True more False" in c.berth("logs", job), c.berth("logs", job)
            thief = c.job(["/usr/bin/python3", "-c", STEALS], retries=0)
            c.wait_state("jobs", thief, "ended", "failed")
            if has_hugetlb():
                assert "Cannot allocate memory" in c.berth("logs", thief), c.berth("logs", thief)
            else:
                print_skip("no control group counts huge pages: nobody is kept from those of others")
            c.wait_state("jobs", job, "ended")
            assert (POOL / "free_hugepages").read_text() == (POOL / "nr_hugepages").read_text()
            root = root_of(c)
            if root:
                a_container_has_limits_too(c, root)
            assert int(run(AGENT, "hugepages", "2Mi", PAGES - 2).stdout) == PAGES - 2
            disk_overuse_is_detected(c, greedy)
            usage_is_checked_at_each_count(c)
            wait_for("nothing is left of them", lambda: not agent.instances())
            assert str(agent.state) not in pathlib.Path("/proc/mounts").read_text()
            wait_for("the smaller pool is told",
                     lambda: c.get("/v1/nodes/n1")["allocatable"]["hugepages-2Mi"] == "12Mi")


skip_unless_root()
skip_unless("ip", "tc")
main()
