"""Small Linux guests for tests, in qemu without KVM: a Debian kernel, busybox, and files of the test.

    guest = Guest(work)
    guest.add("/bin/try", "build/gcc/tests/machine-cgroup-cgroup_test")   # with the libraries that it is linked to
    done = guest.run('try; echo "guest: status $?"')                # boots, runs it as a script, powers off
    done.status, done.output

The kernel is a Debian package, fetched once into ${XDG_CACHE_HOME:-~/.cache}/berth/guest and never installed; without
it, or without qemu, the test is skipped. Standard library only. A guest boots in about two seconds of CPU time.
"""
import contextlib
import fcntl
import gzip
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import threading
import time

QEMU = "qemu-system-x86_64"
PACKAGE = "linux-image-cloud-amd64"
# no_timer_check: on a busy machine the kernel's check of the emulated timer fails, and the kernel panics.
COMMAND_LINE = "console=ttyS0 quiet panic=-1 no_timer_check"
# Kernel modules that guests of the tests use; the modules themselves name the ones that they need.
DISK = ["virtio_pci", "virtio_blk"]
MODULES = [*DISK, "virtio_net", "button", "evdev", "qemu_fw_cfg"]
# Seconds until a guest that has not ended counts as hanging; no speed is tested here. Emulated guests get five times as
# long.
PATIENCE = min(900, 5 * int(os.environ.get("BERTH_PATIENCE", "60")))
ANSWER_SECONDS = 3  # for each answer of a hanging guest


def skip(reason):
    print(f"skip: {reason}", flush=True)
    sys.exit(77)


# ---- kernel ----------------------------------------------------------------------------------------------------------


def cache():
    root = os.environ.get("XDG_CACHE_HOME") or str(pathlib.Path.home() / ".cache")
    return pathlib.Path(root) / "berth/guest"


def in_order(modules, files):
    """Returns the modules, each after those that it needs by the kernel's own dependency data in their files ({name:
    path}). Raises KeyError for a missing module."""
    order = []

    def add(name):
        if name not in order:
            needs = re.search(rb"\0depends=([^\0]*)\0", files[name].read_bytes())
            for other in filter(None, needs[1].decode().split(",") if needs else []):
                add(other)
            order.append(name)
    for module in modules:
        add(module)
    return order


def modules_in(folder):
    return {file.stem.replace("-", "_"): file for file in folder.rglob("*.ko")}


def is_complete(folder):
    try:
        return bool(in_order(MODULES, modules_in(folder / "modules")))
    except KeyError:
        return False


def cached():
    """Returns the folder of the newest cached kernel that has all modules, or None."""
    found = [f.parent for f in cache().glob("linux-image-*/vmlinuz") if is_complete(f.parent)]
    return max(found, key=lambda f: [int(n) for n in re.findall(r"\d+", f.name)], default=None)


@contextlib.contextmanager
def alone():
    """Lets one test at a time fetch; the others wait."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fetch():
    """Unpacks the present version of PACKAGE into the cache."""
    asked = subprocess.run(["apt-cache", "depends", PACKAGE], capture_output=True, text=True, check=False)
    name = re.search(r"Depends: (linux-image-[0-9]\S*)", asked.stdout)
    if not name:
        skip(f"no package {PACKAGE} is known here")
    folder = cache() / name[1]
    work = folder.with_name(f"tmp-{os.getpid()}")
    work.mkdir(parents=True)
    try:
        done = subprocess.run(["apt-get", "download", "-q", name[1]], cwd=work, capture_output=True, text=True,
                              check=False)
        packages = list(work.glob("*.deb"))
        if done.returncode or len(packages) != 1:
            skip(f"the package {name[1]} cannot be fetched: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
        subprocess.run(["dpkg-deb", "-x", packages[0], work / "all"], check=True)
        ready = work / "ready"
        (ready / "modules").mkdir(parents=True)
        shutil.copy(next((work / "all/boot").glob("vmlinuz-*")), ready / "vmlinuz")
        modules = modules_in(work / "all")
        for name in in_order(MODULES, modules):
            shutil.copy(modules[name], ready / f"modules/{name}.ko")
        shutil.rmtree(folder, ignore_errors=True)
        ready.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def kernel():
    """Returns (path of the kernel, {module: path})."""
    folder = cached()
    if not folder:
        with alone():
            folder = cached() or fetch()
    return folder / "vmlinuz", modules_in(folder / "modules")


def skip_unless_guests():
    if os.uname().machine != "x86_64":
        skip("guests of the tests are x86_64")
    for program in (QEMU, "busybox", "dpkg-deb"):
        if not shutil.which(program):
            skip(f"there is no {program}")
    if libraries(shutil.which("busybox")):
        skip("busybox needs libraries: install busybox-static")
    kernel()


# ---- initramfs -------------------------------------------------------------------------------------------------------


def libraries(program):
    """Returns the libraries that the loader maps for a program, and the loader; none for a static program."""
    told = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    return [pathlib.Path(path) for path in re.findall(r"(?:=>\s+|^\s+)(/\S+)", told, re.MULTILINE)]


class Files:
    """The files of an initramfs, in memory; a later file replaces an earlier one of the same name."""

    def __init__(self):
        self.entries = {}

    def folder(self, path):
        path = pathlib.PurePosixPath(path)
        for parent in [*reversed(path.parents), path]:
            if parent.name:
                self.entries.setdefault(str(parent), (stat.S_IFDIR | 0o755, b""))

    def text(self, path, content, mode=0o644):
        self.folder(pathlib.PurePosixPath(path).parent)
        self.entries[str(path)] = (stat.S_IFREG | mode, content if isinstance(content, bytes) else content.encode())

    def link(self, path, target):
        self.folder(pathlib.PurePosixPath(path).parent)
        self.entries[str(path)] = (stat.S_IFLNK | 0o777, target.encode())

    def add(self, path, source):
        """Adds a file of this machine; of a program also its libraries."""
        source = pathlib.Path(source)
        self.text(path, source.read_bytes(), 0o755 if os.access(source, os.X_OK) else 0o644)
        for library in libraries(source) if os.access(source, os.X_OK) else []:
            self.text(str(library), library.resolve().read_bytes(), 0o755)

    def unpack(self, root):
        """Writes all files below a folder of this machine."""
        for path, (mode, data) in sorted(self.entries.items()):
            at = pathlib.Path(root) / path.lstrip("/")
            if stat.S_ISDIR(mode):
                at.mkdir(parents=True, exist_ok=True)
            elif stat.S_ISLNK(mode):
                at.symlink_to(data.decode())
            else:
                at.write_bytes(data)
                at.chmod(stat.S_IMODE(mode))

    def archive(self):
        """Returns all files as a cpio archive ("newc"), which the kernel unpacks."""
        out = bytearray()
        for number, (path, (mode, data)) in enumerate([*sorted(self.entries.items()), ("TRAILER!!!", (0, b""))], 1):
            name = path.lstrip("/").encode() + b"\0"
            fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
            out += b"070701" + b"".join(b"%08X" % f for f in fields) + name
            out += b"\0" * (-len(out) % 4) + data
            out += b"\0" * (-len(out) % 4)
        return bytes(out)


APPLETS = """[ acpid awk cat chmod chown chroot cp cut date dd dirname dmesg echo env expr false find fold grep head
 hexdump httpd id ifconfig init insmod ip kill ln ls mkdir mknod mount mv nc od pidof poweroff printf ps reboot rm rmdir
 route sed seq sh sha256sum sleep sort stat switch_root sync tail tee test timeout touch tr true umount uname wc
 wget""".split()

INIT = """#!/bin/sh
export PATH=/bin:/sbin:/usr/bin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
mkdir -p /dev/shm /tmp; mount -t tmpfs tmp /tmp; mount -t tmpfs shm /dev/shm
for module in {modules}; do insmod /modules/$module.ko || echo "guest: no module $module"; done
. /script
"""


def busybox_files():
    """Returns busybox and the folders for mounts."""
    files = Files()
    for folder in ("/proc", "/sys", "/dev", "/tmp", "/bin"):
        files.folder(folder)
    files.text("/bin/busybox", pathlib.Path(shutil.which("busybox")).read_bytes(), 0o755)
    for applet in APPLETS:
        files.link(f"/bin/{applet}", "busybox")
    return files


def base_files(script, modules=()):
    """Returns busybox, modules, and an /init that mounts the usual file systems and then sources the script."""
    files = busybox_files()
    have = kernel()[1]
    order = in_order(modules, have)
    for module in order:
        files.text(f"/modules/{module}.ko", have[module].read_bytes())
    files.text("/init", INIT.format(modules=" ".join(order)), 0o755)
    files.text("/script", script)
    return files


# ---- boot ------------------------------------------------------------------------------------------------------------


class Done:
    def __init__(self, status, output):
        self.status, self.output = status, output


# Questions to a hanging guest, each after a break on its serial line (SysRq): set the log level, show registers,
# blocked tasks, all tasks. They need no working user space. qemu's monitor, which always answers, is asked for the
# registers, too.
QUESTIONS, BREAK, MONITOR = "9pwt", b"\x01b", b"\x01c"


def ask(qemu):
    """Asks a hanging guest for its state. The answers are on the console; the test's own tasks come last."""
    def say(words, seconds):
        qemu.stdin.write(words)
        time.sleep(seconds)

    with contextlib.suppress(BrokenPipeError):  # qemu may just have ended
        say(MONITOR + b"info registers\n", ANSWER_SECONDS)
        say(MONITOR, 1)
        for question in QUESTIONS:
            say(BREAK, 1)
            say(question.encode(), ANSWER_SECONDS)


TASK = re.compile(r"task:(?P<name>\S+) +state:(?P<state>\S).* pid:(?P<pid>\d+) +ppid:(?P<parent>\d+)")
STATISTICS = re.compile(r"^\[ *[\d.]+\] Sched Debug Version")  # follows the list of tasks
KERNEL = re.compile(r"^\[ *[\d.]+\] ")
FRAME = re.compile(r"^\[ *[\d.]+\]  (\w[\w.]*)\+0x[0-9a-f]+/0x[0-9a-f]+$")
NOTED = re.compile(
    r"^\[ *[\d.]+\] +(?:$|\?|</?(?:TASK|IRQ)>|Call Trace:|R\w\w?:|[CDEFGRS][SPR]\w?:|PKRU:|Code:|Workqueue:|Stopper:)")


def shortened(output):
    """Shortens the answers of a guest: one line for each task instead of a page, without idle kernel threads."""
    kept, task, statistics = [], None, False
    for line in output.splitlines():
        statistics = (statistics or bool(STATISTICS.match(line))) and "sysrq: " not in line
        if statistics and KERNEL.match(line):
            continue
        if found := TASK.search(line):
            task = found.groupdict()
            if task["parent"] == "2" and task["state"] in "SI":
                kept.append("")
            else:
                kept.append("task {name}, process {pid} of {parent}, state {state}:".format(**task))
        elif task and (frame := FRAME.match(line)):
            kept[-1] += f" {frame[1]}" if kept[-1] else ""
        elif not (task and NOTED.match(line)):
            task = None
            kept.append(line)
    return "\n".join(line for line in kept if line)


def boot(initrd, memory_mib=256, append="", drives=(), processors=1, patience=PATIENCE):
    """Runs a guest until it powers off or reboots; returns its console as text. A hanging guest ends the test and
    prints its state."""
    words = [QEMU, "-machine", "pc,accel=tcg", "-cpu", "max", "-nodefaults", "-no-user-config", "-display", "none",
             "-sandbox", "on",
             "-m", str(memory_mib), "-smp", str(processors), "-kernel", str(kernel()[0]), "-initrd", str(initrd),
             "-append", f"{COMMAND_LINE} sysrq_always_enabled {append}", "-serial", "mon:stdio", "-no-reboot"]
    for drive in drives:
        words += ["-drive", f"file={drive},format=raw,if=virtio"]
    chunks = []
    with subprocess.Popen(words, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as qemu:
        reader = threading.Thread(target=lambda: chunks.extend(iter(lambda: qemu.stdout.read(1 << 16), b"")))
        reader.start()
        try:
            qemu.wait(patience)
            late = False
        except subprocess.TimeoutExpired:
            late = True
            ask(qemu)
        finally:
            qemu.kill()
            reader.join()
    output = b"".join(chunks).decode(errors="replace").replace("\r\n", "\n")
    if late:
        sys.exit(f"{shortened(output)}\nthe guest was not done after {patience} s: the lines before say what it did")
    return output


class Guest:
    """Runs one script in one guest."""

    def __init__(self, work, modules=()):
        self.work, self.modules, self.extra = pathlib.Path(work), list(modules), Files()
        self.add, self.text = self.extra.add, self.extra.text

    def run(self, script, **options):
        files = base_files(f"{script}\nsync; poweroff -f\n", self.modules)
        files.entries.update(self.extra.entries)
        initrd = self.work / "initrd.gz"
        initrd.write_bytes(gzip.compress(files.archive(), 1))
        output = boot(initrd, **options)
        said = re.search(r"^guest: status (\d+)$", output, re.MULTILINE)
        return Done(int(said[1]) if said else None, output)


if __name__ == "__main__":  # fetches the kernel for tests that run in their own network namespace
    skip_unless_guests()
    print(kernel()[0].parent)
