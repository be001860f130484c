#!/bin/bash
# views_test.sh - tests the views of users with the real programs: jobs, queue, why, job show, who, policy test, top,
# dry runs.
# waits: processes
set -u

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs_built "$berth" "$berthd"
kit_begin

# as USER COMMAND...
as() {
    local user=$1
    shift
    BERTH_TOKEN_FILE=$work/$user.token "$@"
}

# job OWNER NAME GPUS LIMIT: submits a job.
job() {
    printf 'kind: job\nname: %s\nowner: %s\ngpu: %s\nrequests: {cpu: 2}\ntime_limit: %s\ncommand: [sleep, "100"]\n' \
        "$2" "$1" "$3" "$4" >"$work/job.yaml"
    ends 0 "$berth" apply -f "$work/job.yaml"
}

# Makes two nodes with two GPUs each. ann holds one node for an hour, bob the other for two; then ann, bob and ann wait.
crowd() {
    local user
    start "$work/data" --agents none --lease 3600 --init --token-file "$work/admin.token" || return 1
    export BERTH_SERVER=$url BERTH_TOKEN_FILE=$work/admin.token
    ends 0 "$berth" system settings policy=fifo || return 1
    ends 0 "$berth" node add n1 --cpu 8 --memory 16Gi --gpus 2 || return 1
    ends 0 "$berth" node add n2 --cpu 8 --memory 16Gi --gpus 2 || return 1
    ends 0 "$berth" group add red && ends 0 "$berth" group add blue || return 1
    for user in ann:red bob:blue; do
        ends 0 "$berth" user add "${user%:*}" --group "${user#*:}" || return 1
        "$berth" token add --user "${user%:*}" >"$work/${user%:*}.token" 2>"$work/err" || return 1
    done
    job ann train 2 1h && job bob render 2 2h || return 1
    until_ok sh -c "'$berth' get instances | grep -q n2" || return 1
    job ann second 2 1h && job bob third 1 30m && job ann short 2 10m || return 1
    until_ok sh -c "'$berth' queue | grep -q short"
}

jobs_show_place_and_start() {
    ends 0 as ann "$berth" jobs || return 1
    prints '^ +3 +second +pending +0/1 +1 +in [0-9]+m +too few GPUs' && hides 'render|third' || return 1
    ends 0 "$berth" jobs --all && prints 'third +bob' || return 1
    ends 0 as ann "$berth" jobs -o json && prints '"position": 1'
}

queue_is_in_order() {
    ends 0 "$berth" queue || return 1
    [ "$(awk '$1 ~ /^[0-9]+$/ { print $2 }' "$work/out" | tr '\n' ' ')" = "3 4 5 " ] || { cat "$work/out"; return 1; }
    prints '^1 +3 +second +ann +default +2 gpu, 2 cpu, 256Mi +guaranteed' && prints 'revision [0-9]+' || return 1
    ends 0 "$berth" queue --user bob && prints 'third' && hides 'second' || return 1
    ends 0 "$berth" queue -o json && prints '"total": 3'
}

others_are_hidden() {
    ends 0 as ann "$berth" queue || return 1
    prints '\(blue\)' && hides 'third|bob' || return 1
    ends 0 as ann "$berth" who n2 && prints 'another user.* blue' && hides 'render|bob'
}

why_says_all() {
    ends 0 as ann "$berth" why 3 || return 1
    prints 'Position 1 of 3 pending workloads' && prints 'too few GPUs left' &&
        prints 'Estimated start: in [0-9]+m' || return 1
    prints 'ann +job 1 +n1 +gpu0,gpu1 +in [0-9]+m' || return 1
    ends 4 as ann "$berth" why 4 || return 1
    ends 0 as ann "$berth" why job 3 -o json && prints '"blockers"'
}

# The explanation of the default policy's order has factors and products that add up to the key.
why_explains_the_order() {
    ends 0 "$berth" system settings policy=null || return 1
    ends 0 as ann "$berth" why 3 || return 1
    prints 'FACTOR +VALUE +WEIGHT +PRODUCT' && prints '^ *waited +[0-9.]+ +1 +[0-9.]+ ' || return 1
    prints '^ *patience +4535.716 +-0.6 +-2721.429 ' && prints 'sum of the products is -27[0-9]+\.[0-9]{3};' &&
        hides 'Its key is' || return 1
    ends 0 as ann "$berth" why job 3 -o json && prints '"terms"' && ends 0 "$berth" system settings policy=fifo
}

# Every user sees the true totals of the nodes, as amounts without names.
totals_are_true() {
    ends 0 as bob "$berth" status && prints '^  gpu +100% +4 of 4 allocated$' &&
        prints '^  cpu +[0-9]+% +4 of 16 allocated$' || return 1
    hides 'train|second' && ends 0 "$berth" status && prints '^  gpu +100% +4 of 4 allocated$'
}

what_starts_sooner() {
    ends 0 as ann "$berth" submit --name wide --cpu 8 --time 1h -- sleep 100 || return 1
    until_ok sh -c "'$berth' queue | grep -q wide" || return 1
    ends 0 as ann "$berth" why 6 || return 1
    prints 'Ways to start sooner' && prints 'with 4 cores in each pod instead of 8' || return 1
    ends 0 as ann "$berth" job cancel 6 && until_ok sh -c "! '$berth' queue | grep -q wide"
}

job_show_is_one_screen() {
    ends 0 as ann "$berth" job show 3 || return 1
    prints 'Specification' && prints 'Position 1 of 3' || return 1
    ends 0 as ann "$berth" job show 1 && prints '^Pods' && prints 'n1'
}

# Times in the past have the same forms everywhere.
past_times() {
    until_ok sh -c "'$berth' who n1 --at -1s | grep -q 'ann .*job 1'" || return 1
    ends 0 "$berth" who n1 --at -10m && prints 'No instance used n1' || return 1
    ends 0 "$berth" who n1 --at now-1hour && ends 0 "$berth" who n1 --at yesterday &&
        ends 0 "$berth" usage --from -10m || return 1
    ends 2 "$berth" who n1 --at sometime && says "invalid time 'sometime'; use -10m"
}

who_holds() {
    ends 0 "$berth" who n1 && prints '^ann +red +job 1 +train +gpu0,gpu1' || return 1
    ends 0 "$berth" who n1/gpu1 && prints '^ann' || return 1
    ends 0 "$berth" who n1 --at 2001-01-01T00:00:00Z && prints 'No instance used n1' || return 1
    ends 0 "$berth" who n1 --at "$(date -d '5 minutes ago' +%H:%M)" && prints 'No instance used n1' || return 1
    ends 4 "$berth" who n9 || return 1
    ends 2 "$berth" who n1 --at whenever
}

policies_are_tried() {
    ends 0 "$berth" policy test sjf || return 1
    prints '^1 +3 +\+2 +5 +short' || return 1
    ends 0 "$berth" queue && prints '^1 +3' || return 1
    printf 'kind: policy\nid: mine\nformula: "-runtime"\n' >"$work/policy.yaml"
    ends 0 "$berth" policy test -f "$work/policy.yaml" && prints '^1 +3 +\+2 +5 +short' || return 1
    ends 4 "$berth" policy test wishful || return 1
    ends 2 "$berth" policy test || return 1
    ends 0 "$berth" policy list && prints 'fair-share +built-in' && prints 'fifo +built-in +yes' || return 1
    ends 0 "$berth" system settings policy=null && ends 0 "$berth" policy list &&
        prints 'berth +built-in +yes' || return 1
    ends 0 "$berth" system settings policy=fifo || return 1
    ends 0 "$berth" policy show sjf && prints 'Factors'
}

queues_are_a_tree() {
    ends 0 "$berth" queues && prints '^default +0 +1 +3 +2' || return 1
    printf 'kind: queue\nid: lab\npriority: 5\n---\nkind: queue\nid: night\nparent: lab\nquota: {limits: {gpu: 4}}\n' \
        >"$work/queues.yaml"
    ends 0 "$berth" apply -f "$work/queues.yaml" && ends 0 "$berth" queues || return 1
    prints '^lab +5' && prints '^  night +0 .*gpu 0 of 4' && prints '^default +0 +1 +3 +2' || return 1
    ends 0 "$berth" get queue default -o json && prints '"jobs": 5'
}

drafts_are_foreseen() {
    ends 0 as ann "$berth" submit --dry-run --name draft --gpus 2 --time 1h -- sleep 1 || return 1
    prints 'Position 4 of 4 pending workloads' && prints 'Estimated start: ' || return 1
    ends 0 as ann "$berth" submit --dry-run --name draft --cpu 1 -- sleep 1 && prints 'start immediately' || return 1
    ends 0 "$berth" queue && hides 'draft'
}

top_prints_one_picture() {
    ends 0 as ann "$berth" top || return 1
    prints 'gpu +\[#+\] 100%  4 of 4' && prints 'Your jobs \(3\)' && prints 'Queue \(3 pending\)' && hides 'third'
}

check "two nodes with running and waiting jobs" crowd
check "berth jobs shows place and start" jobs_show_place_and_start
check "berth queue is in order" queue_is_in_order
check "others are hidden" others_are_hidden
check "berth why shows all reasons" why_says_all
check "berth why explains the order" why_explains_the_order
check "totals are true for all users" totals_are_true
check "berth why shows what would start sooner" what_starts_sooner
check "berth job show" job_show_is_one_screen
check "berth who" who_holds
check "times in the past" past_times
check "berth policy test" policies_are_tried
check "berth queues" queues_are_a_tree
check "start estimates of drafts" drafts_are_foreseen
check "berth top prints one frame" top_prints_one_picture
kit_end
