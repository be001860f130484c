"""Cases of vm_check.sh: guests as apps, jobs and vms of a real daemon and a real agent."""
import contextlib
import gzip
import hashlib
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request

import guest
from agent_kit import AGENT, BERTH, BERTHD, SHIM, Cluster, case, main, skip_unless, skip_unless_root, wait_for

skip_unless(BERTH, BERTHD, AGENT, SHIM)
skip_unless_root()
guest.skip_unless_guests()

# Prints its environment, answers on port 80, and powers off when the power button is pressed. BUTTON=no: ignores the
# button. BUTTON=late: ignores the first press, like a guest that is still booting.
SCRIPT = r"""
echo "guest: disk $(dd if=/dev/vda bs=16 count=1 2>/dev/null | tr -d '\0') of $(cat /sys/block/vda/size)"
echo written by the guest | dd of=/dev/vda bs=512 seek=8 conv=fsync 2>/dev/null
env=/sys/firmware/qemu_fw_cfg/by_name/opt/berth/environment/raw
tr '\0' '\n' <$env | sed 's/^/guest: env /'
ifconfig lo 127.0.0.1; ifconfig eth0 10.0.2.15
mkdir -p /www; echo hello from the guest >/www/index.html; httpd -h /www -p 80
memory=$(sed -n 's/MemTotal: *//p' /proc/meminfo)
echo "guest: processors $(ls -d /sys/devices/system/cpu/cpu[0-9]* | wc -l), memory $memory"
echo "guest: up"
if grep -q ENDS=yes $env; then poweroff -f; fi
if grep -q BUTTON=no $env; then while :; do sleep 1000; done; fi
if grep -q BUTTON=late $env; then
    until read -r presses rest </sys/firmware/acpi/interrupts/ff_pwr_btn && [ "$presses" -gt 0 ]; do sleep 0.1; done
    echo "guest: awake"
fi
button=$(sed -n '/Power Button/,/Handlers/s/.*\(event[0-9]*\).*/\1/p' /proc/bus/input/devices)
dd if=/dev/input/$button bs=24 count=1 >/dev/null 2>&1
echo "guest: powering off"; sync; poweroff -f
"""
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="berth-vm-"))
os.chmod(FOLDER, 0o755)
DISK_BYTES = 8 << 20


def prepare():
    """Makes a kernel, an initrd and a disk that every user may read."""
    shutil.copy(guest.kernel()[0], FOLDER / "vmlinuz")
    files = guest.base_files(SCRIPT, guest.MODULES)
    (FOLDER / "initrd").write_bytes(gzip.compress(files.archive(), 1))
    disk = bytearray(DISK_BYTES)
    disk[:11] = b"base image\n"
    (FOLDER / "disk.raw").write_bytes(disk)
    for file in FOLDER.iterdir():
        file.chmod(0o644)


def terms(**more):
    return {"kernel": str(FOLDER / "vmlinuz"), "initrd": str(FOLDER / "initrd"), "append": guest.COMMAND_LINE,
            "accel": "tcg", **more}


def machine(**more):
    return {"image": str(FOLDER / "disk.raw"), "resources": {"cpu": 1, "memory": "320Mi"}, "vm": terms(), **more}


def log_has(cluster, workload, text):
    log = ""

    def said():
        nonlocal log
        log = cluster.run("logs", workload).stdout
        return text in log

    try:
        wait_for(f"{workload} says {text!r}", said, guest.PATIENCE)
    except AssertionError:
        print("# " + log[-4000:].replace("\n", "\n# "))
        raise
    return log


def emulators(agent):
    found = []
    for pid in agent.processes():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the guest has just ended
            if b"qemu-system" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def nothing_is_left(agent):
    wait_for("nothing of it is left", lambda: not agent.instances() and not agent.processes())
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    assert str(agent.state) not in mounts, mounts


@case
def a_machine_runs_is_reached_and_powers_down():
    before = hashlib.sha256((FOLDER / "disk.raw").read_bytes()).hexdigest()
    with Cluster() as c:
        agent = c.node("n1")
        assert "vm" in c.get("/v1/nodes/n1")["runtimes"]
        status, answer = c.ask("POST", "/v1/vms", machine(
            name="box", env={"COLOUR": "a b\"c,d"}, endpoints=[{"name": "web", "guest": 80}], vm=terms(disk="16Mi"),
            health={"tcp": {"endpoint": "web"}, "every": "1s", "timeout": "500ms"}, stop={"grace": "300s"}))
        assert status == 201, answer
        box = answer["id"]
        log = log_has(c, box, "guest: up")
        assert f"guest: disk base image of {(16 << 20) // 512}" in log.replace("\r", ""), log
        assert 'guest: env COLOUR=a b"c,d' in log and "guest: env BERTH_NODE=n1" in log, log
        assert "guest: processors 1, " in log, log
        [pid] = emulators(agent)
        proc = pathlib.Path(f"/proc/{pid}/status").read_text()
        assert int(proc.split("Uid:")[1].split()[0]) >= 200000 and "Seccomp:\t2" in proc, proc
        assert b"COLOUR" not in pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        [instance] = c.instances(box)
        port = instance["ports"][0]["port"]
        assert urllib.request.urlopen(f"http://127.0.0.1:{port}/",
                                      timeout=guest.PATIENCE).read() == b"hello from the guest\n"
        wait_for("its use is told", lambda: c.instances(box)[0].get("usage", {}).get("memory"))
        assert "web" in c.berth("describe", "vm", box)
        done = c.run("exec", box, "--", "/bin/true")
        assert done.returncode != 0 and "virtual machine" in done.stdout + done.stderr, done
        # A restarted agent adopts the guest and finds its power button again.
        agent.process.end(signal.SIGKILL)
        agent.start()
        assert emulators(agent) == [pid]
        c.berth("vm", "stop", box)
        log_has(c, box, "guest: powering off")
        nothing_is_left(agent)
    assert hashlib.sha256((FOLDER / "disk.raw").read_bytes()).hexdigest() == before, "the image was written"


@case
def the_power_button_is_pressed_again():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(None, **machine(env={"BUTTON": "late"}, stop={"grace": "300s"}))
        log_has(c, job, "guest: up")
        c.berth("job", "cancel", job)
        log = log_has(c, job, "guest: powering off")
        assert "guest: awake" in log, log
        nothing_is_left(agent)


@case
def a_guest_that_ignores_the_power_button_is_killed():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(None, **machine(env={"BUTTON": "no"}, stop={"grace": "2s"}))
        log_has(c, job, "guest: up")
        c.berth("job", "cancel", job)
        nothing_is_left(agent)
        assert "powering off" not in c.run("logs", job).stdout


@contextlib.contextmanager
def served(folder):
    """Serves a folder over HTTP; yields (its URL, list of the requested paths)."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words):
            super().__init__(*words, directory=folder)

        def log_message(self, *words):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


@case
def an_image_is_fetched_once_and_known_by_its_sum():
    served_files = FOLDER / "served"
    served_files.mkdir(exist_ok=True)
    subprocess.run(["qemu-img", "convert", "-O", "qcow2", FOLDER / "disk.raw", served_files / "disk.qcow2"], check=True)
    right = hashlib.sha256((served_files / "disk.qcow2").read_bytes()).hexdigest()
    with served(served_files) as (url, asked), Cluster() as c:
        agent = c.node("n1")
        keys = machine(env={"ENDS": "yes"}, image=f"{url}/disk.qcow2")
        for _ in range(2):
            job = c.job(None, **{**keys, "vm": terms(sha256=right)}, retries=0)
            done = c.wait_state("jobs", job, "ended", "failed")
            assert done["status"]["state"] == "ended", (done, c.run("logs", job).stdout)
            log = c.berth("logs", job).replace("\r", "")
            assert f"guest: disk base image of {DISK_BYTES // 512}" in log, log
        assert asked == ["/disk.qcow2"], asked
        wrong = c.job(None, **{**keys, "vm": terms(sha256="0" * 64)}, retries=0)
        c.wait_state("jobs", wrong, "failed")
        told = c.berth("describe", "job", wrong)
        assert "differs from vm.sha256" in told and right not in told, told
        nothing_is_left(agent)
        assert not list((agent.state / "images").glob("tmp-*"))


@case
def requests_that_a_node_cannot_satisfy_are_refused():
    (FOLDER / "chained.qcow2").unlink(missing_ok=True)
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-b", "/etc/passwd", "-F", "raw",
                    FOLDER / "chained.qcow2"],
                   check=True)
    hidden = FOLDER / "hidden.raw"
    hidden.write_bytes(b"\0" * 4096)
    hidden.chmod(0o600)
    rows = [
        ({"image": str(FOLDER / "chained.qcow2")}, "without a backing file"),
        ({"image": str(hidden)}, "not readable for its user"),
        ({"image": "/no/such/file"}, "cannot open it"),
        ({"image": "/dev/zero"}, "is not a regular file"),
        ({"resources": {"cpu": 1, "memory": "100Mi"}}, "for qemu itself"),
        ({"vm": terms(disk="1Mi")}, "must not be smaller"),
    ]
    with Cluster() as c:
        agent = c.node("n1")
        for keys, text in rows:
            job = c.job(None, **machine(**keys), retries=0)
            c.wait_state("jobs", job, "failed")
            told = c.berth("describe", "job", job)
            assert text in told, (text, told)
        nothing_is_left(agent)


prepare()
try:
    main()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
