#!/bin/bash
# sim_test.sh - tests traces with the real program: generated, simulated under several policies, reported as tables and
# pages; what-if replays.
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
source=${BERTH_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
needs_built "$berth" "$berthd"
needs python3
kit_begin

generates() {
    local kind
    for kind in lublin poisson diurnal; do
        ends 0 "$berth" sim generate "$kind" --seed 5 --jobs 200 || return 1
        cp "$work/out" "$work/$kind.csv"
        ends 0 "$berth" sim generate "$kind" --seed 5 --jobs 200 || return 1
        cmp "$work/out" "$work/$kind.csv" || return 1
    done
    ends 0 "$berth" sim generate lublin --jobs 200 --seed 5 -o swf && cp "$work/out" "$work/lublin.swf" || return 1
    gzip -kf "$work/lublin.swf"
    ends 2 "$berth" sim generate tidal && says 'there is no kind of trace "tidal"' || return 1
    ends 2 "$berth" sim generate lublin --load much && says '--load: expected a number' || return 1
    ends 2 "$berth" sim generate lublin --gpus 8 -o swf && says 'has no GPUs'
}

# Generated traces must be the same on every machine and with every compiler, since users name them by their seed.
the_same_everywhere() {
    ends 0 "$berth" sim generate diurnal --seed 7 --jobs 500 --gpus 64 || return 1
    [ "$(cksum <"$work/out")" = "$GENERATED" ] && return
    echo "$(cksum <"$work/out"), not $GENERATED"
    return 1
}

plays() {
    set -- --policy fcfs/none --policy fcfs/easy -o json
    ends 0 "$berth" sim run "$work/lublin.swf.gz" "$@" && cp "$work/out" "$work/swf.json" || return 1
    ends 0 "$berth" sim run "$work/lublin.csv" --procs 256 "$@" || return 1
    python3 - "$work/swf.json" "$work/out" <<'PY'
import json, sys
swf, csv = (json.load(open(p))["policies"] for p in sys.argv[1:])
assert [p["policy"] for p in swf] == ["fcfs/none", "fcfs/easy"], swf
for a, b in zip(swf, csv):
    assert a["jobs"] == 200 and a == b, (a, b)
none, easy = swf
assert easy["mean_wait"] < none["mean_wait"], swf
PY
}

tells() {
    set -- "$berth" sim run --generate diurnal --jobs 300 --nodes 4xgpu4 --policy fcfs/easy \
        --policy sjf/easy/request/pack
    ends 0 "$@" && prints '^average slowdown' && prints 'sjf/easy/request/pack' || return 1
    ends 0 "$@" -o csv && prints '^policy,jobs,' && [ "$(wc -l <"$work/out")" = 3 ] || return 1
    ends 0 "$@" -o jobs && [ "$(wc -l <"$work/out")" = 601 ] || return 1
    ends 0 "$@" -o html || return 1
    python3 - "$work/out" <<'PY'
import re, sys, xml.etree.ElementTree as tree
text = open(sys.argv[1], encoding="utf-8").read()
page = tree.fromstring(text.split("\n", 1)[1])  # without the DOCTYPE
svg = "{http://www.w3.org/2000/svg}"
plots = list(page.iter(svg + "svg"))
assert len(plots) == 6, len(plots)
for plot in plots:
    assert plot.get("aria-label") and list(plot.iter(svg + "text")), tree.tostring(plot)[:200]
    for path in plot.iter(svg + "path"):
        assert re.fullmatch(r"([ML]-?\d+\.\d -?\d+\.\d)*", path.get("d")), path.get("d")[:100]
assert not re.search(r"(src|href|url)\s*[=(]", text), "it asks for something from elsewhere"
PY
}

refuses() {
    ends 2 "$berth" sim run && says 'expected a trace' || return 1
    ends 2 "$berth" sim run "$work/lublin.csv" && says 'no cluster: expected --procs' || return 1
    ends 2 "$berth" sim run "$work/lublin.csv" --procs 4 && says 'requests' || return 1
    ends 2 "$berth" sim run "$work/lublin.csv" --nodes 4xtpu1 && says '--nodes: "tpu1"' || return 1
    ends 2 "$berth" sim run "$work/lublin.csv" --procs 4 --nodes cpu4 &&
        says '--nodes and --cluster cannot be combined' || return 1
    ends 2 "$berth" sim run "$work/lublin.csv" --procs 256 --policy lifo && says 'there is no order "lifo"' || return 1
    printf 'submit,run\n1,2\n2,soon\n' >"$work/bad.csv"
    ends 2 "$berth" sim run "$work/bad.csv" --procs 4 && says 'line 3: run: expected seconds' || return 1
    ends 1 "$berth" sim run "$work/nowhere.csv" --procs 4 && says 'nowhere.csv'
}

trains() {
    printf 'job_id,num_gpu,submit_time,iterations,model_name,iteration_time\n0,2,0,100,x,100\n1,1,0,150,x,100\n' \
        >"$work/t.csv"
    ends 0 "$berth" sim muri "$work/t.csv" --nodes 1 --gpus 2 --policy srtf -o json || return 1
    prints '"average_completion_time":17.762500,"makespan":25.375000,"p99":25.375000' || return 1
    ends 0 "$berth" sim muri "$work/t.csv" --nodes 1 --gpus 2 --policy srsf && prints 'Average completion time  20 s' ||
        return 1
    ends 2 "$berth" sim muri "$work/t.csv" --policy fastest && says 'there is no policy "fastest"'
}

examples_play() {
    ends 0 "$berth" sim run "$source/examples/jobs.csv" --cluster "$source/examples/lab.yaml" --policy fcfs/easy &&
        prints '^jobs that ran' || return 1
    ends 0 "$berth" sim run "$source/examples/jobs.csv" --nodes gpu4+cpu32,cpu16 --policy fcfs/none \
        --policy fcfs/easy &&
        prints '^jobs that ran +8 +8' && [ ! -s "$work/err" ] || return 1
    # The tasks of one job need a node with both the GPU and the cores, and there is none.
    ends 0 "$berth" sim run "$source/examples/jobs.csv" --nodes gpu4+cpu16,cpu16 --policy fcfs/easy &&
        prints '^jobs that never fit +1' && says 'job 7'
}

what_if_refuses() {
    ends 1 "$berth" sim replay "$source/tests/journal-v1.jsonl" && says 'no job that ran' || return 1
    ends 2 "$berth" sim replay "$source/tests/journal-v1.jsonl" --drop ann && says '--drop: "ann": expected user=' ||
        return 1
    ends 1 "$berth" sim replay "$work/nowhere" && says 'nowhere'
}

# Runs a daemon with this script as its only node: one job runs for a while, another waits for it; then an elastic job
# runs that may have more tasks than the cluster has room for.
what_if() {
    start "$work/data" --init --token-file "$work/token" || return 1
    python3 - "$url" "$work/token" <<'PY' || return 1
import json, sys, time, urllib.request
url, token = sys.argv[1], open(sys.argv[2]).read().strip()

def ask(method, path, body=None):
    request = urllib.request.Request(url + path, method=method,
                                     data=json.dumps(body).encode() if body is not None else None,
                                     headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)

def instances(state):
    for _ in range(600):
        found = [i for i in ask("GET", "/v1/instances")["items"] if i["state"] == state]
        if found:
            return found
        time.sleep(0.05)
    raise SystemExit(f"nothing is {state}")

def report(seq, instance, state):
    said = {"id": instance["id"], "state": state}
    if state == "ended":
        said["exit"] = 0
    ask("POST", "/v1/nodes/n1/report", {"epoch": 1, "seq": seq, "instances": [said]})

ask("POST", "/v1/nodes", {"id": "n1", "allocatable": {"cpu": 2, "memory": "4Gi", "pods": 10}})
for name in ("first", "second"):
    ask("POST", "/v1/jobs", {"name": name, "command": ["/bin/true"], "requests": {"cpu": 2}})
for seq in (1, 4):
    (placed,) = instances("assigned")
    report(seq, placed, "running")
    time.sleep(0.5)
    report(seq + 1, placed, "ended")
for _ in range(600):
    if all("finished" in job for job in ask("GET", "/v1/jobs")["items"]):
        break
    time.sleep(0.05)
ask("POST", "/v1/jobs", {"name": "elastic", "command": ["/bin/true"], "requests": {"cpu": 1}, "min": 1, "max": 9})
for seq, placed in enumerate(instances("assigned"), 6):
    report(seq, placed, "running")
PY
    ends 0 "$berth" sim replay "$work/data" --policy fcfs/easy || return 1
    ends 0 "$berth" sim replay "$work/data" --policy fcfs/easy --nodes +2xcpu2 -o json || return 1
    stop
    python3 - "$work/out" <<'PY' || return 1
import json, sys
r = json.load(open(sys.argv[1]))
was, other = r["policies"]
assert (was["policy"], other["policy"]) == ("recorded", "fcfs/easy"), r
assert was["jobs"] == other["jobs"] == 3, r
assert was["max_wait"] >= 0.5 and other["max_wait"] < 0.01, r  # with three nodes no job waits
assert r["cluster"].startswith("3 nodes: 6 cores"), r
PY
    ends 0 "$berth" sim replay "$work/data" --drop name=first && prints '1 excluded' && prints '^jobs that ran +2 +2'
}

# Both replay verbs take the journal's location and times in the same forms.
replays_take_the_same_forms() {
    local verb
    for verb in "replay" "sim replay"; do
        # shellcheck disable=SC2086 # two words
        {
            ends 0 "$berth" $verb "$work/data" && ends 0 "$berth" $verb --data "$work/data" || return 1
            ends 0 "$berth" $verb "$work/data" --from -1h --to now &&
                ends 0 "$berth" $verb --data "$work/data" --from yesterday || return 1
            ends 0 "$berth" $verb "$work/data" --from 2020-01-01 --to 2040-01-01T00:00:00Z || return 1
            ends 2 "$berth" $verb "$work/data" --from sometime && says "invalid time 'sometime'" || return 1
            ends 2 "$berth" $verb && says 'no journal: expected' || return 1
            ends 2 "$berth" $verb --data "$work/data" "$work/data" &&
                says '--data cannot be combined with files' || return 1
        }
    done
    ends 1 "$berth" sim replay "$work/data" --to 2020-01-01 && says 'no job that ran'
}

GENERATED="2982260648 31030"
check "traces are generated, the same for the same seed" generates
check "generated traces are the same everywhere" the_same_everywhere
check "one trace in two formats gives the same result" plays
check "tables, rows and pages" tells
check "impossible options are refused" refuses
check "training jobs" trains
check "examples can be simulated" examples_play
check "what if" what_if
check "both replays take the same forms" replays_take_the_same_forms
check "what if: refusals" what_if_refuses
kit_end
