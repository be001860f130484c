"""Cases of gpu_test.sh: GPUs of a real agent and a real daemon. A fake driver library reads the GPUs' state from a
file."""
import contextlib
import os
import pathlib
import shutil
import signal
import tempfile

from agent_kit import (BUILD, CGROUP_DEVICE, GROUPS, Cluster, case, kernel_takes, main, skip_unless, skip_unless_root,
                       wait_for)

FAKE = BUILD / "tests/nvml_fake.so"
MIB = 1 << 20
SLEEP = ["sleep", "1000"]


class World:
    """The state that the fake library reports. Agents find the file by an environment variable."""

    def __init__(self):
        self.file = pathlib.Path(tempfile.mkdtemp(prefix="berth-gpu-")) / "world"
        os.environ["BERTH_NVML"], os.environ["BERTH_NVML_WORLD"] = str(FAKE), str(self.file)
        self.lines = {}

    def put(self):
        fresh = self.file.with_suffix(".new")
        fresh.write_text("".join(line + "\n" for line in self.lines.values()))
        fresh.rename(self.file)
        return self

    def gpu(self, uuid, minor, **keys):
        words = {"model": "NVIDIA_H200", "memory": 1000, **keys}
        self.lines[uuid] = f"gpu uuid={uuid} minor={minor} " + " ".join(f"{k}={v}" for k, v in words.items())
        return self.put()

    def part(self, uuid, of, **keys):
        self.lines[uuid] = f"part uuid={uuid} of={of} " + " ".join(f"{k}={v}" for k, v in keys.items())
        return self.put()

    def process(self, on, pid, memory, busy=0):
        self.lines[pid] = f"process on={on} pid={pid} memory={memory} busy={busy}"
        return self.put()

    def driver(self, trouble=None):
        """Sets a failure of the whole driver; None: no failure."""
        self.lines.pop("driver", None)
        if trouble:
            self.lines["driver"] = trouble
        return self.put()

    def close(self):
        self.file.unlink(missing_ok=True)
        self.file.parent.rmdir()
        del os.environ["BERTH_NVML"], os.environ["BERTH_NVML_WORLD"]


@contextlib.contextmanager
def cluster(gpus=2):
    with contextlib.closing(World()) as world:
        for i in range(gpus):
            world.gpu(f"GPU-{i}", i)
        world.lines["link"] = "link a=GPU-0 b=GPU-1 level=nvlink"
        world.put()
        with Cluster() as c:
            yield world, c, c.node("n1")


def environ(agent, instance):
    """Returns the environment of the instance's first process."""
    def look():
        for pid in group(agent, instance):
            text = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            found = dict(t.decode().split("=", 1) for t in text if b"=" in t)
            if "BERTH_INSTANCE" in found:
                return found
        return None
    return wait_for("it runs", look)


def group_files(agent, name, *files):
    """Returns the files of one of the agent's cgroups, in all hierarchies; with cgroup v2 alone there is no folder
    above it."""
    found = (pathlib.Path("/sys/fs/cgroup", tree, agent.group, name, file) for tree in GROUPS for file in files)
    return [path for path in found if path.exists()]


def group(agent, instance):
    pids = set()
    for procs in group_files(agent, f"i{instance}", "cgroup.procs"):
        with contextlib.suppress(OSError):
            pids.update(int(n) for n in procs.read_text().split())
    return sorted(pids)


def running(c, job):
    return wait_for(f"{job} runs", lambda: [i for i in c.instances(job) if i["state"] == "running"])[0]


@case
def gpus_are_detected_and_assigned_by_uuid():
    with cluster() as (_, c, n1):
        node = c.get("/v1/nodes/n1")
        assert [g["uuid"] for g in node["gpus"]] == ["GPU-0", "GPU-1"], node["gpus"]
        assert node["gpus"][0] == {"uuid": "GPU-0", "model": "NVIDIA H200", "memory": "1000Mi"}, node["gpus"]
        probed = node["probed"]["gpus"][1]
        assert (probed["minor"], probed["links"], node["probed"]["gpu_driver"]) == (1, {"GPU-0": "nvlink"}, "1.0"), node
        whole = running(c, c.job(SLEEP, gpu=1))
        other = running(c, c.job(SLEEP, gpu=1))
        assert whole["gpus"] != other["gpus"], (whole, other)
        for i in (whole, other):
            env = environ(n1, i["id"])
            want = ",".join(f"GPU-{n}" for n in i["gpus"])
            assert env["CUDA_VISIBLE_DEVICES"] == env["NVIDIA_VISIBLE_DEVICES"] == want, env
        none = environ(n1, running(c, c.job(SLEEP))["id"])
        assert (none["CUDA_VISIBLE_DEVICES"], none["NVIDIA_VISIBLE_DEVICES"]) == ("", "void"), none
        waits = c.job(SLEEP, gpu=1)
        assert c.state("jobs", waits) in ("pending", "queued"), c.state("jobs", waits)


def device(agent, name, major, minor):
    node = agent.state / "homes" / name
    os.mknod(node, 0o20666, os.makedev(major, minor))
    node.chmod(0o666)
    return node


def opened(c, nodes, **keys):
    """Returns the errno values that a job with these keys gets when it opens each node: 1 if the device is forbidden, 6
    if it is allowed, since no driver is behind it."""
    script = ("import os,sys\nfor path in sys.argv[1:]:\n"
              " try: os.open(path, os.O_RDONLY)\n"
              " except OSError as e: print('device', e.errno, flush=True)\n")
    job = c.job(["python3", "-c", script, *map(str, nodes)], env={"CUDA_VISIBLE_DEVICES": "all"}, retries=0, **keys)
    c.wait_state("jobs", job, "ended")
    return c.instances(job)[0], [int(line.split()[1]) for line in c.berth("logs", job).splitlines() if "device" in line]


@case
def gpus_of_others_cannot_be_opened():
    with cluster() as (_, c, n1):
        # the library does not report one of them
        nodes = [device(n1, f"nvidia{minor}", 195, minor) for minor in (0, 1, 2, 255)]
        one, got = opened(c, nodes, gpu=1)
        if not kernel_takes(CGROUP_DEVICE):
            assert "gpu" in one["unenforced"], one
            print("# skip: this kernel takes no rules for devices")
            return
        assert "gpu" not in one.get("unenforced", []), one
        assert got == [6 if one["gpus"] == [minor] else 1 for minor in (0, 1, 2)] + [6], (one, got)
        assert opened(c, nodes)[1] == [1, 1, 1, 6]


def sees_none(c, n1, nodes):
    i, got = opened(c, nodes)
    env = environ(n1, running(c, c.job(SLEEP))["id"])
    assert (env.get("CUDA_VISIBLE_DEVICES"), env.get("NVIDIA_VISIBLE_DEVICES")) == ("", "void"), env
    if kernel_takes(CGROUP_DEVICE):
        assert got == [1, 1], (i, got)


@case
def a_driver_that_fails_provides_no_gpus():
    with cluster() as (world, c, n1):
        nodes = [device(n1, f"nvidia{minor}", 195, minor) for minor in (0, 1)]
        world.driver("miscounts 18")
        wait_for("all are told to be unwell", lambda: all(
            "unhealthy" in g for g in c.get("/v1/nodes/n1")["probed"]["gpus"])
                 and c.get("/v1/nodes/n1")["probed"]["gpus"])
        told = [k for k in c.get("/v1/nodes/n1")["status"]["conditions"] if k["type"] == "GpuFailed"]
        assert len(told) == 1 and "does not report the number" in told[0]["text"], told
        sees_none(c, n1, nodes)
        n1.process.end(signal.SIGKILL)  # the next agent has never seen a GPU
        n1.start()
        sees_none(c, n1, nodes)
        waits = c.job(SLEEP, gpu=1)
        world.driver()
        running(c, waits)


@case
def a_hanging_driver_delays_nothing():
    with cluster() as (world, c, n1):
        nodes = [device(n1, f"nvidia{minor}", 195, minor) for minor in (0, 1)]
        first = running(c, c.job(SLEEP, gpu=1))
        world.driver("hangs forever")
        assert n1.process.end() == 0, n1.process.log
        n1.start()
        wait_for("it is adopted", lambda: any("instance.adopted" in line for line in n1.process.log))
        sees_none(c, n1, nodes)
        assert running(c, first["workload"])["id"] == first["id"]
        assert n1.process.end() == 0, n1.process.log
        n1.start()
        waits = c.job(SLEEP, gpu=1)
        world.driver()
        running(c, waits)


@case
def a_lost_gpu_gets_no_new_jobs():
    with cluster() as (world, c, _):
        first = running(c, c.job(SLEEP, gpu=1))
        lost = f"GPU-{first['gpus'][0]}"
        world.gpu(lost, first["gpus"][0], lost=15)
        node = wait_for("it is told", lambda: any(
            "unhealthy" in g for g in c.get("/v1/nodes/n1")["probed"]["gpus"]) and c.get("/v1/nodes/n1"))
        wait_for("people are told", lambda: any(
            k["type"] == "GpuFailed" and lost in k["text"] for k in c.get("/v1/nodes/n1")["status"]["conditions"]))
        assert len(node["gpus"]) == 2, node
        second = running(c, c.job(SLEEP, gpu=1))
        assert second["gpus"] != first["gpus"], (first, second)
        assert running(c, first["workload"])["id"] == first["id"]  # the instance that has the GPU keeps it
        c.berth("job", "cancel", first["workload"])
        wait_for("it is gone", lambda: not c.instances(first["workload"]))
        third = c.job(SLEEP, gpu=1)
        wait_for("the daemon has planned", lambda: "GPU" in c.run("why", third).stdout)
        assert not [i for i in c.instances(third) if i["state"] != "reserved"], c.instances(third)
        world.gpu(lost, first["gpus"][0])
        assert running(c, third)["gpus"] == first["gpus"]


@case
def gpu_usage_is_reported_and_overuse_is_ended():
    with cluster(1) as (world, c, n1):
        good = running(c, c.job(SLEEP, gpu=0.5))
        # a second run would not exceed its share
        bad = running(c, c.job(SLEEP, gpu={"share": 0.4, "memory": "300Mi"}, retries=0))
        assert bad["unenforced"] == ["gpu-memory"], bad
        for i, memory in ((good, 400), (bad, 250)):
            world.process("GPU-0", group(n1, i["id"])[-1], memory, 30)
        wait_for("use is told", lambda: c.get(f"/v1/instances/{bad['id']}").get(
            "usage", {}).get("gpu-memory", {}).get("used") == "250Mi")
        wait_for("and of the other", lambda: c.get(f"/v1/instances/{good['id']}").get("usage", {}).get(
            "gpu-milli", {}).get("used") in (300, "300"))
        world.process("GPU-0", group(n1, bad["id"])[-1], 500, 30)
        wait_for("that it is over", lambda: c.state("jobs", bad["workload"]) == "failed" or
                 "gpu-memory" in c.get(f"/v1/instances/{bad['id']}").get("over", []))
        text = wait_for("it is ended", lambda: [
            e["message"] for e in c.get("/v1/events")["items"] if "of a GPU's memory" in e["message"]])[0]
        assert "killed: used 500Mi" in text and "its share is 300Mi" in text, text
        assert running(c, good["workload"])["id"] == good["id"]


@case
def overuse_of_an_unhealthy_gpu_is_ended():
    with cluster(1) as (world, c, n1):
        good, bad = (running(c, c.job(SLEEP, gpu=0.5)),
                     running(c, c.job(SLEEP, gpu={"share": 0.4, "memory": "300Mi"}, retries=0)))
        world.gpu("GPU-0", 0, ecc=1)
        world.process("GPU-0", group(n1, good["id"])[-1], 400)
        world.process("GPU-0", group(n1, bad["id"])[-1], 500)
        c.wait_state("jobs", bad["workload"], "failed")
        assert "its share is 300Mi" in c.berth("describe", "job", bad["workload"])
        assert running(c, good["workload"])["id"] == good["id"]


# Runs a program with two GPUs in /dev, the first of which has two MIG parts.
WITH_FILES = ["unshare", "--mount", "sh", "-ec", """
dev=$(mktemp -d)
mount -t tmpfs -o mode=755 dev "$dev"
for file in null zero full random urandom tty ptmx; do cp -a /dev/$file "$dev"; done
mkdir "$dev/pts" "$dev/shm" "$dev/mqueue"
mount --rbind /dev/pts "$dev/pts"
mknod -m 666 "$dev/nvidia0" c 195 0
mknod -m 666 "$dev/nvidia1" c 195 1
mknod -m 666 "$dev/nvidiactl" c 195 255
mkdir "$dev/nvidia-caps"
for cap in 2 11 12 21 22; do mknod -m 444 "$dev/nvidia-caps/nvidia-cap$cap" c 240 $cap; done
mount -t tmpfs -o mode=755 caps /proc/driver
for part in 1 2; do
    mkdir -p /proc/driver/nvidia/capabilities/gpu0/mig/gi$part/ci0
    echo "DeviceFileMinor: ${part}1" >/proc/driver/nvidia/capabilities/gpu0/mig/gi$part/access
    echo "DeviceFileMinor: ${part}2" >/proc/driver/nvidia/capabilities/gpu0/mig/gi$part/ci0/access
done
mount --rbind "$dev" /dev
umount -l "$dev"
rmdir "$dev"
exec "$@"
""", "sh"]


@case
def a_container_has_only_the_files_of_its_gpus():
    busybox = shutil.which("busybox")
    if not busybox or not (shutil.which("crun") or shutil.which("runc")):
        print("# skip: there is no busybox, or neither crun nor runc")
        return
    with contextlib.closing(World()) as world:
        for i in range(2):
            world.gpu(f"GPU-{i}", i)
        with Cluster() as c:
            c.node("n1", prefix=WITH_FILES)
            os.chmod(c.work, 0o755)
            root = c.work / "rootfs"
            (root / "bin").mkdir(parents=True)
            for folder in (root, root / "bin"):
                folder.chmod(0o755)
            shutil.copy(busybox, root / "bin/busybox")
            look = ("cd /dev; for f in nvidia*; do echo file $f; done; "
                    "for f in nvidia*; do busybox dd if=$f of=null count=1 2>&1 | busybox grep open; done")
            job = c.job(["/bin/busybox", "sh", "-c", "PATH=/bin; " + look], rootfs=str(root), gpu=1, retries=0)
            c.wait_state("jobs", job, "ended")
            held = c.instances(job)[0]["gpus"][0]
            log = c.berth("logs", job)
            assert f"file nvidia{held}\n" in log and "file nvidiactl" in log, log
            assert f"file nvidia{1 - held}" not in log, log
            # the device files have no driver
            assert "not permitted" not in log and "No such device or address" in log, log


MPS = """#!/bin/sh
[ "$1" = -d ] && [ -n "$CUDA_VISIBLE_DEVICES" ] || exit 9
setsid sleep 1000 >/dev/null 2>&1 &
echo $! >"$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid"
echo "$CUDA_VISIBLE_DEVICES $(id -u)" >"$CUDA_MPS_LOG_DIRECTORY/control.log"
"""


@contextlib.contextmanager
def mps(program):
    """Puts this program on the agent's PATH as nvidia-cuda-mps-control."""
    with tempfile.TemporaryDirectory(prefix="berth-mps-") as folder:
        os.chmod(folder, 0o755)
        file = pathlib.Path(folder) / "nvidia-cuda-mps-control"
        file.write_text(program)
        file.chmod(0o755)
        before, os.environ["PATH"] = os.environ["PATH"], f"{folder}:{os.environ['PATH']}"
        try:
            yield
        finally:
            os.environ["PATH"] = before


def assert_bounded(agent, name):
    """The MPS daemon runs as the owner beside the owner's instances, so it needs limits, too."""
    for files in (("memory.max", "memory.limit_in_bytes"), ("pids.max",), ("cpu.max", "cpu.cfs_quota_us")):
        for file in group_files(agent, name, *files):
            word = file.read_text().split()[0]
            assert word not in ("max", "-1") and int(word) < 1 << 40, (file, word)
    assert group_files(agent, name, "pids.max"), "nothing is bounded"


@case
def shares_use_mps_and_leave_nothing():
    with mps(MPS), cluster(1) as (_, c, n1):
        jobs = [c.job(SLEEP, gpu={"share": 0.25, "memory": "100Mi"}), c.job(SLEEP, gpu=0.5)]
        first, second = (running(c, job) for job in jobs)
        assert not first.get("unenforced"), first
        env, other = environ(n1, first["id"]), environ(n1, second["id"])
        pipes = pathlib.Path(env["CUDA_MPS_PIPE_DIRECTORY"])
        assert pipes == pathlib.Path(other["CUDA_MPS_PIPE_DIRECTORY"]) and pipes.parents[1] == n1.state / "mps", pipes
        assert (env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]) == ("25", "0=100M")
        assert (other["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"],
                other["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"]) == ("50", "0=500M")
        daemon = int((pipes / "nvidia-cuda-mps-control.pid").read_text())
        owner = pipes.stat().st_uid
        assert owner >= 300000 and os.stat(f"/proc/{daemon}").st_uid == owner, owner
        assert (pipes.parent / "log/control.log").read_text() == f"GPU-0 {owner}\n"
        assert f"{n1.group}/mps-0.{owner}" in pathlib.Path(f"/proc/{daemon}/cgroup").read_text()
        assert_bounded(n1, f"mps-0.{owner}")
        assert c.ask("POST", "/v1/users", {"id": "alice", "role": "user"})[0] == 201
        jobs.append(c.job(SLEEP, gpu=0.25, owner="alice"))
        apart = pathlib.Path(environ(n1, running(c, jobs[2])["id"])["CUDA_MPS_PIPE_DIRECTORY"])
        assert apart != pipes and apart.stat().st_uid != owner, apart
        c.berth("job", "cancel", jobs[0], jobs[2])
        wait_for("the first is gone", lambda: first["id"] not in n1.instances())
        wait_for("so is the daemon of the other owner", lambda: not apart.exists())
        assert pathlib.Path(f"/proc/{daemon}").exists()
        n1.process.end(signal.SIGKILL)  # the agent stores on disk what it knows of the MPS daemon
        n1.start()
        c.berth("job", "cancel", jobs[1])
        wait_for("so is the daemon", lambda: not pathlib.Path(f"/proc/{daemon}").exists())
        wait_for("and its folder", lambda: not list((n1.state / "mps").iterdir()))
        assert not [f for tree in GROUPS for f in pathlib.Path("/sys/fs/cgroup", tree, n1.group).glob("mps-*")]


@case
def without_mps_a_share_is_watched():
    with mps("#!/bin/sh\necho no such luck >&2\nexit 1\n"), cluster(1) as (_, c, n1):
        one = running(c, c.job(SLEEP, gpu=0.5))
        assert one["unenforced"] == ["gpu-memory"], one
        assert "CUDA_MPS_PIPE_DIRECTORY" not in environ(n1, one["id"])
        wait_for("it says so", lambda: any("gpu.no-mps" in line and "no such luck" in line for line in n1.process.log))
        assert not list((n1.state / "mps").iterdir())
        n1.process.end(signal.SIGKILL)
        n1.start()  # the next agent reports it, too
        assert c.get(f"/v1/instances/{one['id']}").get("unenforced") == ["gpu-memory"]


@case
def mig_parts_are_separate_devices():
    with contextlib.closing(World()) as world:
        world.gpu("GPU-0", 0, mig=1)
        for i in (1, 2):
            world.part(f"MIG-{i}", "GPU-0", model="NVIDIA_H200_MIG_1g", memory=100, gi=i, ci=0)
        with Cluster() as c:
            n1 = c.node("n1")
            assert [g["uuid"] for g in c.get("/v1/nodes/n1")["gpus"]] == ["MIG-1", "MIG-2"]
            seen = {environ(n1, running(c, c.job(SLEEP, gpu={"model": "NVIDIA H200 MIG 1g"}))["id"])[
                "CUDA_VISIBLE_DEVICES"] for _ in range(2)}
            assert seen == {"MIG-1", "MIG-2"}, seen


@case
def a_mig_part_opens_no_other_part():
    if not kernel_takes(CGROUP_DEVICE):
        print("# skip: this kernel takes no rules for devices")
        return
    with contextlib.closing(World()) as world:
        world.gpu("GPU-0", 0, mig=1)
        for i in (1, 2):
            world.part(f"MIG-{i}", "GPU-0", model="NVIDIA_H200_MIG_1g", memory=100, gi=i, ci=0)
        with Cluster() as c:
            c.node("n1", prefix=WITH_FILES)
            files = ["/dev/nvidia0", "/dev/nvidia1", *(f"/dev/nvidia-caps/nvidia-cap{n}" for n in (11, 12, 21, 22, 2))]
            one, got = opened(c, files, gpu=1)
            own = one["gpus"] == [0]
            assert got == [6, 1] + ([6, 6, 1, 1] if own else [1, 1, 6, 6]) + [1], (one, got)
            assert opened(c, files)[1] == [1] * len(files)


if __name__ == "__main__":
    skip_unless_root()
    skip_unless(FAKE)
    main()
