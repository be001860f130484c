"""Cases of jobs_test.sh: the life cycle of jobs, with a real daemon, a real agent and real processes."""
import pathlib
import time

from agent_kit import AGENT, BERTH, BERTHD, SHIM, Cluster, case, main, skip_unless, skip_unless_root, wait_for

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3")
skip_unless_root()
SLEEP = ["/bin/sleep", "600"]


def post(c, path, body=None, want=200):
    status, answer = c.ask("POST", path, body if body is not None else {})
    assert status == want, (path, status, answer)
    return answer


def shared(c):
    """Makes a folder that jobs of every user may write to."""
    folder = pathlib.Path(c.work, "shared")
    folder.mkdir()
    folder.chmod(0o777)
    return folder


def mount(folder):
    return [{"path": "/shared", "bind": str(folder)}]


@case
def arrays_run_a_few_at_a_time():
    with Cluster() as c:
        c.node("n1")
        folder = shared(c)
        task = ("echo $BERTH_ARRAY_INDEX > /shared/$BERTH_ARRAY_INDEX; "
                "until test -e /shared/go; do sleep 0.05; done; sleep 0.3")
        job = c.job(["/bin/sh", "-c", task], array="10-18:2%2", mounts=mount(folder))
        counts = []

        def look():
            counts.append(sum(i["state"] in ("starting", "running", "assigned") for i in c.instances(job)))
            return c.state("jobs", job) == "ended"
        wait_for("two run", lambda: look() or counts[-1] >= 2 and len(list(folder.iterdir())) >= 2)
        (folder / "go").touch()
        wait_for("all tasks have ended", look)
        assert sorted(f.name for f in folder.iterdir()) == ["10", "12", "14", "16", "18", "go"]
        assert max(counts) == 2, counts


@case
def a_task_of_an_array_fails_alone():
    with Cluster() as c:
        c.node("n1")
        job = c.job(["/bin/sh", "-c", 'test "$BERTH_ARRAY_INDEX" != 1'], array="0-2", retries=0)
        shown = c.wait_state("jobs", job, "failed")
        assert "1 of 3 tasks" in shown["error"], shown
        failed = [i for i in c.instances(job) if i.get("failed")]
        assert len(failed) == 1 and failed[0]["ordinal"] == 1 and failed[0]["exit"] == 1, failed


@case
def a_large_array_is_one_record():
    with Cluster() as c:
        job = c.job(SLEEP, array={"to": 9999}, hold=True)
        shown = c.get(f"/v1/jobs/{job}")
        assert shown["status"]["replicas"] == 10000 and not shown["status"]["instances"]
        assert len(c.get("/v1/jobs")["items"]) == 1


@case
def jobs_wait_for_each_other():
    with Cluster() as c:
        c.node("n1")
        folder = shared(c)
        good = c.job(["/bin/sh", "-c", "sleep 0.5; echo a >> /shared/log"], mounts=mount(folder))
        bad = c.job(["/bin/false"], retries=0)
        then = c.job(["/bin/sh", "-c", "echo b >> /shared/log"], after=[good], mounts=mount(folder))
        rescue = c.job(["/bin/true"], after=[{"job": bad, "when": "failed"}])
        never = c.job(["/bin/true"], after=[{"job": bad, "when": "ok"}])
        whatever = c.job(["/bin/true"], after=[{"job": good, "when": "ended"}, {"job": bad, "when": "ended"}])
        for job in (then, rescue, whatever):
            c.wait_state("jobs", job, "ended")
        assert (folder / "log").read_text() == "a\nb\n"
        shown = c.wait_state("jobs", never, "failed")
        assert f"job {bad} to succeed cannot be met: that job has failed" in shown["error"], shown


@case
def dependencies_are_explained():
    with Cluster() as c:
        c.node("n1")
        first = c.job(SLEEP)
        then = c.job(["/bin/true"], after=[first])
        single = c.job(["/bin/true"], singleton=True)
        shown = c.wait_state("jobs", then, "waiting")
        assert shown["status"]["help"] == f"waits for job {first} to succeed", shown["status"]
        assert f"waits for the earlier job {first}" in c.get(f"/v1/jobs/{single}")["status"]["help"]
        c.daemon.end()
        c.start()  # the restarted daemon still knows the dependencies
        post(c, f"/v1/jobs/{first}/cancel")
        shown = c.wait_state("jobs", then, "failed")
        assert "was cancelled" in shown["error"]
        c.wait_state("jobs", single, "ended")


@case
def jobs_over_their_time_limit_are_stopped():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(SLEEP, time_limit="1s")
        shown = c.wait_state("jobs", job, "failed")
        assert "exceeded its time limit of 1s" in shown["error"], shown
        wait_for("nothing of it is left", lambda: not agent.processes())


@case
def jobs_that_cannot_meet_their_deadline_fail():
    with Cluster() as c:
        c.node("n1")
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 40))
        # the submission is refused if it comes 12 s late
        job = c.job(["/bin/true"], deadline=soon, estimate="27s", requests={"cpu": 10000})
        shown = c.wait_state("jobs", job, "failed")
        assert "could not start in time" in shown["error"], shown
        status, answer = c.ask("POST", "/v1/jobs", {"command": ["x"], "deadline": "2020-01-01T00:00:00Z"})
        assert status == 400 and "deadline" in answer["error"]["message"], answer


@case
def jobs_can_be_requeued():
    with Cluster() as c:
        c.node("n1")
        folder = shared(c)
        job = c.job(["/bin/sh", "-c", "echo x >> /shared/log"], mounts=mount(folder))
        c.wait_state("jobs", job, "ended")
        post(c, f"/v1/jobs/{job}/requeue")
        wait_for("it ran twice", lambda: (folder / "log").read_text() == "x\nx\n")
        c.wait_state("jobs", job, "ended")
        running = c.job(["/bin/sh", "-c", "echo y >> /shared/other; exec sleep 600"], mounts=mount(folder))
        wait_for("it runs", lambda: (folder / "other").exists())
        post(c, f"/v1/jobs/{running}/requeue")
        wait_for("it began again", lambda: (folder / "other").read_text() == "y\ny\n")


@case
def jobs_checkpoint_before_a_stop():
    with Cluster() as c:
        c.node("n1")
        folder = shared(c)
        save = "trap 'echo saved > /shared/saved; exit 0' USR2; echo up > /shared/up; while :; do sleep 0.1; done"
        job = c.job(["/bin/sh", "-c", save], mounts=mount(folder), checkpoint={"signal": "USR2", "grace": "50s"})
        wait_for("it runs", lambda: (folder / "up").exists())
        post(c, f"/v1/jobs/{job}/cancel")
        wait_for("it has saved its work", lambda: (folder / "saved").exists())
        c.wait_state("jobs", job, "ended")


@case
def jobs_that_do_not_checkpoint_are_stopped_too():
    with Cluster() as c:
        agent = c.node("n1")
        folder = shared(c)
        deaf = "trap 'echo heard > /shared/heard' USR1; echo up > /shared/up; while :; do sleep 0.1; done"
        job = c.job(["/bin/sh", "-c", deaf], mounts=mount(folder), checkpoint={"grace": "5s"}, stop={"grace": "1s"})
        wait_for("it runs", lambda: (folder / "up").exists())
        post(c, f"/v1/jobs/{job}/hold?stop=true")
        wait_for("nothing of it is left", lambda: not agent.processes())
        assert (folder / "heard").exists()
        c.wait_state("jobs", job, "held")


@case
def a_set_starts_together():
    with Cluster() as c:
        c.node("n1")
        status, answer = c.ask("POST", "/v1/jobs", {"name": "set", "command": SLEEP, "roles": [
            {"name": "driver"}, {"name": "worker", "replicas": 2}]})
        assert status == 201 and len(answer["ids"]) == 2, answer
        driver, worker = answer["ids"]
        c.wait_state("jobs", driver, "running")
        c.wait_state("jobs", worker, "running")
        post(c, f"/v1/jobs/{worker}/cancel")
        for job in (driver, worker):
            assert c.wait_state("jobs", job, "ended")["cancelled"]


@case
def a_cron_is_kept_and_shown():
    with Cluster() as c:
        answer = post(c, "/v1/crons", {"name": "night", "schedule": "30 3 * * *", "job": {"command": ["/bin/true"]}},
                      201)
        shown = c.get(f"/v1/crons/{answer['id']}")
        assert shown["status"]["next"].endswith("T03:30:00Z"), shown
        status, answer = c.ask("POST", "/v1/crons", {"name": "x", "schedule": "61 * * * *", "job": {"command": ["x"]}})
        assert status == 400 and "minute" in answer["error"]["message"], answer


PEOPLE = """kind: group
id: lab
---
kind: user
id: ann
group: lab
role: user
---
kind: user
id: ben
group: lab
role: user
"""


def lab(c, *settings):
    """Makes users, settings and a node; returns a cpu request of which the node has room for one only."""
    c.berth("apply", "-f", "-", stdin=PEOPLE)
    if settings:
        c.berth("system", "settings", *settings)
    c.node("n1")
    cpu = c.get("/v1/nodes/n1")["allocatable"]["cpu"]
    cores = float(cpu[:-1]) / 1000 if str(cpu).endswith("m") else float(cpu)
    return {"cpu": f"{int(cores * 600)}m"}


def gate(c, folder, most):
    """Submits a job that fills the node until the file `go` exists."""
    job = c.job(["/bin/sh", "-c", "until test -e /shared/go; do sleep 0.05; done"], mounts=mount(folder), requests=most)
    c.wait_state("jobs", job, "running")
    return job


def say(word):
    return ["/bin/sh", "-c", f"date +%s%N > /shared/said-{word}"]


def said(folder):
    """Returns the words that jobs have written, oldest first."""
    return [f.name[5:] for f in sorted(folder.glob("said-*"), key=lambda f: int(f.read_text()))]


@case
def the_highest_priority_goes_first():
    with Cluster() as c:
        folder, most = shared(c), lab(c, "preemption=off")
        gate(c, folder, most)
        jobs = [c.job(say(word), mounts=mount(folder), requests=most, priority=priority)
                for word, priority in (("low", -5), ("first", 0), ("second", 0), ("high", 7))]
        wait_for("all wait", lambda: [int(r["id"]) for r in c.get("/v1/queue")["items"]] ==
                 [jobs[3], jobs[1], jobs[2], jobs[0]])
        (folder / "go").touch()
        c.wait_state("jobs", jobs[0], "ended")
        assert said(folder) == ["high", "first", "second", "low"], said(folder)


@case
def users_with_less_usage_go_first():
    with Cluster() as c:
        folder, most = shared(c), lab(c, "policy=fair-share")
        used = c.job(["/bin/sleep", "1"], owner="ann", requests=most)
        c.wait_state("jobs", used, "ended")
        gate(c, folder, most)
        mine = c.job(say("ann"), owner="ann", mounts=mount(folder), requests=most)
        other = c.job(say("ben"), owner="ben", mounts=mount(folder), requests=most)
        wait_for("ben comes first", lambda: [int(r["id"]) for r in c.get("/v1/queue")["items"]] == [other, mine])
        (folder / "go").touch()
        c.wait_state("jobs", mine, "ended")
        assert said(folder) == ["ben", "ann"], said(folder)


@case
def quotas_limit_requested_and_running_work():
    with Cluster() as c:
        lab(c)
        c.berth("quota", "set", "user/ann", "limits.cpu=200m", "limits.pods=2", "admitted.jobs=3")
        status, answer = c.ask("POST", "/v1/jobs", {"command": SLEEP, "owner": "ann", "requests": {"cpu": "300m"}})
        said = answer["error"]["message"]
        assert status == 403 and "quota user/ann: at most 200m cpu at once" in said, (status, answer)
        assert "requests 300m cpu" in said and "200m cpu would be accepted" in said, said
        assert not c.get("/v1/jobs")["items"]
        jobs = [c.job(SLEEP, owner="ann", requests={"cpu": "90m"}) for _ in range(3)]
        status, answer = c.ask("POST", "/v1/jobs", {"command": SLEEP, "owner": "ann"})
        assert status == 403 and "3 jobs" in answer["error"]["message"], (status, answer)
        for job in jobs[:2]:
            c.wait_state("jobs", job, "running")
        waits = wait_for("the third waits for the quota",
                         lambda: (w := c.get(f"/v1/jobs/{jobs[2]}/why")).get("reasons") and w)
        assert waits["reasons"][0]["reason"] == "quota" and "user/ann" in waits["reasons"][0]["text"], waits
        post(c, f"/v1/jobs/{jobs[0]}/cancel")
        c.wait_state("jobs", jobs[2], "running")


@case
def preempted_jobs_are_requeued_or_cancelled():
    with Cluster() as c:
        folder, most = shared(c), lab(c, "preempt_min_run_s=0")
        again = c.job(["/bin/sh", "-c", "echo began >> /shared/log; exec sleep 600"], mounts=mount(folder),
                      requests=most, retries=0)
        wait_for("it runs", lambda: (folder / "log").exists())
        status, draft = c.ask("POST", "/v1/jobs?dry_run=true&forecast=1",
                              {"command": ["/bin/true"], "requests": most, "priority": 5})
        foreseen = draft["answer"]["forecast"]
        assert status == 200 and foreseen["now"] and foreseen["stops"] == 1, draft
        urgent = c.job(["/bin/true"], requests=most, priority=5)
        c.wait_state("jobs", urgent, "ended")
        wait_for("it began once more", lambda: (folder / "log").read_text() == "began\nbegan\n")
        told = [e for e in c.get("/v1/events")["items"] if e["type"] == "Preempted"]
        assert told and f"preempted by job {urgent}" in told[0]["message"], told
        post(c, f"/v1/jobs/{again}/cancel")
        c.wait_state("jobs", again, "ended")
        once = c.job(SLEEP, requests=most, preempt="cancel")
        safe = c.job(SLEEP, requests={"cpu": "50m"}, preemptible=False)
        c.wait_state("jobs", once, "running")
        c.wait_state("jobs", safe, "running")
        urgent = c.job(["/bin/true"], requests=most, priority=5)
        c.wait_state("jobs", urgent, "ended")
        shown = c.wait_state("jobs", once, "ended")
        assert shown["cancelled"], shown
        assert c.state("jobs", safe) == "running"


@case
def a_window_keeps_a_node_free():
    with Cluster() as c:
        lab(c)
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 600))
        post(c, "/v1/windows", {"id": "clean", "maintenance": True, "nodes": ["n1"], "start": soon, "duration": "1h"},
             201)
        long, brief = c.job(SLEEP, name="long", time_limit="1h"), c.job(["/bin/true"], name="brief", time_limit="1m")
        c.wait_state("jobs", brief, "ended")
        waits = wait_for("the long one waits", lambda: (w := c.get(f"/v1/jobs/{long}/why")).get("reasons") and w)
        assert waits["reasons"][0]["reason"] == "window", waits
        assert waits["standing"]["start"] > soon, waits  # after the window
        c.berth("delete", "window/clean")
        c.wait_state("jobs", long, "running")
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        post(c, "/v1/windows", {"id": "course", "users": ["ann"], "nodes": ["n1"], "start": now, "duration": "1h"}, 201)
        other, mine = (c.job(["/bin/true"], owner=who, time_limit="1m") for who in ("ben", "ann"))
        c.wait_state("jobs", mine, "ended")
        assert c.state("jobs", other) == "pending"
        assert c.state("jobs", long) == "running"  # running jobs are not stopped


@case
def the_example_lab_rules_are_applied():
    rules = pathlib.Path(__file__).parent.parent.parent / "examples/lab-rules.yaml"
    with Cluster() as c:
        assert c.berth("apply", "-f", rules).count(" created\n") == 10
        assert c.berth("apply", "-f", rules).count(" unchanged\n") == 10
        c.berth("system", "settings", "policy=lab-fair")
        status, answer = c.ask("POST", "/v1/jobs", {"command": SLEEP, "owner": "carol", "queue": "urgent"})
        assert status == 403 and "urgent is not open to user carol; it is open to group vision" in answer["error"][
            "message"], answer
        assert c.berth("submit", "--owner", "alice", "--queue", "night", "--cpu", "500m", "--time", "1h", "--",
                       "sleep", "60").startswith("job/")


@case
def jobs_with_a_begin_time_are_explained():
    with Cluster() as c:
        lab(c)
        later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        job = c.job(["/bin/true"], begin=later)
        shown = c.wait_state("jobs", job, "waiting")
        assert shown["status"]["help"] == f"does not start before {later}", shown
        assert c.get(f"/v1/jobs/{job}/why")["lines"] == [f"Start time: not before {later}."]


main()
