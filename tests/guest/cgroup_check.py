"""Cases of guest_cgroup_check.sh: test programs that make cgroups, each in a guest of its own with cgroup v2 only."""
import os
import pathlib
import re
import sys
import tempfile

import guest

# Programs, and the cases that they must not skip there: this kernel has all controllers.
PROGRAMS = {
    "machine-cgroup-cgroup_test": [
        "limits_are_written_and_changed", "cpu_quota_is_enforced", "memory_limit_kills_only_in_its_cgroup",
        "pids_limit_stops_fork_bomb", "fast_forking_processes_are_killed", "all_limits_in_one_cgroup",
        "io_limit_throttles_reads",
        "memory_limit_is_raised_and_lowered", "v2_alone_counts_and_kills", "v2_agent_moves_to_leaf"],
    "machine-cgroup-limit_watch_test": [],
}
SCRIPT = """
mkdir -p /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup
echo "guest: controllers $(cat /sys/fs/cgroup/cgroup.controllers)"
/bin/try; echo "guest: status $?"
echo "guest: left $(find /sys/fs/cgroup -mindepth 1 -type d | wc -l)"
"""


def main():
    guest.skip_unless_guests()
    build = pathlib.Path(os.environ["BERTH_BUILD"]) / "tests"
    wanted = [p for p in PROGRAMS if len(sys.argv) < 2 or any(w in p for w in sys.argv[1:])]
    failed = 0
    for number, name in enumerate(wanted, 1):
        if not (build / name).exists():
            guest.skip(f"{name} is not built")
        with tempfile.TemporaryDirectory(prefix="berth-") as work:
            disk = pathlib.Path(work) / "disk"
            with disk.open("wb") as f:
                f.truncate(64 << 20)  # a disk whose speed is limited
            g = guest.Guest(work, guest.DISK)
            g.add("/bin/try", build / name)
            done = g.run(SCRIPT, memory_mib=512, drives=[disk])
        ok = {m[1] for m in re.finditer(r"^(?:\[       OK \] |ok \d+ - )(\w+)", done.output, re.MULTILINE)}
        missing = [c for c in PROGRAMS[name] if c not in ok]
        good = done.status == 0 and not missing and "guest: left 0\n" in done.output
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name} under cgroup v2 alone, {len(ok)} cases")
        if not good:
            print("\n".join(f"# {line}" for line in [f"not passed: {missing}", *done.output.splitlines()]))
    print(f"1..{len(wanted)}")
    sys.exit(1 if failed else 0)


main()
