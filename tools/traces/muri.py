"""Training jobs with preemption: Muri, SIGCOMM 2022, 8 nodes with 8 GPUs each."""
from row import Row

TITLE = "muri: average completion time in seconds"
PUBLISHED = {
    "trace1": {"srtf": 1370603, "srsf": 980141},
    "trace3": {"srtf": 193082, "srsf": 185022},
    "trace4": {"srtf": 581983, "srsf": 487167},
}
TOLERANCE = 1e-4


def rows(play, folder, everything):
    for trace, policies in PUBLISHED.items():
        for policy, published in policies.items():
            r = play("muri", folder / f"{trace}.csv", "--policy", policy)
            ours = r["average_completion_time"]
            yield Row(f"{trace} {policy.upper()}", f"{published}", f"{ours:.0f}",
                      abs(ours / published - 1) <= TOLERANCE, f"makespan {r['makespan']:.0f}, p99 {r['p99']:.0f}")
        if everything:
            ours = play("muri", folder / f"{trace}.csv", "--policy", "berth")["average_completion_time"]
            yield Row(f"{trace} berth", "-", f"{ours:.0f}", None, "nothing is preempted")
