"""Cases of guest_boot_check.sh: a guest with two slots (slots.py) is upgraded several times.

Its disks from vdd on have the systems that upgrades write into a slot.
"""
import pathlib
import shutil
import sys
import tempfile

import guest
import slots

SLOT_BYTES, BOOTS_MAX = 12 << 20, 12
# Seconds for the try of a system that hangs, and of every other system, which is marked good long before, however slow
# this machine is.
HANGS_SECONDS, WATCH_SECONDS = 40, guest.PATIENCE
HANGS_PLAN = 2  # the next step of the plan when the hanging system is booted
WATCH = f"$([ $({slots.NOTE_READ}) = {HANGS_PLAN} ] && echo {HANGS_SECONDS} || echo {WATCH_SECONDS})"

# A working system: it prints its version, marks itself good, and does the next upgrade of the plan.
GOOD = r"""#!/bin/sh
export PATH=/bin:/sbin
slot=$1
echo "guest: up with @VERSION@"
ab() { berth-ab --state /dev/vda "$@"; }
ab good $slot
upgrade() { # from a disk to the other slot
    to=$(ab other); disk=/dev/vdb; [ $to = a ] || disk=/dev/vdc
    echo "guest: writes $1 to $to"
    dd if=$1 of=$disk bs=1048576 conv=fsync 2>/dev/null
    ab try $to $2; reboot -f
}
plan=$(@NOTE_READ@)
echo "$((plan + 1))" | @NOTE_WRITE@
case $plan in
0) upgrade /dev/vdd 2 ;; # no init: the kernel panics
1) upgrade /dev/vde 1 ;; # boots and hangs
2) upgrade /dev/vdf 3 ;; # works
3) reboot -f ;;          # stays in its slot
*) echo "guest: ends with @VERSION@, $(ab show)"; sync; poweroff -f ;;
esac
""".replace("@NOTE_READ@", slots.NOTE_READ).replace("@NOTE_WRITE@", slots.NOTE_WRITE)
HANGS = "#!/bin/sh\necho 'guest: up with version 3, and hangs'\nwhile :; do sleep 100; done\n"
WANTED = [
    "guest: boots a, good=a", "guest: up with version 1", "guest: writes /dev/vdd to b",
    # Without an init the kernel panics and the machine reboots, twice; then into the good slot.
    "guest: boots b, good=a try=b left=1", "guest: boots b, good=a try=b left=0",
    "guest: boots a, good=a", "guest: up with version 1", "guest: writes /dev/vde to b",
    "guest: boots b, good=a try=b left=0", "guest: up with version 3, and hangs",
    f"berth-ab: slot b is not good after {HANGS_SECONDS} s; the machine starts again",
    "guest: boots a, good=a", "guest: up with version 1", "guest: writes /dev/vdf to b",
    "guest: boots b, good=a try=b left=2", "guest: up with version 4",
    "guest: boots b, good=b", "guest: up with version 4", "guest: ends with version 4, good=b",
]


def system(work, name, init):
    """Makes a slot with this init; None: without an init."""
    files = slots.files_of_a_slot()
    if init:
        files.text("/sbin/init", init, 0o755)
    return slots.image(work, name, files, SLOT_BYTES)


def main():
    guest.skip_unless_guests()
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        work = pathlib.Path(folder)
        machine = slots.Machine(work, watch=WATCH, note=0)
        one = system(work, "one", GOOD.replace("@VERSION@", "version 1"))
        output = machine.run([one, shutil.copy(one, work / "b"), system(work, "broken", None),
                              system(work, "hangs", HANGS),
                              system(work, "four", GOOD.replace("@VERSION@", "version 4"))], BOOTS_MAX)
    said = [line.strip() for line in output.splitlines() if line.startswith(("guest: ", "berth-ab: "))]
    good = said == WANTED
    print(f"{'ok' if good else 'not ok'} 1 - broken upgrades come back, a good one stays")
    if not good:
        print("\n".join(f"# {line}"
                        for line in ["wanted:", *WANTED, "", "said:", *said, "", *output.splitlines()[-60:]]))
    print("1..1")
    sys.exit(0 if good else 1)


main()
