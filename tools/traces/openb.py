"""GPU placement: "Beware of Fragmentation", ATC 2023, on 13 traces of Alibaba's openb cluster."""
import csv
import statistics

from row import Row

TITLE = ("openb: allocated % at 100 % arrived, mean of the seeds; "
         "the worst difference of any cell of the three published files")
POLICIES = {
    "dotprod": "02-DotProd",
    "clustering": "03-GpuClustering",
    "packing": "04-GpuPacking",
    "bestfit": "05-BestFit",
    "fgd": "06-FGD",
}
FILES = ("allocated_percent", "fragmented_percent", "fragmented_share_of_idle")
QUICK = {"default": ("42",), "gpuspec33": ("42",), "cpu250": ("42",)}
OWN = "berth"
TOLERANCE = 0.01 + 1e-9


def published(folder):
    """Returns the published cells by file, trace, policy and seed."""
    cells = {}
    for name in FILES:
        with open(folder / "published" / f"{name}.csv", encoding="ascii") as f:
            for row in csv.DictReader(f):
                key = (name, row["workload"].removeprefix("openb_pod_list_"), row["sc_policy"], row["seed"])
                cells[key] = [float(row[str(load)]) for load in range(131)]
    return cells


def traces_of(folder, everything):
    if not everything:
        return QUICK
    found = {}
    for path in sorted((folder / "arrivals").glob("*.txt.gz")):
        trace, seed = path.name.removesuffix(".txt.gz").rsplit("_", 1)
        found.setdefault(trace, []).append(seed)
    return found


def run(play, folder, trace, seed, policy):
    return play("openb", "--nodes", folder / "openb_node_list_gpu_node.csv",
                "--pods", folder / "pods" / f"openb_pod_list_{trace}.csv",
                "--arrivals", folder / "arrivals" / f"{trace}_{seed}.txt.gz", "--policy", policy)


def difference(cells, trace, seed, policy, result):
    return max(abs(there - (here if here is not None else float("inf")))
               for name in FILES
               for there, here in zip(cells[name, trace, POLICIES[policy], seed], result[name]))


def own_row(trace, theirs, ours):
    """Compares the product's policy with FGD for the same arrivals."""
    paired = [b - a for a, b in zip(theirs, ours)]
    error = statistics.stdev(paired) / len(paired) ** 0.5 if len(paired) > 1 else 0.0
    mean = statistics.mean(paired)
    return Row(f"{trace} {OWN}, above FGD?", f"{statistics.mean(theirs):.2f}", f"{statistics.mean(ours):.2f}", mean > 0,
               f"paired {mean:+.2f}, standard error {error:.2f}")


def rows(play, folder, everything):
    cells = published(folder)
    for trace, seeds in traces_of(folder, everything).items():
        for policy, name in POLICIES.items():
            results = [run(play, folder, trace, seed, policy) for seed in seeds]
            worst = max(difference(cells, trace, seed, policy, r) for seed, r in zip(seeds, results))
            there = statistics.mean(cells[FILES[0], trace, name, seed][100] for seed in seeds)
            here = statistics.mean(r[FILES[0]][100] for r in results)
            yield Row(f"{trace} {policy}", f"{there:.2f}", f"{here:.2f}", worst <= TOLERANCE,
                      f"{len(seeds)} seeds, worst difference {worst:.4f}")
        ours = [run(play, folder, trace, seed, OWN)[FILES[0]][100] for seed in seeds]
        yield own_row(trace, [cells[FILES[0], trace, POLICIES["fgd"], seed][100] for seed in seeds], ours)
