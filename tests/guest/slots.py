"""A guest with two slots whose disks survive its reboots, for checks of upgrades.

    machine = slots.Machine(work, watch="60", note=0)
    a = slots.image(work, "a", files, 12 << 20)       # what a slot holds
    output = machine.run([a, b, ...])                 # boots it until it says "guest: ends"

Its initramfs acts as the boot loader: it picks a slot with berth-ab and switches to it. Disks: vda has the state, with
a block for a note of the check that berth-ab ignores; vdb and vdc are the slots a and b; the others belong to the
check.
"""
import gzip
import os
import pathlib
import subprocess

import guest

AB = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/berth-ab"
STATE_BYTES, NOTE_AT, NOTE_BYTES = 65536, 32, 512
# Shell commands for the guest:
NOTE_READ = f"dd if=/dev/vda bs={NOTE_BYTES} skip={NOTE_AT} count=1 2>/dev/null | tr -d '\\0'"
NOTE_WRITE = f"dd of=/dev/vda bs={NOTE_BYTES} seek={NOTE_AT} conv=notrunc,sync,fsync 2>/dev/null"
ENDS = "guest: ends"

# The boot loader, and the watchdog of a system that is being tried.
LOADER = r"""
slot=$(berth-ab --state /dev/vda pick)
echo "guest: boots $slot, $(berth-ab --state /dev/vda show)"
# The watchdog needs nothing of the new system nor of this initramfs, which is freed when the system starts.
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
    """Returns busybox and berth-ab."""
    files = guest.busybox_files()
    files.text("/bin/berth-ab", AB.read_bytes(), 0o755)
    return files


def image(work, name, files, size):
    """Makes a file system with these files, the content of a slot."""
    files.unpack(work / f"{name}.d")
    return mkfs(work / name, size, "-d", work / f"{name}.d")


class Machine:
    """A new machine with slot a as the good one. `watch` are shell words for the seconds of a try."""

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
        """Returns the output of all boots. `drives` are the disks after the state."""
        output = ""
        for _ in range(boots_max):  # qemu ends at each reboot
            try:
                output += guest.boot(self.initrd, drives=[self.state, *drives], **options)
            except SystemExit:
                print(output, "# the next boot hangs:", sep="\n", flush=True)
                raise
            if ENDS in output:
                break
        return output
