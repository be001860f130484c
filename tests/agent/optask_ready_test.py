"""Cases of optask_ready_test.sh: runs and undoes the ready OpTasks of share/optasks as `berth optask run` sends them:
lib.sh and the script in one."""
import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

FOLDER = pathlib.Path(os.environ["BERTH_SOURCE"], "share/optasks")
NAMES = sorted(f.stem for f in FOLDER.glob("*.sh") if f.stem != "lib")
CASES = []


class Skip(Exception):
    """A feature that this kernel or system lacks."""


def case(function):
    CASES.append(function)
    return function


class Task:
    """A ready OpTask with a checkpoint folder, its own root folder, and stand-ins for system programs."""

    def __init__(self, name, family=None, inside=()):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-ready-"))
        self.name, self.inside = name, list(inside)
        self.script = self.work / "script"
        self.script.write_text((FOLDER / "lib.sh").read_text() + (FOLDER / f"{name}.sh").read_text())
        self.checkpoint, self.bin, self.root = self.work / "kept", self.work / "bin", self.work / "root"
        self.calls = self.work / "calls"
        for folder in (self.checkpoint, self.bin, self.root / "etc"):
            folder.mkdir(parents=True)
        self.env = {"PATH": f"{self.bin}:/usr/sbin:/usr/bin:/sbin:/bin", "BERTH_KEY": "k", "HOME": "/root",
                    "BERTH_CHECKPOINT": str(self.checkpoint), "WORK": str(self.work)}
        if family:
            (self.root / "etc/os-release").write_text(f"ID=x\nID_LIKE=\"{family}\"\n")
            self.env["BERTH_ROOT"] = str(self.root)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.work, ignore_errors=True)

    def stand_in(self, name, body):
        """Makes a program that records its arguments and then runs this body."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\necho {name} \"$@\" >>{self.calls}\n{body}\n")
        path.chmod(0o755)

    def run(self, *args, undo=False, code=0):
        env = dict(self.env, **({"BERTH_UNDO": "1"} if undo else {}))
        done = subprocess.run([*self.inside, "/bin/sh", str(self.script), *args], env=env, capture_output=True,
                              text=True, check=False, cwd="/")
        assert done.returncode == code, f"{self.name} {args}: {done.returncode} {done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def called(self):
        return self.calls.read_text() if self.calls.exists() else ""

    def put(self, path, text):
        to = self.root / path.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_text(text)
        return to


class Inside:
    """A mount and UTS namespace with copies of /etc and /home; it exists as long as this object."""

    def __init__(self):
        if os.geteuid() != 0:
            raise Skip("needs root, for namespaces")
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-inside-"))
        script = (f"cp -a /etc {self.work}/etc && mkdir {self.work}/home && mount --bind {self.work}/etc /etc && "
                  f"mount --bind {self.work}/home /home && echo ready && exec sleep 1000")
        self.holder = subprocess.Popen(["unshare", "--mount", "--uts", "--propagation", "private", "/bin/sh", "-c",
                                        script],
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "ready\n":
            self.close()
            raise Skip("no mount namespaces here")
        self.words = ["nsenter", "-t", str(self.holder.pid), "-m", "-u"]

    def close(self):
        self.holder.kill()
        self.holder.communicate()
        shutil.rmtree(self.work, ignore_errors=True)

    @classmethod
    @functools.lru_cache(maxsize=1)
    def shared(cls):
        """Returns one namespace for all cases; each case leaves it unchanged."""
        inside = cls()
        atexit.register(inside.close)
        return inside

    def read(self, *words):
        return subprocess.run([*self.words, *words], capture_output=True, text=True, check=False).stdout


# ---- packages ----

APT = """case "$*" in
*install*) for last; do :; done; echo "$last" >>$WORK/installed ;;
*purge*) : >$WORK/installed ;;
esac"""
DPKG = """for name; do :; done
grep -q "^$name" $WORK/installed 2>/dev/null && echo "installed 1.0" || exit 1"""


@case
def packages_of_three_families():
    with Task("package-install", "debian") as t:
        t.stand_in("apt-get", APT)
        t.stand_in("dpkg-query", DPKG)
        assert "hello 1.0" in t.run("hello")
        assert "install hello" in t.called() and "update" in t.called()
        t.run("hello", undo=True)
        assert "purge hello" in t.called()
    with Task("package-install", "rhel fedora") as t:
        t.stand_in("dnf", "case \"$*\" in *install*) echo 2-1 >$WORK/installed ;; *remove*) rm $WORK/installed ;; esac")
        t.stand_in("rpm", "cat $WORK/installed 2>/dev/null || { echo 'package hello is not installed'; exit 1; }")
        assert "hello 2-1" in t.run("hello=2-1")
        assert "install hello-2-1" in t.called()
        t.run("hello=2-1", undo=True)
        assert "dnf -y remove hello" in t.called()
    with Task("package-install", "alpine") as t:
        (t.work / "installed").write_text("hello-1.0-r0\n")
        t.stand_in("apk", "case \"$1\" in add) echo \"hello-${2#hello=}\" >$WORK/installed ;; "
                          "info) cat $WORK/installed ;; esac")
        assert "hello 2.0-r1" in t.run("hello=2.0-r1")
        t.run("hello=2.0-r1", undo=True)  # restores the earlier version
        assert "apk add hello=1.0-r0" in t.called()
    with Task("package-install", "gentoo") as t:
        assert "none of the families" in t.run("hello", code=1)
    with Task("package-install", "debian") as t:
        for bad in ((), ("-oDebug",), ("a;b",), ("$(id)",)):
            t.run(*bad, code=1)


@case
def faults_of_package_managers_have_exit_codes():
    for said, code in (("E: Write error - write (28: No space left on device)", 80),
                       ("Err:1 Temporary failure resolving 'deb.debian.org'", 81), ("E: Failed to fetch http://x", 81),
                       ("E: Unable to locate package nope", 82), ("dpkg was interrupted", 82)):
        with Task("package-install", "debian") as t:
            t.stand_in("apt-get", f"echo \"{said}\" >&2; exit 100")
            t.stand_in("dpkg-query", "exit 1")
            t.run("nope", code=code)


@case
def the_real_package_manager_of_this_system():
    if not shutil.which("apt-get") or not shutil.which("dpkg-query"):
        raise Skip("there is no apt-get")
    with Task("package-install") as t:  # queries go to the real package manager; changes are only simulated
        t.stand_in("apt-get", "case \"$*\" in *update) exit ;; esac; exec /usr/bin/apt-get -s \"$@\"")
        assert "dpkg 1" in t.run("dpkg")
        t.run("dpkg", undo=True)
        t.run("no-such-package-anywhere", code=82)


@case
def an_upgrade_and_its_undo():
    with Task("system-upgrade", "debian") as t:
        (t.work / "versions").write_text("installed bash 1\ninstalled sed 1\n")
        t.stand_in("dpkg-query", "cat $WORK/versions")
        t.stand_in("dpkg", "")
        t.stand_in("apt-get", "case \"$*\" in *dist-upgrade*) sed -i 's/bash 1/bash 2/' $WORK/versions ;; esac")
        assert "1 packages are others" in t.run()
        t.run(undo=True)
        assert "install bash=1" in t.called() and "sed" not in t.called()
        t.run("--no", code=1)
    with Task("system-upgrade", "alpine") as t:
        (t.work / "versions").write_text("busybox-1.36.1-r2\nmusl-1.2.3-r4\n")
        t.stand_in("apk",
                   "case \"$1\" in info) cat $WORK/versions ;; upgrade) sed -i s/-r4/-r5/ $WORK/versions ;; esac")
        t.stand_in("diff", "echo '+++ as busybox prints it'")
        t.stand_in("reboot", "")
        t.stand_in("sleep", "")
        t.run("--reboot", code=75)  # until the machine was rebooted
        assert t.called().count("reboot\n") == 1
        t.run("--reboot", code=75)
        assert t.called().count("reboot\n") == 1 and t.called().count("apk upgrade") == 1
        (t.checkpoint / "boot").write_text("another-boot\n")
        assert "1 packages are others" in t.run("--reboot")
        assert t.called().count("apk upgrade") == 1
        t.run("--reboot", undo=True)
        assert "apk add musl=1.2.3-r4\n" in t.called(), t.called()


AB = pathlib.Path(os.environ["BERTH_SOURCE"], "packaging/berth-ab")
MOUNT = """case "$*" in
*/slot-[ab]\\ *) exec /bin/mount --bind $WORK/disk-${1##*-} $2 ;;
esac
exec /bin/mount "$@"
"""


class Slots:
    """A machine with two slots. Folders stand for the slots' disks and the agent's folder; a reboot is a new boot
    id."""

    def __init__(self, inside):
        self.task = t = Task("system-upgrade", "debian", inside=inside.words)
        self.inside, self.state = inside, t.work / "ab"
        self.agent = t.work / "agent"
        t.checkpoint = self.agent / "optasks/checkpoints/k"
        t.env["BERTH_CHECKPOINT"] = str(t.checkpoint)
        for folder in (self.agent, t.work / "disk-a/etc", t.work / "disk-b/old"):
            folder.mkdir(parents=True)
        subprocess.run([*inside.words, "mount", "-t", "tmpfs", "agent", self.agent], check=True)
        inside.read("mkdir", "-p", t.checkpoint)
        self.state.write_bytes(bytes(8192))
        for name in ("slot-a", "slot-b"):
            (t.work / name).touch()
        (t.work / "disk-a/etc/os-release").write_text("ID=debian\n")
        (t.work / "disk-a/etc/fstab").write_text(
            "# UUID=x / ext4\nUUID=x / ext4 defaults 0 1\n/dev/y /home ext4 defaults 0 2\n")
        (t.work / "disk-a/versions").write_text("installed bash 1\n")
        (t.work / "disk-a/usr/sbin").mkdir(parents=True)
        t.stand_in("mount", MOUNT)
        t.stand_in("reboot", "")
        t.stand_in("sleep", "")
        t.stand_in("chroot", f"cd $1 && shift && PATH={t.bin}:$PATH IN_SLOT=1 exec \"$@\"")
        t.stand_in("dpkg-query", "if [ -n \"$IN_SLOT\" ]; then cat versions; else cat $BERTH_ROOT/versions; fi")
        t.stand_in("dpkg", "")
        t.stand_in("apt-get", "[ -n \"$IN_SLOT\" ] || exit 1; "
                              "case \"$*\" in *dist-upgrade*) sed -i 's/bash 1/bash 2/' versions ;; esac")
        (t.bin / "berth-ab").write_text(f"#!/bin/sh\nexec /bin/sh {AB} \"$@\"\n")
        (t.bin / "berth-ab").chmod(0o755)
        self.args = ["--ab", str(self.state), f"a={t.work}/slot-a", f"b={t.work}/slot-b", "tries=2"]
        self.ab("init", "a")
        self.boots = 0
        self.boot()

    def ab(self, *words):
        return subprocess.run(["sh", AB, "--state", self.state, *words], capture_output=True, text=True,
                              check=True).stdout.strip()

    def boot(self, comes_up=True):
        """Boots like the boot loader; a try that does not come up is rebooted until no tries are left."""
        slot = self.ab("pick")
        while not comes_up and "try=" in self.ab("show"):
            slot = self.ab("pick")
        self.boots += 1
        self.task.env["BERTH_ROOT"] = str(self.task.work / f"disk-{slot}")
        ident = self.task.work / "boot_id"
        ident.write_text(f"boot-{self.boots}\n")
        if self.boots == 1:
            subprocess.run([*self.inside.words, "mount", "--bind", ident, "/proc/sys/kernel/random/boot_id"],
                           check=True)
        return slot

    def heard(self):
        self.inside.read("sh", "-c", f"echo 1 boot-{self.boots} >{self.agent}/heard")

    def run(self, undo=False, code=0):
        return self.task.run(*self.args, undo=undo, code=code)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.inside.read("umount", "/proc/sys/kernel/random/boot_id")
        self.inside.read("umount", "-R", self.agent)
        self.task.__exit__()


@case
def an_upgrade_in_the_other_slot():
    with Slots(Inside.shared()) as s:
        t, disk = s.task, s.task.work / "disk-b"
        said = s.run(code=75)
        assert "1 packages are others" in said and "slot b is upgraded" in said, said
        assert (disk / "versions").read_text() == "installed bash 2\n" and not (disk / "old").exists()
        assert (t.work / "disk-a/versions").read_text() == "installed bash 1\n"
        assert (disk / "etc/fstab").read_text() == (f"# UUID=x / ext4\n{t.work}/slot-b / ext4 defaults 0 1\n"
                                                   "/dev/y /home ext4 defaults 0 2\n")
        assert not (disk / "usr/sbin/policy-rc.d").exists()
        assert str(t.checkpoint) not in s.inside.read("cat", "/proc/mounts")
        assert s.ab("show") == "good=a try=b left=2" and t.called().count("reboot\n") == 1
        s.run(code=75)  # waits for the reboot
        assert t.called().count("reboot\n") == 1 and t.called().count("\napt-get -q -y") == 1
        assert s.boot() == "b"
        assert "has not heard" in s.run(code=81)  # the slot is not good before its agent is heard
        assert s.ab("show") == "good=a try=b left=1"
        s.heard()
        assert "slot b runs" in s.run()
        assert s.ab("show") == "good=b"
        # Undo returns to the previous system, which is unchanged.
        s.run(undo=True, code=75)
        assert s.ab("show") == "good=b try=a left=2" and s.boot() == "a"
        s.heard()
        s.run(undo=True)
        assert s.ab("show") == "good=a"
        s.run(undo=True)
        assert s.inside.read("ls", t.checkpoint).split() in ([], ["manager.out", "manager.rc"])


@case
def an_overwritten_slot_cannot_be_restored():
    for unfinished in (False, True):
        with Slots(Inside.shared()) as s:
            t = s.task
            s.run(code=75)
            s.boot()
            s.heard()
            s.run()
            # Another upgrade overwrites the slot of the previous system; it may be interrupted by a power failure.
            t.env["BERTH_KEY"], t.env["BERTH_CHECKPOINT"] = "k2", str(t.checkpoint.with_name("k2"))
            s.inside.read("mkdir", t.checkpoint.with_name("k2"))
            if unfinished:
                t.stand_in("apt-get", "exit 1")
            s.run(code=82 if unfinished else 75)
            s.run(undo=True)
            t.env["BERTH_KEY"], t.env["BERTH_CHECKPOINT"] = "k", str(t.checkpoint)
            said = s.run(undo=True, code=1)
            assert ("slot a no longer holds the system of before, but: "
                    f"{'an upgrade that' if unfinished else 'a k2'}") in said, said
            assert s.ab("show") == "good=b" and str(t.checkpoint) not in s.inside.read("cat", "/proc/mounts")


@case
def a_slot_on_a_device():
    mkfs = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
    if os.geteuid() != 0 or not mkfs:
        raise Skip("needs root and mkfs.ext4")
    with Slots(Inside.shared()) as s:
        image, name = s.task.work / "image", s.task.work / "by-label"
        with image.open("wb") as f:
            f.truncate(16 << 20)
        subprocess.run([mkfs, "-q", "-F", image], check=True)
        device = subprocess.run(["losetup", "-f", "--show", image], capture_output=True, text=True,
                                check=False).stdout.strip()
        if not device:
            raise Skip("no loop devices here")
        try:
            name.symlink_to(device)
            s.args[3] = f"b={name}"
            s.inside.read("mkdir", "/home/there")
            subprocess.run([*s.inside.words, "mount", device, "/home/there"], check=True)
            assert f"{name} is mounted on /home/there" in s.run(code=1)  # under any name of the device
            s.inside.read("umount", "/home/there")
            s.run(undo=True)
            s.run(code=75)
            subprocess.run([*s.inside.words, "mount", device, "/home/there"], check=True)
            assert s.inside.read("cat", "/home/there/versions",
                                 "/home/there/etc/berth-slot") == "installed bash 2\nb k\n"
        finally:
            s.inside.read("umount", "/home/there")
            s.inside.read("rmdir", "/home/there")
            subprocess.run(["losetup", "-d", device], check=False)


@case
def an_upgrade_that_does_not_come_up():
    with Slots(Inside.shared()) as s:
        s.run(code=75)
        assert s.boot(comes_up=False) == "a" and s.ab("show") == "good=a"
        s.heard()
        assert "did not come up; this is the system of before" in s.run(code=1)
        s.run(undo=True)
        assert s.ab("show") == "good=a" and s.task.called().count("reboot\n") == 1
    with Slots(Inside.shared()) as s:  # it comes up but its agent is not heard: the undo needs no daemon
        s.run(code=75)
        assert s.boot() == "b"
        s.run(code=81)
        s.run(undo=True, code=75)
        assert s.boot() == "a"
        s.run(undo=True)
        assert s.ab("show") == "good=a"
    with Slots(Inside.shared()) as s:  # packages that fail: the other slot is never booted
        s.task.stand_in("apt-get", "echo 'E: Failed to fetch http://x'; exit 100")
        assert "apt-get failed" in s.run(code=81)
        s.run(undo=True)
        assert s.ab("show") == "good=a" and "reboot" not in s.task.called()
        assert str(s.task.checkpoint) not in s.inside.read("cat", "/proc/mounts")
    with Slots(Inside.shared()) as s:
        for bad in (["--ab"], ["--ab", "x"], [*s.args[:3]], [*s.args, "tries=0"], [*s.args, "c=/x"], ["--reboot", "x"],
                    ["--ab", str(s.state), "a=/x", "b=/x"], ["--ab", "/nowhere", "a=/x", "b=/y"]):
            s.task.run(*bad, code=1)
        s.inside.read("umount", s.agent)  # the other slot would not see the agent's folder
        s.task.checkpoint.mkdir(parents=True)
        assert "file system of its own" in s.run(code=1)
        assert (s.task.work / "disk-b/old").exists()


# ---- files, users, mounts, parameters: real changes ------------------------------------------------------------------

@case
def a_file_of_the_system():
    with Task("system-file", "debian") as t:
        at = t.put("/etc/motd", "old\n")
        at.chmod(0o600)
        assert "written" in t.run("/etc/motd", "644", "one", "two words")
        assert at.read_text() == "one\ntwo words\n" and at.stat().st_mode & 0o777 == 0o644
        t.run("/etc/motd", "644", "one", "two words")  # a second run keeps the saved original
        t.run("/etc/motd", "644", "one", undo=True)
        assert at.read_text() == "old\n" and at.stat().st_mode & 0o777 == 0o600
        t.run("/etc/new/deep", "600", "x")
        t.run("/etc/new/deep", "600", "x", undo=True)
        assert not (t.root / "etc/new/deep").exists()
        os.symlink("motd", t.root / "etc/link")
        for bad in (("etc/x", "644", "x"), ("/etc/../x", "644", "x"), ("/etc/x", "rw", "x"), ("/etc", "644", "x"),
                    ("/etc/link", "644", "x"), ("/etc/x", "644")):
            t.run(*bad, code=1)
        t.stand_in("visudo", "exit 1")
        assert "visudo refuses" in t.run("/etc/sudoers.d/x", "440", "nonsense", code=1)
        assert not (t.root / "etc/sudoers.d/x").exists()


@case
def an_account():
    inside = Inside.shared()
    with Task("user", inside=inside.words) as t:
        key = "ssh-ed25519 AAAA me@here"
        t.run("berthtest", "uid=31234", "groups=adm", f"key={key}")
        assert "uid=31234" in inside.read("id", "berthtest") and "(adm)" in inside.read("id", "berthtest")
        assert inside.read("cat", "/home/berthtest/.ssh/authorized_keys") == key + "\n"
        t.run("berthtest", "uid=31234", "groups=adm", f"key={key}")  # a second run changes nothing
        t.run("berthtest", "uid=31234", "groups=adm", undo=True)
        assert inside.read("id", "berthtest") == "" and "berthtest" not in inside.read("ls", "/home")
        with Task("user", inside=inside.words) as other:  # an existing account stays, and its symlinks are not followed
            inside.read("useradd", "-m", "planted")
            inside.read("sh", "-c", "install -d -o planted /home/planted/.ssh &&"
                        " ln -s /etc/secret /home/planted/.ssh/authorized_keys &&"
                        " umask 077 && echo secret >/etc/secret")
            other.run("planted", f"key={key}", code=1)
            assert (inside.read("cat", "/etc/secret") == "secret\n" and
                    inside.read("stat", "-c", "%U", "/etc/secret") == "root\n")
            inside.read("rm", "/home/planted/.ssh/authorized_keys")
            inside.read("su", "planted", "-c", "echo theirs >/home/planted/.ssh/authorized_keys")
            other.run("planted", f"key={key}")
            assert inside.read("cat", "/home/planted/.ssh/authorized_keys") == f"theirs\n{key}\n"
            other.run("planted", f"key={key}", undo=True)
            assert inside.read("cat", "/home/planted/.ssh/authorized_keys") == "theirs\n"
        with Task("user", inside=inside.words) as other:  # except for its groups
            other.run("games", "groups=adm")
            assert "(adm)" in inside.read("id", "games")
            other.run("games", "groups=adm", undo=True)
            assert "games" in inside.read("id", "games") and "(adm)" not in inside.read("id", "games")
        for bad in (("root",), ("a b",), ("x", "uid=a"), ("x", "groups=nosuchgroup"), ("x", "home=/y"), ()):
            t.run(*bad, code=1)
    assert "berthtest" not in pathlib.Path("/etc/passwd").read_text()


@case
def a_mount():
    inside = Inside.shared()
    with Task("mount", inside=inside.words) as t:
        args = ("tmpfs", "/home/scratch", "tmpfs", "size=1m,mode=700")
        before = inside.read("cat", "/etc/fstab")
        assert "/home/scratch tmpfs" in t.run(*args)
        assert inside.read("cat", "/etc/fstab").endswith("tmpfs /home/scratch tmpfs size=1m,mode=700 0 0\n")
        t.run(*args)
        assert inside.read("cat", "/proc/mounts").count("/home/scratch") == 1
        with Task("mount", inside=inside.words) as other:
            other.run("tmpfs", "/home/scratch", "tmpfs", code=1)  # the folder is taken
        t.run(*args, undo=True)
        assert "/home/scratch" not in inside.read("cat", "/proc/mounts")
        assert inside.read("cat", "/etc/fstab") == before
        assert "scratch" not in inside.read("ls", "/home")
        t.run(*args, undo=True)
        for bad in (("tmpfs", "/", "tmpfs"), ("tmpfs", "x", "tmpfs"), ("a b", "/x", "tmpfs"), ("tmpfs", "/x")):
            t.run(*bad, code=1)
        # A path through a link or with extra slashes is the same folder; the undo unmounts the folder that was mounted.
        inside.read("sh", "-c", "mkdir -p /home/real/deep && ln -s real /home/link")
        args = ("tmpfs", "/home/link//deep/", "tmpfs", "size=1m")
        assert "/home/real/deep tmpfs" in t.run(*args)
        t.run(*args)
        assert inside.read("cat", "/proc/mounts").count("/home/real/deep") == 1
        assert inside.read("cat", "/etc/fstab").endswith("tmpfs /home/real/deep tmpfs size=1m 0 0\n")
        with Task("mount", inside=inside.words) as other:
            assert "mounted on /home/real/deep already" in other.run("tmpfs", "/home/real/deep/", "tmpfs", code=1)
        inside.read("ln", "-sfn", "elsewhere", "/home/link")
        t.run(*args, undo=True)
        assert "/home/real" not in inside.read("cat", "/proc/mounts") and inside.read("cat", "/etc/fstab") == before
        assert "deep" in inside.read("ls", "/home/real")
        inside.read("sh", "-c", "rm -r /home/real /home/link; ln -s / /home/root")
        t.run("tmpfs", "/home/root", "tmpfs", code=1)
        t.run("tmpfs", "/home/root", "tmpfs", undo=True)
        t.run("/dev/nosuchdisk", "/home/no", "ext4", code=1)
        t.run("/dev/nosuchdisk", "/home/no", "ext4", undo=True)
        assert "no\n" not in inside.read("ls", "/home")


@case
def parameters_of_the_kernel():
    inside = Inside.shared()
    with Task("sysctl", inside=inside.words) as t:
        old = inside.read("cat", "/proc/sys/kernel/hostname")
        assert "kernel.hostname = berth-ready" in t.run("kernel.hostname=berth-ready")
        assert inside.read("cat", "/proc/sys/kernel/hostname") == "berth-ready\n"
        assert inside.read("cat", "/etc/sysctl.d/90-berth-k.conf") == "kernel.hostname=berth-ready\n"
        t.run("kernel.hostname=berth-ready", undo=True)
        assert inside.read("cat", "/proc/sys/kernel/hostname") == old
        assert "k.conf" not in inside.read("ls", "/etc/sysctl.d")
        for bad in (("no.such=1",), ("../x=1",), ("kernel.hostname",), ()):
            t.run(*bad, code=1)
    with Task("sysctl", "debian") as t:  # it is an error if the kernel does not keep the value
        t.put("/proc/sys/vm/other", "0\n")
        assert "vm.other = 1" in t.run("vm.other=1")


@case
def huge_pages_at_once():
    with Task("huge-pages", "debian") as t:
        pool = t.put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3\n")
        t.put("/proc/sys/vm/compact_memory", "")
        assert "2Mi: got 8 of 8" in t.run("2Mi=8")
        t.run("2Mi=8", undo=True)
        assert pool.read_text() == "3\n"
        for bad in (("1Gi=1",), ("2Mi=x",), ("3Mi=1",), ()):
            t.run(*bad, code=1)
    inside = Inside.shared()
    with Task("huge-pages", "debian", inside=inside.words) as t:  # a kernel that provides only 3 pages
        pool = t.put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "3\n")
        t.put("/proc/sys/vm/compact_memory", "")
        subprocess.run([*inside.words, "mount", "--bind", pool, pool], check=True)
        subprocess.run([*inside.words, "mount", "-o", "remount,bind,ro", pool], check=True)
        said = t.run("2Mi=8", code=1)
        assert "2Mi: got 3 of 8" in said and "fewer than asked for: 2Mi" in said, said
        assert "got 3 of 8" in t.run("--some", "2Mi=8")


@case
def huge_pages_of_this_kernel():
    pool = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    if os.geteuid() != 0 or not os.access(pool, os.W_OK):
        raise Skip("this kernel has no huge pages of 2Mi that can be asked for")
    before = pool.read_text()
    with Task("huge-pages") as t:
        said = t.run("--some", f"2Mi={int(before) + 1}")
        got = pool.read_text()
        t.run("--some", f"2Mi={int(before) + 1}", undo=True)
        assert f"got {got.strip()} of {int(before) + 1}" in said, said
        assert pool.read_text() == before


@case
def huge_pages_from_the_next_boot_on():
    with Task("huge-pages", "debian") as t:
        t.stand_in("update-grub", "")
        t.run("--boot", "1Gi=4", "2Mi=16")
        cfg = t.root / "etc/default/grub.d/90-berth-hugepages.cfg"
        assert cfg.read_text() == ('GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX '
                                   'hugepagesz=1G hugepages=4 hugepagesz=2M hugepages=16"\n')
        t.run("--boot", "1Gi=4", "2Mi=16", undo=True)
        assert not cfg.exists() and t.called() == "update-grub\nupdate-grub\n"
    with Task("huge-pages", "rhel") as t:
        t.stand_in("grubby", "")
        t.run("--boot", "1Gi=4")
        t.run("--boot", "1Gi=4", undo=True)
        assert t.called() == ("grubby --update-kernel=ALL --args=hugepagesz=1G hugepages=4\n"
                              "grubby --update-kernel=ALL --remove-args=hugepagesz=1G hugepages=4\n")
    with Task("huge-pages", "alpine") as t:
        t.stand_in("update-extlinux", "")
        conf = t.put("/etc/update-extlinux.conf", 'timeout=3\ndefault_kernel_opts="quiet"\n')
        t.run("--boot", "2Mi=9")
        assert 'default_kernel_opts="quiet hugepagesz=2M hugepages=9"' in conf.read_text()
        t.run("--boot", "2Mi=9", undo=True)
        assert conf.read_text() == 'timeout=3\ndefault_kernel_opts="quiet"\n'


@case
def a_driver():
    with Task("driver", "debian") as t:
        modules = t.put("/proc/modules", "ext4 1 0 - Live 0x0\n")
        t.stand_in("modprobe", f"""case "$1" in
-r) sed -i '/^dummy_card /d' {modules} ;;
bad) exit 1 ;;
*) echo "dummy_card 1 0 - Live 0x0" >>{modules} ;;
esac""")
        assert "loaded" in t.run("dummy-card", "mode=2")
        assert "modprobe dummy-card mode=2" in t.called()
        assert (t.root / "etc/modprobe.d/berth-dummy-card.conf").read_text() == "options dummy-card mode=2\n"
        assert (t.root / "etc/modules-load.d/berth-dummy-card.conf").read_text() == "dummy-card\n"
        t.run("dummy-card", "mode=2", undo=True)
        assert modules.read_text() == "ext4 1 0 - Live 0x0\n" and not list((t.root / "etc").glob("mod*/*"))
        t.run("bad", code=1)
        t.run("a;b", code=1)


# ---- all of them ----

@case
def each_script_has_a_header_and_passes_shellcheck():
    assert NAMES == ["driver", "huge-pages", "mount", "package-install", "sysctl", "system-file", "system-upgrade",
                     "user"]
    listed = subprocess.run([os.environ["BERTH_BUILD"] + "/src/cli/berth", "optask", "ready"], capture_output=True,
                            text=True, env=dict(os.environ, BERTH_OPTASKS=str(FOLDER), COLUMNS="400"),
                            check=True).stdout
    for name in NAMES:
        assert name in listed, listed
        text = (FOLDER / f"{name}.sh").read_text()
        assert "\n# What: " in text and "\n# Arguments: " in text, name
        whole = (FOLDER / "lib.sh").read_text() + text
        assert len(whole) < 64 * 1024
        subprocess.run(["sh", "-n"], input=whole, text=True, check=True)
        if shutil.which("busybox"):
            subprocess.run(["busybox", "ash", "-n"], input=whole, text=True, check=True)
        if shutil.which("shellcheck"):
            done = subprocess.run(["shellcheck", "-s", "sh", "-"], input=whole, capture_output=True, text=True,
                                  check=False)
            assert done.returncode == 0, f"{name}: {done.stdout}"


def main():
    failed = 0
    wanted = [c for c in CASES if len(sys.argv) < 2 or any(word in c.__name__ for word in sys.argv[1:])]
    for number, function in enumerate(wanted, 1):
        begin = time.monotonic()
        try:
            function()
            print(f"ok {number} - {function.__name__} # {time.monotonic() - begin:.1f} s", flush=True)
        except Skip as why:
            print(f"ok {number} - {function.__name__} # SKIP {why}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {function.__name__}")
            print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="", flush=True)
    print(f"1..{len(wanted)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
