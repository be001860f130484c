"""A guest with two slots, whose disks outlive its boots: for checks of upgrades.

    machine = slots.Machine(work, watch="60", note=0)
    a = slots.image(work, "a", files, 12 << 20)       # what a slot holds
    output = machine.run([a, b, ...])                 # boots it until it says "guest: ends"

The first files do the part of a boot loader: they pick a slot by berth-ab and go there. Disks: vda is the state, with a block
that berth-ab leaves alone for a note of the check's; vdb and vdc are the slots a and b; what follows is the check's own.
"""
import gzip
import os
import pathlib
import subprocess

import guest

AB = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/berth-ab"
STATE_BYTES, NOTE_AT, NOTE_BYTES = 65536, 32, 512
# In shell, in a guest:
NOTE_READ = f"dd if=/dev/vda bs={NOTE_BYTES} skip={NOTE_AT} count=1 2>/dev/null | tr -d '\\0'"
NOTE_WRITE = f"dd of=/dev/vda bs={NOTE_BYTES} seek={NOTE_AT} conv=notrunc,sync,fsync 2>/dev/null"
ENDS = "guest: ends"

# What a boot loader does, and the guard over a system that is being tried.
LOADER = r"""
slot=$(berth-ab --state /dev/vda pick)
echo "guest: boots $slot, $(berth-ab --state /dev/vda show)"
# The guard needs nothing of the new system, nor of these files, which go when that begins.
mkdir -p /guard; mount -t tmpfs guard /guard; mkdir /guard/proc /guard/dev; cp -a /bin /guard
mount -t proc proc /guard/proc; mount -t devtmpfs dev /guard/dev
chroot /guard berth-ab --state /dev/vda watch @WATCH@ 2>/dev/console &
disk=/dev/vdb; [ $slot = a ] || disk=/dev/vdc
mkdir -p /root; mount -t ext4 $disk /root
mount --move /dev /root/dev; mount --move /proc /root/proc; mount --move /sys /root/sys
exec switch_root /root /sbin/init $slot
"""


def mkfs(path, size, *words):
    with path.open("wb") as f:
        f.truncate(size)
    path_of_mkfs = os.environ["PATH"] + ":/sbin:/usr/sbin"
    subprocess.run(["mkfs.ext4", "-q", "-F", *words, path], check=True, env=dict(os.environ, PATH=path_of_mkfs))
    return path


def files_of_a_slot():
    """busybox and berth-ab."""
    files = guest.busybox_files()
    files.text("/bin/berth-ab", AB.read_bytes(), 0o755)
    return files


def image(work, name, files, size):
    """A slot's content: a file system with these files."""
    files.unpack(work / f"{name}.d")
    return mkfs(work / name, size, "-d", work / f"{name}.d")


class Machine:
    """Slot a is the good one of a new machine. A system that is tried has so many seconds, by these words of shell."""

    def __init__(self, work, watch, note):
        self.initrd, self.state = work / "initrd", work / "state"
        self.state.write_bytes(bytes(STATE_BYTES))
        subprocess.run(["sh", AB, "--state", self.state, "init", "a"], check=True)
        with self.state.open("r+b") as f:
            f.seek(NOTE_AT * NOTE_BYTES)
            f.write(f"{note}\n".encode())
        files = guest.base_files(LOADER.replace("@WATCH@", watch), guest.DISK)
        files.text("/bin/berth-ab", AB.read_bytes(), 0o755)
        self.initrd.write_bytes(gzip.compress(files.archive(), 1))

    def run(self, drives, boots_max, **options):
        """What all boots have printed; drives are those after the state."""
        output = ""
        for _ in range(boots_max):  # qemu ends where the machine would start again
            try:
                output += guest.boot(self.initrd, drives=[self.state, *drives], **options)
            except SystemExit:
                print(output, "# the next boot hangs:", sep="\n", flush=True)
                raise
            if ENDS in output:
                break
        return output
