#!/bin/bash
# tally_test.sh - tests the failure report at the end of a log: tools/test picks the relevant lines, tools/tally counts
# and names failures. Also tests which failures are retried (tools/retry.py) and how unstable tests are reported.
# sanitize: no, it runs nothing of Berth
# shellcheck disable=SC2016 # what is quoted is a script of its own
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs python3
tools=$here/../tools
kit_begin

# fake_folder NAME...: makes a build folder without a build. Its tests are the scripts $work/NAME.sh, and ninja has
# nothing to do.
fake_folder() {
    local name rows=
    for name; do
        rows="$rows, {\"name\": \"$name\", \"suite\": [\"berth:test\"], \"cmd\": [\"bash\", \"$work/$name.sh\"],
        \"env\": {}, \"timeout\": 20, \"depends\": [], \"priority\": 0}"
    done
    mkdir -p "$work/tools" "$work/tests" "$work/dir/meson-info"
    rm -f "$work"/*.runs "$work/tests/unstable"
    cp "$tools/test" "$tools/tally" "$tools/retry.py" "$work/tools"
    printf '#!/bin/sh\n[ -f "%s/broken" ] || exit 0\necho "x.c:1: error: no"\nexit 1\n' "$work" >"$work/tools/build"
    chmod +x "$work/tools/build"
    echo "[${rows#,}]" >"$work/dir/meson-info/intro-tests.json"
    echo '[]' >"$work/dir/meson-info/intro-targets.json"
}

# Makes a fake make for tally: the target `fails` runs the tests of the folder, `inner` runs tally, `passes` does
# nothing.
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

# tally TARGET...: runs tally as the outermost one; its output is in $work/said, the repeated part of it in $work/again.
tally() {
    env -u BERTH_RESULTS BERTH_PATIENCE=60 BUILD="$work/out" MAKE="$work/make" "$work/tools/tally" "$@" >"$work/said" \
        2>&1 && return 1
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
    tells '    | not ok 2 - all of them' && tells '    | # not ok 101 - wrong' && tells '    | # # because' &&
        hushes 'right' && hushes behind
}

what_was_printed_before() {
    printf '%s\n' 'echo 1..2; echo "ok 1 - a"; echo "seed 7: bad"; echo "not ok 2 - b"; echo "# b.c:1: error"; exit 1' \
        >"$work/a.sh"
    fake_folder a
    tally fails
    tells '    | seed 7: bad' && tells '    | # b.c:1: error' && hushes 'ok 1'
}

the_end_of_what_broke_off() {
    printf '%s\n' \
        'echo 1..200; for i in $(seq 99); do echo "ok $i - c$i"; done; echo "x.c:3: assertion failed"; kill -ABRT $$' \
        >"$work/a.sh"
    fake_folder a
    tally fails
    tells '    | x.c:3: assertion failed' && tells '    ended by signal SIGABRT' && tells '    | ok 99 - c99' &&
        hushes 'c50'
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
    ! tally fails && ! grep -q 'once more' "$work/said" &&
        [ "$(tail -n 1 "$work/said")" = "1 passed, 0 failed, 0 skipped" ]
}

# Runs six programs and six scripts, or six programs alone. As many of both kinds run at once as there are processors;
# more if processors are idle, and more scripts if only niced programs compute.
as_many_as_there_is_room_for() {
    cp "$tools/test" "$work/runner.py"
    cp "$tools/retry.py" "$work"
    PYTHONPATH=$work python3 - <<'END'
import threading, time
import runner

running, lock, max_scripts = [], threading.Lock(), 0

def crowd(unused, kinds, wanted=1):
    """Returns the most tests that ran at a time, and of how many kinds they were at first. No test ends before `wanted`
    of them run, or 20 s have passed."""
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
    tests = [{"name": name, "cmd": [name]} for i in range(6)
             for name in (f"base/{i}_test", f"tests/{i}_test.sh")[:kinds]]
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

# flaky NAME LINE...: makes a test that waits for processes. The lines are its failure, which happens in the first run
# only. It counts its runs in NAME.runs.
flaky() {
    local name=$1
    shift
    {
        printf '#!/bin/bash\n# waits: processes\necho run >>%s\n' "$work/$name.runs"
        echo "if [ \$(wc -l <$work/$name.runs) -gt 1 ]; then exit 0; fi"
        printf '%s\n' "$@"
    } >"$work/$name.sh"
}

ran() {
    [ "$(wc -l <"$work/$1.runs")" = "$2" ] && return
    echo "$1 ran $(wc -l <"$work/$1.runs") times, not $2"
    cat "$work/said"
    return 1
}

ends_with() {
    printf '%s\n' "$@" >"$work/want"
    tail -n $# "$work/said" | diff "$work/want" - || { cat "$work/said" && return 1; }
}

unstable_passes_and_is_reported() {
    flaky a 'echo 1..1; echo "not ok 1 - never: it is ready"; exit 1'
    echo 'exit 0' >"$work/b.sh"
    fake_folder a b
    tally inner && return 1
    ran a 2 && ends_with 'unstable: a (dir)' '2 passed, 0 failed, 0 skipped' || return
    grep -q '    | not ok 1 - never: it is ready' "$work/said" || return
    [ "$(cat "$work/out/unstable.txt")" = "$(date -u +%F) a dir" ]
}

# The second run begins after all other tests have ended.
retries_run_alone() {
    flaky a 'exit 1'
    local name
    flaky c 'exit 1'
    for name in a c; do
        sed -i "3i echo \$EPOCHREALTIME $name begins >>$work/$name.times" "$work/$name.sh"
        sed -i "4i trap 'echo \$EPOCHREALTIME $name ends >>$work/$name.times' EXIT" "$work/$name.sh"
    done
    echo "sleep 1; echo \$EPOCHREALTIME b ends >>$work/b.times" >"$work/b.sh"
    fake_folder a b c
    rm -f "$work"/*.times
    tally fails && return 1
    sort -n "$work"/*.times | awk '$2 == "b" { over = 1 } over { print $2, $3 }' >"$work/order"
    printf '%s\n' 'b ends' 'a begins' 'a ends' 'c begins' 'c ends' | diff - "$work/order"
}

fails_again_is_failed() {
    printf '#!/bin/bash\n# waits: networks\necho run >>%s/a.runs; echo no; exit 1\n' "$work" >"$work/a.sh"
    fake_folder a
    tally fails && ran a 2 && tells '    failed again when it ran alone' &&
        ends_with 'fails: a' '0 passed, 1 failed, 0 skipped'
}

no_marker_no_retry() {
    flaky a 'exit 1'
    sed -i '/waits:/d' "$work/a.sh"
    fake_folder a
    tally fails && ran a 1 && tells '    not retried: it waits for nothing outside itself'
}

an_unknown_marker_is_told() {
    flaky a 'exit 1'
    sed -i 's/waits: processes/waits: luck/' "$work/a.sh"
    fake_folder a
    tally fails && ran a 1 && grep -q 'not retried: .*`waits: luck` is not one of' "$work/again"
}

# Each row: the reason why the failure is not retried, and the failure.
defects_are_never_retried() {
    local why line row rows=()
    while IFS='|' read -r why line; do
        row=row${#rows[@]}
        flaky "$row" "$line" 'exit 1'
        echo "$why" >"$work/$row.why"
        rows+=("$row")
    done <<'END'
a crash|kill -ABRT $$
a crash|kill -SEGV $$
a crash|exit 139
a crash|echo "berthd: cluster.c:1: f: Assertion \`x' failed."
a crash|echo "# crash: berthd ended with -11"
a crash|echo "free(): invalid pointer"
a sanitizer report|echo "==1==ERROR: AddressSanitizer: heap-use-after-free"
a sanitizer report|echo "# x.c:3:1: runtime error: signed integer overflow"
a sanitizer report|echo "==1==ERROR: LeakSanitizer: detected memory leaks"
a report of valgrind|echo "==1== ERROR SUMMARY: 2 errors from 1 contexts"
a broken invariant|echo "invariant 11 is broken"
a broken invariant|echo "1 breach in 30 events"
a checksum|echo "record 7: bad checksum"
a replay|echo "the replay of plan 3 differs"
a fixed seed|echo "seed 4711: it failed"
a test of permissions|echo "1..1"; echo "not ok 1 - roles and permissions"
a hostile test|echo "1..1"; echo "not ok 1 - hostile requests"
END
    fake_folder "${rows[@]}"
    tally fails || return
    for row in "${rows[@]}"; do
        ran "$row" 1 || return
        why=$(sed -n "/^$row /,/not retried/s/^    not retried: //p" "$work/again")
        [ "$why" = "$(cat "$work/$row.why")" ] ||
            { echo "$why, not $(cat "$work/$row.why")" && cat "$work/$row.sh" && return 1; }
    done
    [ "${#rows[@]}" = 17 ]
}

# A process that crashes after the last case fails its test, although each case passed.
a_crash_fails_the_test() {
    printf '%s\n' 'echo 1..1; echo "ok 1 - a"; echo "# crash: berthd ended with -6"' >"$work/a.sh"
    fake_folder a
    tally fails && tells '    a process crashed'
}

# Tests with these names are never retried, whatever they wait for.
names_that_are_never_retried() {
    local name names=(hostile_jobs_test permissions_test properties_test days_test crash_test journal_test replay_test
        seeds_test plants_check)
    for name in "${names[@]}"; do flaky "$name" 'exit 1'; done
    fake_folder "${names[@]}"
    tally fails || return
    for name in "${names[@]}"; do ran "$name" 1 || return; done
    [ "$(grep -c '^    not retried: a' "$work/again")" = ${#names[@]} ]
}

# Passed cases may mention words that prevent a retry.
passed_cases_do_not_count() {
    flaky a 'echo 1..2; echo "ok 1 - a bad checksum, an invariant, hostile"' \
        'echo "not ok 2 - never: it is ready"; exit 1'
    fake_folder a
    tally fails && return 1
    ran a 2
}

# At most three retries in all targets together; if more tests fail at once, none is retried.
at_most_three() {
    local name
    for name in a b; do flaky "$name" 'exit 1'; done
    fake_folder a b
    tally fails && return 1
    ends_with 'unstable: a (dir)' 'unstable: b (dir)' '2 passed, 0 failed, 0 skipped' || return
    printf '#!/bin/bash\nrm -f %s/*.runs; exec %s/tools/test %s/dir\n' "$work" "$work" "$work" >"$work/twice"
    chmod +x "$work/twice"
    sed -i "s,^silent),again) exec $work/twice ;;\nsilent)," "$work/make"
    tally again again || return
    tells 'unstable: 4 tests, at most 3 may be' && ends_with '4 passed, 1 failed, 0 skipped' || return
    for name in a b c d; do flaky "$name" 'exit 1'; done
    fake_folder a b c d
    tally fails && ran d 1 && ends_with 'fails: a, b, c, d' '0 passed, 4 failed, 0 skipped'
}

twice_on_the_list_is_not_retried() {
    flaky a 'exit 1'
    fake_folder a
    printf '# date test\n2026-01-02 a\n2026-01-03 b\n' >"$work/tests/unstable"
    tally fails && return 1
    ran a 2 || return
    rm "$work/a.runs"
    echo '2026-02-01 a' >>"$work/tests/unstable"
    tally fails && ran a 1 && tells '    not retried: it is in tests/unstable 2 times: repair it and remove its lines'
}

# A sanitizer report counts even if the test does not read the process's output: tools/test makes sanitizers write it to
# a file.
unseen_reports_fail() {
    echo 'p=${ASAN_OPTIONS##*log_path=}; echo "==7==ERROR: AddressSanitizer: heap-buffer-overflow" >"$p.7"; exit 0' \
        >"$work/a.sh"
    fake_folder a
    ASAN_OPTIONS=allocator_may_return_null=1 tally fails || return
    tells '    a sanitizer report' && tells '    | ==7==ERROR: AddressSanitizer: heap-buffer-overflow'
}

# BERTH_PATIENCE of scripts is larger in slow builds and under load, unless the caller sets it.
patience_scales_with_load() {
    cp "$tools/test" "$work/runner.py"
    cp "$tools/retry.py" "$work"
    env -u BERTH_PATIENCE PYTHONPATH="$work" python3 - <<'END'
import os
import runner

def patience(load, slow):
    runner.os.getloadavg = lambda: (load, 0, 0)
    return int(runner.environment_of({"env": {}}, slow, runner.load_factor(), "/tmp")["BERTH_PATIENCE"])

runner.PROCESSORS = 2
for load, slow, want in ((0, 1, 60), (6, 1, 60), (12, 1, 120), (100, 1, 180), (0, 2, 120), (0, 5, 180), (12, 5, 360)):
    assert patience(load, slow) == want, (load, slow, patience(load, slow), want)
os.environ["BERTH_PATIENCE"] = "7"
assert patience(100, 5) == 7
END
}

# Each script has its own network namespace, so that two scripts may bind the same port; a script with `# network:
# outside` has the machine's.
scripts_have_networks_of_their_own() {
    unshare --net ip link set lo up 2>/dev/null || { echo "no namespaces here" && return 0; }
    echo "readlink /proc/self/ns/net >$work/a.ns; ip -o link show up >$work/a.links" >"$work/a_test.sh"
    printf '#!/bin/sh\n# network: outside\nreadlink /proc/self/ns/net >%s\n' "$work/b.ns" >"$work/b_test.sh"
    fake_folder a_test b_test
    sed -i 's/"name": "\(._test\)"/"name": "\1.sh"/g' "$work/dir/meson-info/intro-tests.json"
    tally fails && return 1
    grep -q 'lo:' "$work/a.links" && [ "$(cat "$work/a.ns")" != "$(readlink /proc/self/ns/net)" ] &&
        [ "$(cat "$work/b.ns")" = "$(readlink /proc/self/ns/net)" ]
}

# make soak-tests: every run counts; the first failure is printed whole, the others in one line each.
soak_finds_the_rate() {
    printf '#!/bin/bash\necho run >>%s/a.runs; n=$(wc -l <%s/a.runs)\n' "$work" "$work" >"$work/a.sh"
    echo '[ $n != 2 ] && [ $n != 4 ] || { echo "1..1"; echo "not ok 1 - never: up"; echo "# because $n"; exit 1; }' \
        >>"$work/a.sh"
    fake_folder a
    cp "$tools/soak-tests" "$work/tools"
    "$work/tools/soak-tests" --jobs 1 --hogs 1 "$work/dir" 5 a >"$work/said" 2>&1 && return 1
    cat "$work/said"
    grep -q '^a .* 2 of 5 failed (40.0 %)$' "$work/said" && grep -q '    2 times: not ok 1 - never: up' "$work/said" ||
        return
    [ "$(grep -c '# because' "$work/said")" = 1 ] && ran a 5
}

# Checks which tests run and the value of BERTH_BED that they get; a skipped bed is not reported.
beds_run_in_part_or_whole() {
    local name
    for name in a b c d; do echo "echo \$BERTH_BED >$work/$name.bed" >"$work/$name.sh"; done
    printf '#!/bin/sh\n# bed: guests\n%s\necho "skip: no guests here"\nexit 77\n' "$(cat "$work/b.sh")" >"$work/b.sh"
    printf '#!/bin/sh\n# bed: guests, in part\n%s\n' "$(cat "$work/c.sh")" >"$work/c.sh"
    printf '#!/bin/sh\n# sanitize: no, it is a script\n%s\n' "$(cat "$work/d.sh")" >"$work/d.sh"
    fake_folder a b c d
    "$work/tools/test" "$work/dir" >"$work/said" && ends_with '3 passed, 0 failed' || return
    [ "$(cat "$work/a.bed" "$work/c.bed" "$work/d.bed")" = "$(printf 'part\npart\npart')" ] && [ ! -e "$work/b.bed" ] ||
        return
    "$work/tools/test" --beds "$work/dir" >"$work/said" &&
        ends_with 'not shown: b: no guests here' '1 passed, 0 failed, 1 skipped' || return
    [ "$(cat "$work/b.bed" "$work/c.bed")" = "$(printf 'whole\nwhole')" ] && [ "$(cat "$work/a.bed")" = part ] || return
    rm -f "$work/d.bed"
    "$work/tools/test" --sanitized "$work/dir" >"$work/said" && ends_with '2 passed, 0 failed' && [ ! -e "$work/d.bed" ]
}

# A program that had not even begun gets a second run with more time.
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
check "output before a failed case is shown" what_was_printed_before
check "the end of an aborted test is shown" the_end_of_what_broke_off
check "thirty lines of a test at most" thirty_lines_at_most
check "the names come at the end" names_at_the_end
check "a failed build shows its errors" builds_that_fail
check "passed tests are not repeated" what_passes_is_not_told_again
check "a program that hangs is ended, with its children" a_program_that_hangs_is_ended
check "as many tests run as there is CPU time for" as_many_as_there_is_room_for
check "a test that passes alone is unstable and listed at the end" unstable_passes_and_is_reported
check "retries run alone, after the others" retries_run_alone
check "a test that fails again has failed" fails_again_is_failed
check "without a marker nothing is retried" no_marker_no_retry
check "an unknown marker is reported" an_unknown_marker_is_told
check "defects are never retried" defects_are_never_retried
check "a crash of any process fails the test" a_crash_fails_the_test
check "some tests are never retried" names_that_are_never_retried
check "passed cases do not prevent a retry" passed_cases_do_not_count
check "at most three tests are unstable" at_most_three
check "a test that is listed twice is not retried" twice_on_the_list_is_not_retried
check "sanitizer reports of any process fail the test" unseen_reports_fail
check "beds run in part, or whole and alone" beds_run_in_part_or_whole
check "soak-tests shows how often and why a test fails" soak_finds_the_rate
check "patience scales with load" patience_scales_with_load
check "scripts have their own networks" scripts_have_networks_of_their_own
kit_end
