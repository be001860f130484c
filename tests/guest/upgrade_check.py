"""Cases of guest_upgrade_check.sh: a guest with two slots (slots.py) is a cluster and is upgraded by system-upgrade
--ab.

Both slots mount the fourth disk on /var/lib: it has the cluster, the agents' state, and the next step of the plan. The
machine is node n1; a second agent, n2, takes the pods that move away from it. Only the package manager is faked: it
does what /run/repository says. PID 1 is busybox's init, which stops the agents and then all processes before a reboot,
like other init systems. The note in the state is the number of seconds for the try of a new system.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import guest
import slots

SOURCE, BUILD = pathlib.Path(os.environ["BERTH_SOURCE"]), pathlib.Path(os.environ["BERTH_BUILD"])
SLOT_BYTES, SHARED_BYTES, MEMORY_MIB = 56 << 20, 64 << 20, 512
BOOTS_MAX = 10
# Seconds of one wait in the guest, which prints its state before the guest as a whole counts as hanging.
PATIENCE = guest.PATIENCE // 3
# A working system is marked good long before, however slow this machine is; the check does not wait for a broken one.
WATCH_SECONDS, WATCH_BROKEN_SECONDS = guest.PATIENCE, 60
PROGRAMS = {"/sbin/berthd": "src/berthd/berthd", "/sbin/berth-agent": "src/agent/berth-agent",
            "/sbin/berth-shim": "src/shim/berth-shim", "/bin/berth": "src/cli/berth"}

INITTAB = """::sysinit:/etc/up
::respawn:/etc/service berthd --data /var/lib/berth --init
::respawn:/etc/service berth-agent --state /var/lib/berth-agent
::respawn:/etc/service berth-agent --state /var/lib/other-agent --cgroup other
::once:/etc/plan
::shutdown:/etc/down
"""
UP = """#!/bin/sh
mount -t tmpfs run /run; mount -t tmpfs tmp /tmp; mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t ext4 /dev/vdd /var/lib
mkdir -p /var/lib/log
ifconfig lo 127.0.0.1
"""
DOWN = f"""#!/bin/sh
kill $(pidof berth-agent)
for i in $(seq {PATIENCE}); do pidof berth-agent >/dev/null || break; sleep 1; done
"""
# The agent waits until it has joined; its log survives reboots.
SERVICE = """#!/bin/sh
export PATH=/sbin:/bin
while [ $1 = berth-agent ] && [ ! -e $3/identity/node.json ]; do sleep 1; done
"$@" >>/var/lib/log/${3##*/} 2>&1
sleep 1
"""
APK = """#!/bin/sh
case $1 in
info) cat /etc/packages ;;
upgrade) . /run/repository ;;
esac
"""
APP = """kind: group
id: family
---
kind: user
id: ada
group: family
role: user
---
kind: app
name: hello
owner: ada
command: [/bin/sh, -c, 'cat /proc/sys/kernel/random/boot_id; exec sleep 100000']
requests: {cpu: 50m, memory: 16Mi}
"""
# The first boot of this system panics; the second one has no agent. The upgrade waits until the plan has seen the
# drain.
BROKEN = r"""for i in $(seq @PATIENCE@); do [ ! -e /run/moved ] || break; sleep 1; done
echo base-2.0-r0 >/etc/packages
rm /sbin/berth-agent /sbin/init
printf '#!/bin/sh\n[ ! -e /tried ] || exec /bin/init\n: >/tried; sync\n' >/sbin/init
chmod 755 /sbin/init
"""
# Each step ends with a reboot; the next boot continues with the next step.
PLAN = r"""#!/bin/sh
exec >/dev/console 2>&1
export PATH=/sbin:/bin HOME=/root NO_COLOR=1 COLUMNS=400 BERTH_TOKEN_FILE=/var/lib/berth/admin.token
say() { echo "guest: $step: $*"; }
fail() {
    say "failed: $*"
    cat /run/last; berth status; berth get pods; berth describe node n1; berth describe app hello.ada
    berth optask list; dmesg | tail -n 20
    for log in /var/lib/log/* /var/lib/berth-agent/optasks/logs/*/log; do echo "--- $log"; tail -n 60 $log; done
    echo "@ENDS@"; sync; poweroff -f
}
wait_for() { # WHAT COMMAND...
    what=$1 end=$(($(date +%s) + @PATIENCE@)); shift
    until "$@" >/run/last 2>&1; do
        [ $(date +%s) -lt $end ] || fail "never: $what"
        sleep 1
    done
}
bounded() { timeout @PATIENCE@ "$@" >/run/last 2>&1; }
step_is() { berth optask show $1 | grep -q "^n1 *$2 "; }
show() { # KEY
    berth optask show $1 | sed -n "s/^\(state:\|n1 \) */guest: $step: $1 \1 /p"
}
said() { cat /var/lib/berth-agent/optasks/logs/*/log | grep -q "$1" && say "a log has: $1"; }
join() { # NODE STATE
    eval "$(berth node add $1 2>/dev/null) --state $2" >/run/last 2>&1 || fail "it cannot join"
}
node_is() { berth get node $1 -o json | grep -q "\"state\": *\"$2\""; }
# It has written which boot it runs in.
app_runs() { berth logs hello.ada | grep -q $(cat /proc/sys/kernel/random/boot_id); }
app_runs_on() { berth get pods -o json | grep -q "\"node\": *\"$1\"" && app_runs; }
runs_again() { wait_for "the app runs in this boot" app_runs; say "the app runs"; }
upgrade() { # KEY [OPTION...]: until it is over, however often it is asked for
    key=$1; shift
    bounded berth optask run --node n1 --key $key "$@" --wait system-upgrade --ab /dev/vda a=/dev/vdb b=/dev/vdc tries=2
}
begin() { upgrade "$@"; fail "the machine does not start anew"; }
state() { berth-ab --state /dev/vda show; }
repository() { cat >/run/repository; }

step=$(cat /var/lib/step 2>/dev/null || echo 0)
echo $((step + 1)) >/var/lib/step
sync
say "up with $(cat /etc/packages), $(state)"
[ -e /sbin/berth-agent ] || exit
wait_for "the daemon answers" berth status
case $step in
0)
    join n1 /var/lib/berth-agent
    wait_for "node n1 is ready" node_is n1 ready
    bounded berth apply -f /etc/app.yaml || fail "the app is refused"
    wait_for "the app runs on n1" app_runs_on n1
    say "the app runs"
    join n2 /var/lib/other-agent
    wait_for "node n2 is ready" node_is n2 ready
    echo @WATCH_BROKEN@ | @NOTE_WRITE@
    repository <<'END'
@BROKEN@
END
    (
        wait_for "the app has moved to n2" app_runs_on n2
        say "the app has moved to n2"
        : >/run/moved
    ) &
    begin broken --drain
    ;;
2)
    echo @WATCH@ | @NOTE_WRITE@
    upgrade broken --drain && fail "it is done"
    show broken
    wait_for "node n1 is ready" node_is n1 ready
    say "n1 is ready"
    runs_again
    bounded berth node drain n2 --wait || fail "n2 is not drained"
    wait_for "the app runs on n1" app_runs_on n1
    say "n1 takes work"
    bounded berth node rm n2 || fail "n2 stays"
    rm -r /var/lib/other-agent
    echo 'echo base-3.0-r0 >/etc/packages' | repository
    begin good
    ;;
3)
    upgrade good || fail "it is not done"
    show good
    said "1 packages are others than before"
    say "$(state)"
    runs_again
    bounded berth optask undo good --wait
    fail "the machine does not start anew"
    ;;
4)
    wait_for "it is undone" step_is good undone
    show good
    say "$(state)"
    runs_again
    echo 'echo base-4.0-r0 >/etc/packages' | repository
    begin better
    ;;
5)
    upgrade better || fail "it is not done"
    show better
    runs_again
    echo 'echo base-5.0-r0 >/etc/packages; reboot -f' | repository # as if the plug were pulled
    begin cut
    ;;
6)
    upgrade cut && fail "it is done"
    show cut
    say "$(state)"
    runs_again
    bounded berth optask undo better --wait && fail "it is undone"
    show better
    say "$(state)"
    echo "@ENDS@"
    poweroff
    ;;
esac
"""


def system(work):
    """Makes the content of slot a of the new machine."""
    files = slots.files_of_a_slot()
    for folder in ("/run", "/var/lib", "/root"):
        files.folder(folder)
    for path, program in PROGRAMS.items():
        stripped = work / pathlib.Path(path).name
        subprocess.run(["strip", "-o", stripped, BUILD / program], check=True)
        files.add(path, stripped)
    files.link("/sbin/init", "../bin/busybox")
    for script in (SOURCE / "share/optasks").glob("*.sh"):
        files.text(f"/share/berth/optasks/{script.name}", script.read_bytes())
    plan = PLAN
    for name, text in {"BROKEN": BROKEN, "ENDS": slots.ENDS, "PATIENCE": PATIENCE, "WATCH_BROKEN": WATCH_BROKEN_SECONDS,
                       "WATCH": WATCH_SECONDS, "NOTE_WRITE": slots.NOTE_WRITE}.items():
        plan = plan.replace(f"@{name}@", str(text))
    for path, text in {"/etc/up": UP, "/etc/down": DOWN, "/etc/service": SERVICE, "/etc/plan": plan,
                       "/sbin/apk": APK}.items():
        files.text(path, text, 0o755)
    for name, text in {"inittab": INITTAB, "app.yaml": APP, "packages": "base-1.0-r0\n", "os-release": "ID=alpine\n",
                       "passwd": "root:x:0:0::/root:/bin/sh\n"}.items():
        files.text(f"/etc/{name}", text)
    return slots.image(work, "a", files, SLOT_BYTES)


# The beginnings of the lines that the guest prints, in order.
BOOTS = ["a, good=a", "b, good=a try=b left=1", "b, good=a try=b left=0", "a, good=a", "b, good=a try=b left=1",
         "a, good=b try=a left=1", "b, good=a try=b left=1", "b, good=b"]
CASES = {
    "an upgrade that panics and then has no agent is left again": [
        "0: up with base-1.0-r0, good=a", "0: the app has moved to n2",
        "1: up with base-2.0-r0, good=a try=b left=0", "2: up with base-1.0-r0, good=a",
        "2: broken state: failed",
        "2: broken n1 undone 1 1 script exit code 1: slot b did not come up; this is the system of before, in slot a",
        "2: n1 is ready", "2: n1 takes work"],
    "a good one stays": [
        "3: up with base-3.0-r0, good=a try=b left=1", "3: good state: done", "3: good n1 done 1 0",
        "3: a log has: 1 packages are others than before", "3: good=b"],
    "undo brings back the system of before": [
        "4: up with base-1.0-r0, good=b try=a left=1", "4: good state: undone", "4: good n1 undone 2 0", "4: good=a"],
    "a power failure leaves what was good, and nothing goes back to what was written over": [
        "5: up with base-4.0-r0, good=a try=b left=1", "5: better state: done", "6: up with base-4.0-r0, good=b",
        "6: cut state: failed", "6: cut n1 undone 1 lost the machine or its shim stopped while it was running",
        "6: good=b",
        "6: better n1 failed 2 1 script the undo failed: exit code 1: slot a no longer holds the system of before, but: an upgrade",
        "6: good=b"],
    "what ran runs again after each start": [f"{step}: the app runs" for step in (0, 2, 3, 4, 5, 6)],
}


def missing(wanted, said):
    """Returns the beginnings of lines that were not printed, or not after the one before."""
    lines = iter(said)
    return [words for words in wanted if not any(line.startswith(words) for line in lines)]


def main():
    guest.skip_unless_guests()
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        work = pathlib.Path(folder)
        machine = slots.Machine(work, watch=f"$({slots.NOTE_READ})", note=WATCH_SECONDS)
        drives = [system(work), slots.mkfs(work / "b", SLOT_BYTES), slots.mkfs(work / "shared", SHARED_BYTES)]
        output = machine.run(drives, BOOTS_MAX, memory_mib=MEMORY_MIB)
    said = [re.sub(r"\s+", " ", line[len("guest: "):]) for line in output.splitlines() if line.startswith("guest: ")]
    wrong = {name: missing(wanted, said) for name, wanted in CASES.items()}
    wrong["it boots nothing else"] = (
        [] if [w[len("boots "):] for w in said if w.startswith("boots ")] == BOOTS else BOOTS)
    for number, (name, words) in enumerate(wrong.items(), 1):
        print(f"{'not ok' if words else 'ok'} {number} - {name}")
        print("".join(f"# wanted: {line}\n" for line in words), end="")
    if any(wrong.values()):
        print("".join(f"# {line}\n" for line in output.splitlines()), end="")
    print(f"1..{len(wrong)}")
    sys.exit(1 if any(wrong.values()) else 0)


main()
