"""Orders with and without backfilling: RLScheduler, SC 2020, ten sequences of a Lublin workload."""
from row import Row

TITLE = "lublin: average bounded slowdown of ten sequences of 1,024 jobs"
STARTS = "1981,2756,4299,8850,3316,2714,5228,7762,4022,7085"
PUBLISHED = [
    ("FCFS", "fcfs", "none", 7273.77),
    ("SJF", "sjf", "none", 277.35),
    ("F1", "f1", "none", 258.37),
    ("FCFS, backfill", "fcfs", "easy", 235.82),
    ("SJF, backfill", "sjf", "easy", 73.31),
    ("F1, backfill", "f1", "easy", 75.07),
]
LEARNED = 58.64  # RLScheduler with backfill


def rows(play, folder, everything):
    del everything
    arguments = ["swf", folder / "lublin_256.swf.gz", "--procs", 256, "--starts", STARTS, "--length", 1024,
                 "--protocol", "rlscheduler"]
    for title, order, backfill, published in PUBLISHED:
        ours = play(*arguments, "--order", order, "--backfill", backfill)["average_bounded_slowdown"]
        yield Row(title, f"{published:.2f}", f"{ours:.2f}", f"{published:.2f}" == f"{ours:.2f}")
    try:
        ours = play(*arguments, "--order", "berth", "--backfill", "berth")["average_bounded_slowdown"]
        yield Row("berth", f"<{LEARNED:.2f}", f"{ours:.2f}", ours < LEARNED)
    except RuntimeError as error:
        yield Row("berth", f"<{LEARNED:.2f}", "-", None, str(error).split(";")[0])
