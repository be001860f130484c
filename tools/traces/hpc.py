"""Queues, backfilling and predictions: Gaussier et al., SC 2015, on three logs of the Parallel Workloads Archive."""
import gzip

from row import Row

TITLE = "hpc: average bounded slowdown; published schedules job by job"
# The published results of "learned", the best single triple of the paper.
LOGS = {"KTH-SP2": (100, 51.44), "CTC-SP2": (338, 20.55), "SDSC-SP2": (128, 74.95)}
POLICIES = [
    ("EASY", "easy", "fcfs", "request"),
    ("EASY clairvoyant", "easy_clairvoyant", "fcfs", "clairvoyant"),
    ("SJBF clairvoyant", "sjbf_clairvoyant", "sjbf", "clairvoyant"),
    ("EASY++", "easypp", "sjbf", "last2"),
]
# Only the average of this one was published.
SJBF_ON_REQUESTS = {"KTH-SP2": 69.41, "CTC-SP2": 30.04, "SDSC-SP2": 84.89}
BOUND = 10


def read(path):
    """Returns number, submission, wait and run time of each job."""
    with gzip.open(path, "rt") as f:
        rows = (line.split() for line in f if not line.startswith(";"))
        return [(int(r[0]), float(r[1]), float(r[2]), float(r[3])) for r in rows]


def slowdowns(jobs):
    values = [max(1.0, (wait + run) / max(run, BOUND)) for _, _, wait, run in jobs]
    average = sum(values) / len(values)
    return average, max(values), (sum(v * v for v in values) / len(values)) ** 0.5


def differing(published, ours):
    waits = {int(job): float(wait) if wait else None for job, wait in ours}
    return sum(waits.get(job) != wait for job, _, wait, _ in published)


def published_rows(play, folder, log, procs):
    for title, file, order, predict in POLICIES:
        path = folder / log / f"{file}.swf.gz"
        jobs = read(path)
        arguments = ["swf", path, "--procs", procs, "--order", order, "--backfill", "easy", "--predict", predict]
        ours = play.csv(*arguments)
        waits = dict((int(job), float(wait)) for job, wait in ours if wait)
        average = slowdowns([(job, submit, waits.get(job, 0.0), run) for job, submit, _, run in jobs])[0]
        differ = differing(jobs, ours)
        yield Row(f"{log} {title}", f"{slowdowns(jobs)[0]:.2f}", f"{average:.2f}", differ == 0,
                  f"{differ} of {len(jobs)} waits differ")


def average_row(play, folder, log, procs):
    published = SJBF_ON_REQUESTS[log]
    ours = play("swf", folder / log / "easy.swf.gz", "--procs", procs, "--order", "sjbf", "--backfill", "easy",
                "--predict", "request")
    average = f"{ours['average_bounded_slowdown']:.2f}"
    yield Row(f"{log} SJBF on requests", f"{published:.2f}", average, average == f"{published:.2f}")


def own_rows(play, folder, log, procs, learned):
    """Our own policy: its result must be below "learned", with no worse longest wait than EASY."""
    path = folder / log / "easy.swf.gz"
    _, largest, rms = slowdowns(read(path))
    try:
        ours = play("swf", path, "--procs", procs, "--order", "berth", "--backfill", "berth", "--predict", "berth")
    except RuntimeError as error:
        yield Row(f"{log} berth", f"<{learned:.2f}", "-", None, str(error).split(";")[0])
        return
    for title, goal, value, below in [
        ("average", learned, ours["average_bounded_slowdown"], True),
        ("largest, by EASY", largest, ours["max_bounded_slowdown"], False),
        ("root mean square, by EASY", rms, ours["rms_bounded_slowdown"], False),
    ]:
        met = value < goal if below else value <= goal
        yield Row(f"{log} berth, {title}", f"{'<' if below else '<='}{goal:.2f}", f"{value:.2f}", met)


def rows(play, folder, everything):
    del everything
    for log, (procs, learned) in LOGS.items():
        yield from published_rows(play, folder, log, procs)
        yield from average_row(play, folder, log, procs)
        yield from own_rows(play, folder, log, procs, learned)
