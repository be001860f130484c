"""jobs.py - Jobs of berth.dev on a real API server: placed as a whole, made as pods on their nodes, followed to their
end, restarted, stopped, suspended, deleted; after kills every task exists once. Run by tests/kube/kube_jobs_test.sh,
the kills by kube_jobs_check.sh."""
import os
import pathlib
import signal
import sys

from client import KINDS, PATIENCE, Follower, Refused, wait_for
from control_plane import BERTH, run_cases
import job_volumes
import journals
import objects

PROGRAM = pathlib.Path(os.environ["BERTH_BUILD"]) / "src/kube/berth-kube"
MANIFESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/kubernetes"
KINDS.update({"Job": ("apis/berth.dev/v1", "jobs", True), "Queue": ("apis/berth.dev/v1", "queues", False)})


def start(plane, name="berth-kube", *words):
    return plane.berth_kube(name, [PROGRAM, "--kubeconfig", plane.kubeconfig(BERTH), "--lease",
                                   "berth-system/berth-kube", "--identity", name,
                                   "--scheduler-name", "berth,berth-pack=pack",
                                   *journals.words(plane, "jobs"), *words])  # successive instances use the same folder


def role(name="task", tasks=1, cpu="1", template=None, **more):
    spec = {"terminationGracePeriodSeconds": 0, "containers": [objects.container(cpu=cpu)], **(template or {})}
    return {"name": name, "tasks": tasks, "template": {"metadata": {"labels": {"app": "x"}}, "spec": spec}, **more}


def job(name, *roles, **spec):
    return {"apiVersion": "berth.dev/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
            "spec": {"roles": list(roles) or [role()], **spec}}


def pods(plane, name):
    """Returns the pods of a job by name."""
    found = plane.admin.list("Pod", "default", f"labelSelector=berth.dev/job%3D{name}")
    return {pod["metadata"]["name"]: pod for pod in found}


def live(plane, name):
    return sorted(key for key, pod in pods(plane, name).items()
                  if pod["status"].get("phase") not in ("Succeeded", "Failed"))


def has(plane, name, *names):
    """Waits until exactly these pods of a job are alive."""
    wait_for(f"{name} has {names}", lambda: live(plane, name) == sorted(names))
    return pods(plane, name)


def finish(plane, name, phase="Succeeded", only=None):
    """Writes the status of ended pods, like a kubelet."""
    for key, pod in pods(plane, name).items():
        if pod["status"].get("phase") in ("Succeeded", "Failed") or (only and key not in only):
            continue
        code = 0 if phase == "Succeeded" else 3
        plane.admin.patch({"kind": "Pod", **pod}, {"status": {"phase": phase, "containerStatuses": [
            {"name": "c", "image": "x", "imageID": "", "ready": False, "restartCount": 0,
             "state": {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}}}]}}, "/status")


def status(plane, name):
    return plane.admin.get("Job", name).get("status", {})


def condition(plane, name, kind):
    for one in status(plane, name).get("conditions", []):
        if one["type"] == kind:
            return one
    return {}


def until(plane, name, kind, value="True"):
    return wait_for(f"{name} is {kind}: {value}", lambda: condition(plane, name, kind).get("status") == value
                    and condition(plane, name, kind))


def counts(plane, name):
    found = status(plane, name)
    return found.get("phase"), found.get("pending"), found.get("running"), found.get("succeeded"), found.get("failed")


def events(plane, name):
    return {(one["reason"], one["message"]) for one in plane.admin.list("Event")
            if one["involvedObject"]["kind"] == "Job" and one["involvedObject"]["name"] == name}


def clear(plane):
    for kind in ("Job", "Queue", "Pod", "Node", "Service"):
        for thing in plane.admin.list(kind):
            if thing["metadata"]["name"] != "kubernetes":
                plane.admin.delete({**thing, "kind": kind}, grace=0)
    wait_for("nothing is left", lambda: not any(plane.admin.list(kind) for kind in ("Job", "Pod", "Node")))
    plane.caught_up()


def install(plane):
    """Installs berth-kube by its manifests, with a fake kubelet."""
    for name in ("namespace", "rbac"):
        plane.kubectl("apply", "-f", MANIFESTS / f"{name}.yaml")
    plane.install_kinds(MANIFESTS)
    plane.kubelet = plane.stand_ins("kubelet")
    plane.scheduler = start(plane)


def a_gang_of_two_roles(plane):
    """Follows a job from its creation to the condition for which kubectl waits."""
    install(plane)
    plane.admin.create_all([objects.node("a", cpu="2"), objects.node("b", cpu="2")])
    made = plane.admin.create(job("train", role("master"), role("worker", 2), timeLimit="1h", estimate="10m"))
    found = has(plane, "train", "train-master-0", "train-worker-0", "train-worker-1")
    assert all(pod["spec"].get("nodeName") in ("a", "b") for pod in found.values())
    one = found["train-worker-1"]
    owner, = one["metadata"]["ownerReferences"]
    assert owner == {"apiVersion": "berth.dev/v1", "kind": "Job", "name": "train", "uid": made["metadata"]["uid"],
                     "controller": True, "blockOwnerDeletion": True}, owner
    labels = one["metadata"]["labels"]
    assert labels == {"app": "x", "berth.dev/job": "train", "berth.dev/role": "worker", "berth.dev/index": "1",
                      "berth.dev/attempt": "1"}, labels
    env = {entry["name"]: entry["value"] for entry in one["spec"]["containers"][0]["env"]}
    assert env == {"BERTH_JOB_ID": "train", "BERTH_TASK": "1", "BERTH_ROLE": "worker", "RANK": "2", "WORLD_SIZE": "3",
                   "MASTER_ADDR": "train-master-0.train", "MASTER_PORT": "29500"}, env
    spec = one["spec"]
    assert (spec["hostname"], spec["subdomain"], spec["restartPolicy"], spec["schedulerName"]) == \
        ("train-worker-1", "train", "Never", "berth"), spec
    service = wait_for("it has a Service",
                       lambda: [one for one in plane.admin.list("Service") if one["metadata"]["name"] == "train"])[0]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {"berth.dev/job": "train"}, service
    wait_for("it runs", lambda: counts(plane, "train") == ("Running", 0, 3, 0, 0))
    assert until(plane, "train", "Accepted") and until(plane, "train", "Scheduled")
    finish(plane, "train")
    plane.kubectl("wait", "--for=condition=Complete", "bjob/train", f"--timeout={PATIENCE}s")
    assert counts(plane, "train") == ("Succeeded", 0, 0, 3, 0), status(plane, "train")
    assert status(plane, "train")["startTime"] and status(plane, "train")["completionTime"]
    wait_for("events are written", lambda: {reason for reason, _ in events(plane, "train")} >= {"Started", "Completed"})
    assert "train" in plane.kubectl("get", "bjob")
    assert len(pods(plane, "train")) == 3  # ended pods are kept


def a_gang_waits_as_a_whole(plane):
    plane.admin.create_all([objects.node("a", cpu="2"), objects.node("b", cpu="2")])
    plane.admin.create(job("large", role("x", 3, cpu="1500m")))
    message = until(plane, "large", "Scheduled", "False")
    wait_for("it says why", lambda: "nodes are available" in status(plane, "large").get("reason", ""))
    assert not pods(plane, "large") and message["reason"] == "Waiting", message
    plane.admin.create(job("small", role("x", 2, cpu="2")))  # nothing is reserved for the other job
    has(plane, "small", "small-x-0", "small-x-1")
    wait_for("an event says why", lambda: "FailedScheduling" in {reason for reason, _ in events(plane, "large")})
    finish(plane, "small")
    until(plane, "small", "Complete")
    plane.admin.create(objects.node("c", cpu="2"))
    has(plane, "large", "large-x-0", "large-x-1", "large-x-2")


def invalid_jobs_are_reported(plane):
    plane.admin.create(objects.node("a", cpu="2"))
    always = job("always", role(template={"restartPolicy": "Always"}))
    plane.admin.create(always)
    assert "restartPolicy" in until(plane, "always", "Accepted", "False")["message"]
    plane.admin.create(job("image", role(template={"containers": [{"name": "No Name", "image": "x"}]})))
    assert "containers[0].name" in until(plane, "image", "Accepted", "False")["message"]
    try:
        plane.admin.create(job("too-many", role(tasks=0)))
        assert False, "it was accepted"
    except Refused as error:
        assert error.status == 422
    plane.admin.patch(always, {"spec": {"roles": [role()]}})  # a corrected spec is accepted
    has(plane, "always", "always-task-0")
    until(plane, "always", "Accepted")
    assert not pods(plane, "image")


def conflicting_pod_names_are_refused(plane):
    """If two jobs would have pods with the same names, the later one is not accepted while the other exists."""
    plane.admin.create(objects.node("a", cpu="4"))
    first = plane.admin.create(job("one-two", role("x", 2)))
    has(plane, "one-two", "one-two-x-0", "one-two-x-1")
    plane.admin.create(job("one", role("two-x", 2)))
    assert "those of role x of the earlier job one-two" in until(plane, "one", "Accepted", "False")["message"]
    assert not pods(plane, "one")
    plane.admin.delete(first)
    has(plane, "one", "one-two-x-0", "one-two-x-1")
    until(plane, "one", "Accepted")


def a_failed_gang_is_retried(plane):
    plane.admin.create(objects.node("a", cpu="4"))
    plane.admin.create(job("again", role("x", 2), retries=1))
    has(plane, "again", "again-x-0", "again-x-1")
    finish(plane, "again", only=["again-x-0"])
    finish(plane, "again", "Failed", only=["again-x-1"])
    found = has(plane, "again", "again-x-0-2", "again-x-1-2")  # the whole gang, even tasks that had succeeded
    assert found["again-x-1-2"]["metadata"]["labels"]["berth.dev/attempt"] == "2"
    assert found["again-x-1-2"]["spec"]["hostname"] == "again-x-1"
    wait_for("it is counted", lambda: status(plane, "again").get("restarts") == 1)
    finish(plane, "again", "Failed", only=["again-x-0-2"])
    failed = until(plane, "again", "Failed")
    assert failed["reason"] == "BackoffLimitExceeded" and "again-x-0-2" in failed["message"] and "code 3" in failed[
        "message"], failed
    wait_for("what still ran is deleted", lambda: not live(plane, "again"))
    assert counts(plane, "again")[0] == "Failed"


def tasks_outside_gangs_are_retried_alone(plane):
    plane.admin.create(objects.node("a", cpu="4"))
    plane.admin.create(job("alone", role("x", 2), gang=False, retries=1))
    has(plane, "alone", "alone-x-0", "alone-x-1")
    finish(plane, "alone", "Failed", only=["alone-x-0"])
    has(plane, "alone", "alone-x-0-2", "alone-x-1")
    finish(plane, "alone")
    until(plane, "alone", "Complete")
    assert counts(plane, "alone") == ("Succeeded", 0, 0, 2, 1), status(plane, "alone")


def the_time_is_limited(plane):
    plane.admin.create(objects.node("a", cpu="4"))
    seen = set()  # by a watch: the pods may be gone before a request
    follower = Follower(plane.admin, ["Pod"], lambda _, pod: seen.add(pod["metadata"]["name"]))
    plane.admin.create(job("long", role("x", 2), timeLimit="3s", retries=5))
    wait_for("both are made", lambda: {"long-x-0", "long-x-1"} <= seen)
    failed = until(plane, "long", "Failed")
    follower.end()
    assert failed["reason"] == "DeadlineExceeded", failed
    wait_for("it is stopped", lambda: not live(plane, "long"))


def it_can_be_suspended(plane):
    plane.admin.create(objects.node("a", cpu="4"))
    made = plane.admin.create(job("later", role("x", 2), suspend=True))
    wait_for("it is suspended", lambda: counts(plane, "later")[0] == "Suspended")
    assert not pods(plane, "later")
    plane.admin.patch(made, {"spec": {"suspend": False}})
    has(plane, "later", "later-x-0", "later-x-1")
    plane.admin.patch(made, {"spec": {"suspend": True}})
    has(plane, "later")
    wait_for("it is suspended again", lambda: counts(plane, "later") == ("Suspended", 2, 0, 0, 0))
    plane.admin.patch(made, {"spec": {"suspend": False}})
    has(plane, "later", "later-x-0", "later-x-1")


def deleted_it_goes(plane):
    plane.admin.create(objects.node("a", cpu="2"))
    made = plane.admin.create(job("gone", role("x", 2)))
    first = has(plane, "gone", "gone-x-0", "gone-x-1")
    plane.admin.delete(made)
    again = plane.admin.create(job("gone", role("x", 2)))  # a new job with the same name
    wait_for("others are there",
             lambda: {pod["metadata"]["ownerReferences"][0]["uid"] for pod in pods(plane, "gone").values()}
             == {again["metadata"]["uid"]} and len(live(plane, "gone")) == 2)
    assert not {pod["metadata"]["uid"] for pod in first.values()} & {pod["metadata"]["uid"]
                                                                     for pod in pods(plane, "gone").values()}
    plane.admin.create(job("brief", role(cpu="0"), ttlSecondsAfterFinished=1))
    has(plane, "brief", "brief-task-0")
    finish(plane, "brief")
    wait_for("it is deleted after its end",
             lambda: not [one for one in plane.admin.list("Job") if one["metadata"]["name"] == "brief"])


def the_urgent_go_first(plane):
    plane.admin.create(objects.node("a", cpu="2"))
    plane.admin.create(job("low", role("x", 2)))
    has(plane, "low", "low-x-0", "low-x-1")
    plane.admin.create(job("high", role("x", 1, cpu="2"), priority=100))
    has(plane, "high", "high-x-0")
    has(plane, "low")  # the gang waits as a whole
    wait_for("it was told", lambda: "Preempted" in {reason for reason, _ in events(plane, "low")})
    finish(plane, "high")
    has(plane, "low", "low-x-0", "low-x-1")  # the same attempt: it has not failed
    assert status(plane, "low")["restarts"] == 0


def with_fewer_it_begins(plane):
    plane.admin.create(objects.node("a", cpu="2"))
    plane.admin.create(job("grows", role("x", 4, min=2)))
    has(plane, "grows", "grows-x-0", "grows-x-1")
    until(plane, "grows", "Scheduled")
    plane.admin.create(objects.node("b", cpu="1"))
    has(plane, "grows", "grows-x-0", "grows-x-1", "grows-x-2")
    finish(plane, "grows")
    until(plane, "grows", "Complete")
    assert counts(plane, "grows")[:4] == ("Succeeded", 0, 0, 3), status(plane, "grows")


def queues_limit_them(plane):
    plane.admin.create(objects.node("a", cpu="8"))
    plane.admin.create({"apiVersion": "berth.dev/v1", "kind": "Queue", "metadata": {"name": "narrow"},
                        "spec": {"quota": {"limits": {"cpu": 2}}, "maxTime": "1h"}})
    plane.admin.create(job("first", role("x", 2), queue="narrow", timeLimit="30m"))
    has(plane, "first", "first-x-0", "first-x-1")
    plane.admin.create(job("second", role("x", 2), queue="narrow", timeLimit="30m"))
    wait_for("it says which quota", lambda: "queue/narrow" in status(plane, "second").get("reason", ""))
    plane.admin.create(job("elsewhere", role("x", 2), queue="missing"))
    wait_for("it says which queue", lambda: "missing" in status(plane, "elsewhere").get("reason", ""))
    finish(plane, "first")
    has(plane, "second", "second-x-0", "second-x-1")
    assert not pods(plane, "elsewhere")


def a_template_names_a_scheduler(plane):
    """Each role is placed by the profile of its schedulerName; another scheduler's name counts as none."""
    plane.admin.create_all([objects.node("busy", cpu="16"), objects.node("idle", cpu="16")])
    plane.admin.create(objects.pod("old", cpu="8", on="busy", scheduler="somebody"))
    plane.caught_up()
    names = {"spreads": None, "packs": "berth-pack", "strays": "somebody"}
    wanted = {"spreads": ("idle", "berth"), "packs": ("busy", "berth-pack"), "strays": ("idle", "berth")}
    for name, scheduler in names.items():  # a job for each name, then one with both
        template = {"schedulerName": scheduler} if scheduler else None
        plane.admin.create(job(name, role("x", 2, template=template)))
        found = has(plane, name, f"{name}-x-0", f"{name}-x-1").values()
        assert {(pod["spec"]["nodeName"], pod["spec"]["schedulerName"])
                for pod in found} == {wanted[name]}, (name, found)
    plane.admin.create(job("both", role("s"), role("p", template={"schedulerName": "berth-pack"})))
    found = has(plane, "both", "both-s-0", "both-p-0")
    assert {name: (pod["spec"]["nodeName"], pod["spec"]["schedulerName"]) for name, pod in found.items()} == {
        "both-s-0": wanted["spreads"], "both-p-0": wanted["packs"]}, found
    finish(plane, "both")
    until(plane, "both", "Complete")


def killed_at_any_moment(plane):
    """Every task exists exactly once: berth-kube is killed while it makes pods one after another."""
    install(plane)
    plane.admin.create_all([objects.node(f"n{i}", cpu="30") for i in range(4)])
    plane.leave(plane.scheduler)
    plane.scheduler = start(plane, "one-by-one", "--connections", "1")
    between = number = 0
    while number < 4 or (not between and number < 20):
        plane.admin.create(job(f"kill-{number}", role("x", 30)))
        wait_for("it has begun", lambda which=number: pods(plane, f"kill-{which}"), pause=0)
        plane.leave(plane.scheduler, signal.SIGKILL)
        between += len(pods(plane, f"kill-{number}")) < 30
        plane.scheduler = start(plane, f"after-{number}", "--connections", "1")
        names = [f"kill-{number}-x-{i}" for i in range(30)]
        has(plane, f"kill-{number}", *names)
        if number % 2 or number > 3:
            finish(plane, f"kill-{number}")
            plane.leave(plane.scheduler, signal.SIGKILL)
            plane.scheduler = start(plane, f"once-more-{number}")
            until(plane, f"kill-{number}", "Complete")
            assert sorted(pods(plane, f"kill-{number}")) == sorted(names)
        number += 1
    for number in (0, 2):
        assert counts(plane, f"kill-{number}")[0] == "Running" and len(pods(plane, f"kill-{number}")) == 30
    assert between, "it was never killed in between"


def answers_are_lost(plane):
    """The API server is killed while pods are being made, and again while they end."""
    plane.admin.create_all([objects.node(f"n{i}", cpu="30") for i in range(2)])
    for number in range(2):
        name = f"lost-{number}"
        plane.admin.create(job(name, role("x", 20)))
        wait_for("it has begun", lambda which=name: pods(plane, which), pause=0)
        plane.kill_api()
        plane.start_api()
        has(plane, name, *[f"{name}-x-{i}" for i in range(20)])
        finish(plane, name)
        plane.kill_api()
        plane.start_api()
        until(plane, name, "Complete")
        assert len(pods(plane, name)) == 20 and status(plane, name)["restarts"] == 0


KILLS = [killed_at_any_moment, answers_are_lost]  # these cases take long
CASES = [a_gang_of_two_roles, a_gang_waits_as_a_whole, invalid_jobs_are_reported, conflicting_pod_names_are_refused,
         a_failed_gang_is_retried, tasks_outside_gangs_are_retried_alone,
         the_time_is_limited, it_can_be_suspended, deleted_it_goes, the_urgent_go_first, with_fewer_it_begins,
         queues_limit_them, a_template_names_a_scheduler, *job_volumes.cases(sys.modules[__name__])]


if __name__ == "__main__":
    run_cases([*(KILLS if sys.argv[1:] == ["kills"] else CASES), journals.every_plan_is_made_again], clear)
