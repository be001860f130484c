#!/bin/bash
# tally_test.sh - the end of a log says what failed: tools/test picks the lines that say why, tools/tally counts and names.
# shellcheck disable=SC2016 # what is quoted is a script of its own
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/kit.sh"
needs python3
tools=$here/../tools
kit_begin

# A build folder without a build: its tests are the scripts in $work, $1.sh and so on, and ninja has nothing to do.
fake_folder() {
    local name rows=
    for name; do rows="$rows, {\"name\": \"$name\", \"suite\": [\"berth:test\"], \"cmd\": [\"bash\", \"$work/$name.sh\"], \"env\": {},
        \"timeout\": 20, \"depends\": [], \"priority\": 0}"; done
    mkdir -p "$work/tools" "$work/dir/meson-info"
    cp "$tools/test" "$tools/tally" "$work/tools"
    printf '#!/bin/sh\n[ -f "%s/broken" ] || exit 0\necho "x.c:1: error: no"\nexit 1\n' "$work" >"$work/tools/build"
    chmod +x "$work/tools/build"
    echo "[${rows#,}]" >"$work/dir/meson-info/intro-tests.json"
    echo '[]' >"$work/dir/meson-info/intro-targets.json"
}

# make, as tally calls it: a target `fails` runs the tests of the folder, `inner` a tally of them, `passes` none.
fake_make() {
    cat >"$work/make" <<END
#!/bin/bash
case \$2 in
fails) exec $work/tools/test $work/dir ;;
inner) exec $work/tools/tally passes fails ;;
silent) exit 1 ;;
esac
END
    chmod +x "$work/make"
}

# tally TARGET...: as at the top of a run; its output is in $work/said, of that what is told once more in $work/again.
tally() {
    env -u BERTH_RESULTS MAKE="$work/make" "$work/tools/tally" "$@" >"$work/said" 2>&1 && return 1
    sed '1,/^== what failed, once more/d' "$work/said" >"$work/again"
}

tells() {
    grep -qxF -- "$1" "$work/again" && return
    echo "the end should have a line '$1':"
    cat "$work/again"
    return 1
}

hushes() {
    grep -qF -- "$1" "$work/again" || return 0
    echo "the end should not say '$1':"
    cat "$work/again"
    return 1
}

cases_within_a_case() {
    {
        echo 'echo "ok 1 - before"; echo "not ok 2 - all of them"'
        echo 'for i in $(seq 100); do echo "# ok $i - right $i"; done'
        echo 'echo "# not ok 101 - wrong"; echo "# # because"; echo "# ok 102 - behind"; echo 1..2; exit 1'
    } >"$work/a.sh"
    fake_folder a
    tally fails
    tells '    | not ok 2 - all of them' && tells '    | # not ok 101 - wrong' && tells '    | # # because' && hushes 'right' && hushes behind
}

what_was_printed_before() {
    printf '%s\n' 'echo 1..2; echo "ok 1 - a"; echo "seed 7: bad"; echo "not ok 2 - b"; echo "# b.c:1: error"; exit 1' >"$work/a.sh"
    fake_folder a
    tally fails
    tells '    | seed 7: bad' && tells '    | # b.c:1: error' && hushes 'ok 1'
}

the_end_of_what_broke_off() {
    printf '%s\n' 'echo 1..200; for i in $(seq 99); do echo "ok $i - c$i"; done; echo "x.c:3: assertion failed"; kill -ABRT $$' >"$work/a.sh"
    fake_folder a
    tally fails
    tells '    | x.c:3: assertion failed' && tells '    ended by signal SIGABRT' && tells '    | ok 99 - c99' && hushes 'c50'
}

thirty_lines_at_most() {
    printf '%s\n' 'for i in $(seq 500); do echo "not ok $i - w$i"; done; echo 1..500; exit 1' >"$work/a.sh"
    fake_folder a
    tally fails
    [ "$(grep -c '^    |' "$work/again")" = 30 ] && tells '    | not ok 1 - w1' && tells '    | not ok 500 - w500'
}

names_at_the_end() {
    echo 'exit 3' >"$work/a.sh"
    echo 'exit 0' >"$work/b.sh"
    cp "$work/a.sh" "$work/c.sh"
    fake_folder a b c
    tally passes inner silent passes fails
    tail -n 5 "$work/said" >"$work/again"
    diff - "$work/again" <<END
== and its names
fails: a, c
silent: (see above)
fails: a, c
2 passed, 5 failed, 0 skipped
END
}

builds_that_fail() {
    echo 'exit 0' >"$work/a.sh"
    fake_folder a
    touch "$work/broken"
    tally fails
    rm "$work/broken"
    tells '    | x.c:1: error: no' && tells 'fails: build'
}

what_passes_is_not_told_again() {
    echo 'exit 0' >"$work/a.sh"
    fake_folder a
    ! tally fails && ! grep -q 'once more' "$work/said" && [ "$(tail -n 1 "$work/said")" = "1 passed, 0 failed, 0 skipped" ]
}

# Of six programs and six scripts, or six programs alone: as many as there are processors, of both kinds; more where these are
# idle, and more scripts where only programs compute.
as_many_as_there_is_room_for() {
    cp "$tools/test" "$work/runner.py"
    PYTHONPATH=$work python3 - <<'END'
import threading, time
import runner

running, lock, max_scripts = [], threading.Lock(), 0

def crowd(unused, kinds, wanted=1):
    """The most that ran at a time, and of how many kinds they were the first time. None ends before so many run, if these come."""
    seen, crowded = [], threading.Event()
    def run(test, slow):
        global max_scripts
        with lock:
            running.append(test["name"])
            max_scripts = max(max_scripts, sum(name.endswith(".sh") for name in running))
            seen.append((len(running), len({name.endswith(".sh") for name in running})))
            if len(running) >= wanted:
                crowded.set()
        crowded.wait(20)
        time.sleep(0.2)
        with lock:
            running.remove(test["name"])
        return test["name"]
    runner.run, runner.Unused.look = run, lambda _: unused
    tests = [{"name": name, "cmd": [name]} for i in range(6) for name in (f"base/{i}_test", f"tests/{i}_test.sh")[:kinds]]
    ran = list(runner.run_all(tests, 1))
    assert sorted(ran) == sorted(test["name"] for test in tests), ran
    most = max(seen)[0]
    return next(row for row in seen if row[0] == most)

runner.PROCESSORS = 2
idle, niced, busy = (1.5, 0), (0, 1.5), (0.1, 0.2)
for unused, want in ((busy, (2, 2)), (idle, (6, 2)), (niced, (6, 2)), (idle, (6, 1)), (niced, (2, 1))):
    got = crowd(unused, want[1], want[0])
    assert got == want, f"{unused} processors are unused: {got}, not {want}"
assert max_scripts > 1
runner.starts_agents, max_scripts = runner.is_script, 0
crowd(idle, 2)
assert max_scripts == 1, f"{max_scripts} that start agents ran at a time"
END
}

# Once more with more time, where it had not even begun.
a_program_that_hangs_is_ended() {
    local seconds
    echo 'echo begun; sleep 600 & sleep 600' >"$work/a.sh"
    for seconds in 1 20; do
        fake_folder a
        sed -i "s/\"timeout\": 20/\"timeout\": $seconds/" "$work/dir/meson-info/intro-tests.json"
        tally fails
        tells "    still running after $seconds s" || return
        tells '    | begun' && return
    done
    return 1
}

fake_make
check "cases within a case are found" cases_within_a_case
check "what was printed before a case is told with it" what_was_printed_before
check "of what broke off the end is told" the_end_of_what_broke_off
check "thirty lines of a test at most" thirty_lines_at_most
check "the names stand at the end" names_at_the_end
check "a build that fails says why" builds_that_fail
check "what passes is not told again" what_passes_is_not_told_again
check "a program that hangs is ended, with its children" a_program_that_hangs_is_ended
check "as many run as there is room for" as_many_as_there_is_room_for
kit_end
