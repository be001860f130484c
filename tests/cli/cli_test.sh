#!/bin/bash
# cli_test.sh - tests the real `berth`: plans, explanations, mistakes, determinism, benchmarks, completion.
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
source=${BERTH_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
needs_built "$berth"
needs python3
kit_begin

cat >"$work/cluster.json" <<'JSON'
{
  "version": 1,
  "nodes": [
    {"id": "n1", "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 20}},
    {"id": "n2", "allocatable": {"cpu": 4, "memory": "16Gi", "pods": 20}},
    {"id": "n3", "allocatable": {"cpu": 8, "memory": "32Gi", "pods": 20}}
  ],
  "workloads": [
    {"id": "web", "replicas": 3, "requests": {"cpu": 1, "memory": "1Gi"}},
    {"id": "db", "replicas": 1, "priority": 10, "requests": {"cpu": 2, "memory": "8Gi"}},
    {"id": "giant", "replicas": 2, "requests": {"cpu": 64, "memory": "1Gi"}}
  ]
}
JSON

shuffle() {
    python3 - "$1" "$2" <<'PY'
import json, random, sys
doc = json.load(open(sys.argv[1]))
r = random.Random(int(sys.argv[2]))
for key in ("nodes", "workloads"):
    r.shuffle(doc[key])
json.dump(doc, sys.stdout)
PY
}

examples_are_planned() {
    local file
    for file in lab home zones; do
        [ -e "$source/examples/$file.yaml" ] || continue
        ends 0 "$berth" plan "$source/examples/$file.yaml" && prints '^(Planned|Nothing to do)' || return 1
        ends 0 "$berth" plan "$source/examples/$file.yaml" -o json || return 1
        python3 -m json.tool <"$work/out" >/dev/null || return 1
    done
}

table_shows_actions_and_reasons() {
    ends 0 "$berth" plan "$work/cluster.json" && prints '^ACTION +POD +NODE' && prints '^place +web/0 +n[123]' &&
        prints '^  giant/0-1 \(2 pods\)' && prints 'no node has 64 CPUs; the largest has 8' &&
        prints '^Planned 4 actions for 3 nodes in .*; 2 pods pending\.'
}

wide_and_summary() {
    ends 0 "$berth" plan "$work/cluster.json" -o wide && prints '^ACTION +POD +NODE +CAUSE$' || return 1
    echo '{"nodes": [{"id": "n1"}], "instances": [{"id": 7, "pod": "old/0", "node": "n1"}]}' >"$work/old.json"
    ends 0 "$berth" plan "$work/old.json" -o wide && prints '^stop +old/0 +n1 +removed +#7$' || return 1
    ends 0 "$berth" plan "$work/cluster.json" --summary || return 1
    prints '^place +pending +4$' && prints '^Planned 4' || return 1
    ! grep -q 'web/0' "$work/out"
}

reads_standard_input() {
    "$berth" plan - -o json <"$work/cluster.json" >"$work/piped.json" || return 1
    "$berth" plan "$work/cluster.json" -o json | cmp - "$work/piped.json"
}

json_has_what_programs_need() {
    ends 0 "$berth" plan "$work/cluster.json" -o json || return 1
    python3 - "$work/out" <<'PY'
import json, sys
plan = json.load(open(sys.argv[1]))
assert len(plan["actions"]) == 4, plan
for action in plan["actions"]:
    assert action["op"] == "place" and action["pod"] and action["node"] in ("n1", "n2", "n3"), action
pods = [p["pod"] for p in plan["pending"]]
assert any("giant" in pod for pod in pods), pods
for pending in plan["pending"]:
    assert pending["reasons"], pending
    for reason in pending["reasons"]:
        assert reason["reason"] and reason["text"] and reason["nodes"] == 3, reason
PY
}

strict_ends_with_3() {
    ends 3 "$berth" plan "$work/cluster.json" --strict || return 1
    python3 - "$work/cluster.json" >"$work/fits.json" <<'PY'
import json, sys
doc = json.load(open(sys.argv[1]))
doc["workloads"].pop()
json.dump(doc, sys.stdout)
PY
    ends 0 "$berth" plan "$work/fits.json" --strict && prints 'no pending pods'
}

why_explains() {
    ends 0 "$berth" plan "$work/cluster.json" --why web/1 && prints '^web/1 is placed on n[123]' || return 1
    ends 0 "$berth" plan "$work/cluster.json" --why web && prints 'web/' || return 1
    ends 0 "$berth" plan "$work/cluster.json" --why giant/1 || return 1
    prints '^giant/1 is pending' && prints 'no node has 64 CPUs; the largest has 8' || return 1
    ends 1 "$berth" plan "$work/cluster.json" --why web/7 && says 'no pod web/7: web has ' || return 1
    ends 2 "$berth" plan "$work/cluster.json" --why web/1 -o json && says '--why prints text'
}

why_knows_near_names() {
    ends 1 "$berth" plan "$work/cluster.json" --why gaint/1 && says "did you mean 'giant'?" || return 1
    ends 1 "$berth" plan "$work/cluster.json" --why nothing-like-it && says "no workload 'nothing-like-it'"
}

mistakes_are_usage() {
    ends 2 "$berth" plan && says 'needs FILE' || return 1
    ends 2 "$berth" plan a b && says "takes FILE: unexpected argument 'b'" || return 1
    ends 2 "$berth" plan --ouput json x && says 'did you mean --output?' || return 1
    ends 2 "$berth" plan -o yaml x && says 'one of table, wide, json' || return 1
    ends 2 "$berth" plna x && says "did you mean 'berth plan'?" || return 1
    ends 2 "$berth" plan "$work/cluster.json" --now yesterday && says 'now' || return 1
    ends 2 "$berth" bench plan --nodes 0 && says 'at least 1' || return 1
    ends 2 "$berth" bench plan --pods 10 --workloads 100 && says 'at least as many pods' || return 1
    ends 2 "$berth" --frobnicate && says 'berth help' || return 1
    ends 2 "$berth" && prints '^Usage: berth COMMAND'
}

bad_files_are_failures() {
    ends 1 "$berth" plan "$work/missing.yaml" && says 'missing.yaml' || return 1
    echo '{"version": 1, "nodes": [' >"$work/bad.json"
    ends 1 "$berth" plan "$work/bad.json" && says 'bad.json' || return 1
    echo '{"version": 1, "nodes": [{"id": "n1", "allocatable": {"cpu": -4}}]}' >"$work/bad.json"
    ends 1 "$berth" plan "$work/bad.json" && says 'n1' || return 1
    echo '{"version": 1, "nodse": []}' >"$work/bad.json"
    ends 1 "$berth" plan "$work/bad.json" && says 'nodse' || return 1
    ends 1 "$berth" plan "$work/cluster.json" --profile defualt && says "did you mean 'default'?" || return 1
    ends 1 "$berth" plan "$work" && says "$work"
}

output_errors_are_told() {
    ends 1 sh -c "'$berth' plan '$work/cluster.json' >/dev/full" && says 'cannot write' || return 1
    "$berth" plan "$work/cluster.json" -o wide 2>"$work/err" | head -1 >/dev/null
    ! [ -s "$work/err" ]
}

the_same_twice() {
    "$berth" plan "$work/cluster.json" -o json >"$work/a" && "$berth" plan "$work/cluster.json" -o json >"$work/b" &&
        cmp "$work/a" "$work/b"
}

the_same_shuffled() {
    local seed
    "$berth" plan "$work/cluster.json" -o json >"$work/a" || return 1
    for seed in 1 2 3 4 5; do
        shuffle "$work/cluster.json" "$seed" >"$work/shuffled.json"
        "$berth" plan "$work/shuffled.json" -o json >"$work/b" || return 1
        cmp "$work/a" "$work/b" || return 1
    done
}

colours_only_when_asked() {
    "$berth" plan "$work/cluster.json" --color always | grep -q $'\033' || return 1
    ! "$berth" plan "$work/cluster.json" | grep -q $'\033'
}

bench_case() {
    ends 0 "$berth" bench plan --nodes 200 --pods 2000 --workloads 200 --shapes 20 --runs 2 -o json "$@" || return 1
    python3 - "$work/out" "$*" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["audit"] == "ok", r
assert r["fixpoint"] is True, r
assert r["placed"] + r["unplaced"] == 2000, r
assert r["placed"] > 1900, r
assert 0 < r["seconds_min"] <= r["seconds_median"] <= r["seconds_max"], r
assert r["rss_bytes"] > 1 << 20, r
assert ("one_more_seconds_median" in r) == ("--one-more" in sys.argv[2]), r
print(r["hash"])
PY
}

bench_depends_on_arguments_only() {
    local first second other
    first=$(bench_case --seed 5) && second=$(bench_case --seed 5 --fresh) && other=$(bench_case --seed 6) || return 1
    [ "$first" = "$second" ] && [ "$first" != "$other" ]
}

bench_table() {
    ends 0 "$berth" bench plan --nodes 100 --pods 500 --runs 1 || return 1
    prints '^freeze, plan, actions ' && prints '^fixpoint +true'
}

help_is_complete() {
    local verb family verbs=(plan profiles bench 'bench plan' completion version help get describe why apply diff edit
        delete submit status events schedule backup restore whoami audit)
    ends 0 "$berth" help && prints '3  plan --strict' || return 1
    for verb in "${verbs[@]}"; do
        prints "^  $verb( |\$)" || return 1
    done
    for family in job app vm node system user group token context; do
        prints "^  $family " && mapfile -t -O "${#verbs[@]}" verbs < <("$berth" help $family |
            sed -n "s/^  \($family [a-z]*\).*/\1/p") || return 1
    done
    [ "${#verbs[@]}" -ge 60 ] || return 1
    for verb in "${verbs[@]}"; do
        # shellcheck disable=SC2086 # a verb may be two words
        ends 0 "$berth" help $verb && prints "^Usage: berth $verb" || return 1
        # shellcheck disable=SC2086
        ends 0 "$berth" $verb --help && prints '^Options:' || return 1
    done
    ends 2 "$berth" help nothing && ends 0 "$berth" --version && prints '^berth [0-9]'
}

completion_parses() {
    "$berth" completion bash >"$work/berth.bash" && bash -n "$work/berth.bash" || return 1
    # shellcheck source=/dev/null
    words=$(. "$work/berth.bash" && COMP_WORDS=(berth bench plan --no) COMP_CWORD=3 && _berth && echo "${COMPREPLY[@]}")
    [ "$words" = "--nodes --no-audit" ] || return 1
    # shellcheck source=/dev/null
    words=$(. "$work/berth.bash" && COMP_WORDS=(berth app sta) COMP_CWORD=2 && _berth && echo "${COMPREPLY[@]}")
    [ "$words" = start ] || return 1
    # shellcheck source=/dev/null
    words=$(. "$work/berth.bash" && COMP_WORDS=(berth get no) COMP_CWORD=2 && _berth && echo "${COMPREPLY[@]}")
    [ "$words" = nodes ] || return 1
    # shellcheck source=/dev/null disable=SC2317 # completion calls it
    words=$(. "$work/berth.bash" && berth() { [ "$*" = "get apps -o name" ] && echo app/photos.alice; } &&
        COMP_WORDS=(berth app stop ph) COMP_CWORD=3 && _berth && echo "${COMPREPLY[@]}")
    [ "$words" = photos.alice ] || return 1
    # shellcheck source=/dev/null
    words=$(. "$work/berth.bash" && COMP_WORDS=(berth token add --to) COMP_CWORD=3 && _berth && echo "${COMPREPLY[@]}")
    [ "$words" = "--to --token-file" ] || return 1
    "$berth" completion zsh >"$work/_berth" && "$berth" completion fish >"$work/berth.fish" || return 1
    if command -v zsh >/dev/null; then zsh -n "$work/_berth" || return 1; fi
    if command -v fish >/dev/null; then fish -n "$work/berth.fish" || return 1; fi
    ends 2 "$berth" completion tcsh
}

profiles_are_listed() {
    ends 0 "$berth" profiles && prints '^  default ' && prints '^Filters' && prints '^Scores'
}

check "examples are planned" examples_are_planned
check "the table shows actions and reasons" table_shows_actions_and_reasons
check "-o wide and --summary" wide_and_summary
check "'-' is standard input" reads_standard_input
check "JSON has what programs need" json_has_what_programs_need
check "--strict ends with 3" strict_ends_with_3
check "--why explains" why_explains
check "--why knows near names" why_knows_near_names
check "mistakes end with 2" mistakes_are_usage
check "bad files end with 1" bad_files_are_failures
check "a full disk is reported, a closed pipe is not" output_errors_are_told
check "the same input gives the same bytes" the_same_twice
check "a shuffled input gives the same plan" the_same_shuffled
check "colours only on request" colours_only_when_asked
check "bench: plain" bench_case
check "bench: GPUs, constraints, one more" bench_case --gpu --constraints --one-more
check "bench: depends on its arguments only" bench_depends_on_arguments_only
check "bench: table" bench_table
check "help is complete" help_is_complete
check "completion parses" completion_parses
check "profiles are listed" profiles_are_listed
simulates() {
    ends 0 "$berth" sim cluster --seed 3 --hours 0.05 -o json && cp "$work/out" "$work/first" || return 1
    ends 0 "$berth" sim cluster --seed 3 --hours 0.05 -o json || return 1
    [ "$(sed 's/"seconds":[^,]*//' "$work/first")" = "$(sed 's/"seconds":[^,]*//' "$work/out")" ] || return 1
    ends 0 "$berth" sim cluster --seed 4 --hours 0.05 && prints '^The same seed' || return 1
    ends 2 "$berth" sim cluster --hours soon && says '--hours' || return 1
    ends 2 "$berth" sim cluster --faults partitoin && says 'unknown fault "partitoin"' &&
        ! [ -s "$work/out" ] || return 1
    ends 2 "$berth" sim cluster --faults partitoin -q -o json && ! [ -s "$work/out" ] || return 1
    ends 0 "$berth" sim cluster --seed 3 --hours 0.01 -q -o json && ! [ -s "$work/out" ]
}
check "a cluster under a seed" simulates
pods_arrive() {
    printf 'sn,cpu_milli,memory_mib,gpu,model\na,4000,4,2,T4\nb,8000,4,1,P100\n' >"$work/nodes.csv"
    printf 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np0,1000,1,1,500,\np1,1000,1,2,1000,T4\n' |
        gzip >"$work/pods.csv.gz"
    printf '# pods 2\n0\n1\n# nodes 2\n1\n0\n' >"$work/arrivals.txt"
    set -- "$berth" sim openb --nodes "$work/nodes.csv" --pods "$work/pods.csv.gz" --arrivals "$work/arrivals.txt"
    ends 0 "$@" --policy bestfit -o json || return 1
    python3 - "$work/out" <<'PY' || return 1
import json, sys
r = json.load(open(sys.argv[1]))
assert r["allocated_percent"][17] == 16.67 and r["allocated_percent"][83] == 83.33 and r["placed"] == 2
assert all(len(r[k]) == 131 for k in ("allocated_percent", "fragmented_percent", "fragmented_share_of_idle"))
assert r["fragmented_percent"][0] is None
PY
    ends 0 "$@" --policy fgd -o csv && prints '^83,83.33' || return 1
    ends 0 "$@" --policy packing && prints '2 of 2 pods' || return 1
    ends 1 "$@" --policy none && says 'there is no policy' || return 1
    ends 1 "$@" --policy fgd --arrivals "$work/nodes.csv" && says 'line 1' || return 1
    ends 0 "$berth" sim openb --policy help && prints '^fgd ' || return 1
    ends 2 "$berth" sim openb --policy fgd && says '--nodes'
}
check "pods arrive on GPUs" pods_arrive
logs_are_played() {
    printf '%s\n' '; MaxProcs: 4' '1 0 -1 100 3 -1 -1 3 100' '2 1 -1 50 4 -1 -1 4 60' '3 2 -1 200 1 -1 -1 1 200' \
        '4 3 -1 30 1 -1 -1 1 40' |
        gzip >"$work/log.swf.gz"
    set -- "$berth" sim swf "$work/log.swf.gz"
    ends 0 "$@" -o csv && [ "$(tr '\n' ' ' <"$work/out")" = "job_id,wait 1,0 2,99 3,148 4,0 " ] || return 1
    ends 0 "$@" --order sjf --backfill none -o csv && prints '^2,99$' && prints '^4,0$' || return 1
    ends 0 "$@" --procs 8 -o json || return 1
    python3 - "$work/out" <<'PY' || return 1
import json, sys
r = json.load(open(sys.argv[1]))
assert r["jobs"] == 4 and r["max_wait"] == 48 and r["mean_wait"] == 12, r
assert abs(r["average_bounded_slowdown"] - 1.4) < 1e-9 and abs(r["max_bounded_slowdown"] - 2.6) < 1e-9, r
assert abs(r["rms_bounded_slowdown"] ** 2 - 2.44) < 1e-8 and abs(r["utilisation"] - 730 / (8 * 202)) < 1e-9, r
PY
    ends 0 "$@" --starts 0,1 --length 2 --protocol rlscheduler --order f1 && prints '4 jobs in 2 parts' || return 1
    ends 2 "$@" --order best && says 'there is no order "best"' || return 1
    ends 2 "$@" --starts 0,9 && says 'no job 9; the log has 4 jobs' || return 1
    ends 2 "$@" --procs 2 && says 'the machine has 2' || return 1
    printf '1 0 0 1 1 -1 -1 1 1\n2 x\n' >"$work/bad.swf"
    ends 1 "$berth" sim swf "$work/bad.swf" --procs 2 && says 'line 2'
}
check "a trace log is simulated" logs_are_played
moments_are_told() {
    cat >"$work/even.jsonl" <<'JSONL'
{"seq":1,"revision":1,"chain":"bd5ff6c0272a1b09","record":{"j":1,"kind":"init","at":1794793752000000000,"who":"berth"}}
{"seq":2,"revision":2,"chain":"5999f47c7d6f1ec2","record":{"j":1,"kind":"unit","at":1794793752050000000,"who":"berth"}}
{"seq":3,"revision":3,"chain":"5e0c2d5d79ff0633","record":{"j":1,"kind":"unit","at":1794793752121474059,"who":"berth"}}
JSONL
    ends 0 "$berth" journal show "$work/even.jsonl" && prints '^ +1  2026-11-16T01:49:12\.000Z  berth ' || return 1
    prints '^ +2  2026-11-16T01:49:12\.050Z  berth ' && prints '^ +3  2026-11-16T01:49:12\.121Z  berth '
}
check "times in a journal have milliseconds" moments_are_told
decisions_are_compared() {
    set -- "$here/journal-v1.jsonl"
    ends 0 "$berth" replay "$1" && prints ' [1-9][0-9]* decisions replayed: all the same\.$' || return 1
    ends 0 "$berth" replay "$1" --from 2099-01-01 && prints ' 0 decisions replayed: none\.$' || return 1
    tail -1 "$1" >"$work/late.jsonl"
    ends 0 "$berth" replay "$work/late.jsonl" && prints ' 0 decisions replayed: none comparable\.$' || return 1
    prints '^[1-9][0-9]* decisions? could not be replayed'
}
check "a replay that compared nothing reports that" decisions_are_compared
# Runs a command with a file size limit of 8 KiB, like a full disk.
full() (
    trap '' XFSZ
    ulimit -f 8
    exec "$@"
)
journals_are_exported() {
    set -- "$berth" journal export "$here/journal-v1.jsonl" --into "$work/exported.jsonl"
    ends 1 full "$@" && says 'exported.jsonl' && says 'File too large' || return 1
    ! compgen -G "$work/exported*" || return 1
    ends 0 "$@" && [ "$(wc -l <"$work/exported.jsonl")" = 50 ] || return 1
    ends 1 "$@" && says 'already exists' || return 1
    ends 0 "$berth" replay "$work/exported.jsonl" && prints 'all the same' || return 1
    ends 1 "$berth" journal export "$work/none" --into "$work/never" && ! compgen -G "$work/never*"
}
check "a journal is exported whole or not at all" journals_are_exported
check "--color never wins" sh -c "! '$berth' help --color never | grep -q '$(printf '\033')'"
kit_end
