"""tenants.py - queues, groups, users, domains and policies on a real API server: refusals with reasons, limits over
several queues, borrowing and reclaiming, order, and their status. Run by tests/kube/kube_tenants_test.sh."""
import datetime
import os
import pathlib
import signal
import sys
import time

from client import KINDS, PATIENCE, Refused, wait_for
from control_plane import BERTH, run_cases
import journals
import objects

PROGRAM = pathlib.Path(os.environ["BERTH_BUILD"]) / "src/kube/berth-kube"
MANIFESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/kubernetes"
NAME = "berth"
# Instances that are killed and replaced have a short lease, so that the next one leads in seconds.
FOLLOWED = ["--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=4s",
            "--leader-elect-retry-period=500ms"] if sys.argv[1:] == ["kills"] else []
OURS = {"Queue": "queues", "Group": "groups", "User": "users", "Domain": "domains", "Policy": "policies"}
KINDS.update({kind: ("apis/berth.dev/v1", plural, False) for kind, plural in OURS.items()})


def start(plane, name="berth-kube"):
    return plane.berth_kube(name,
                            [PROGRAM, "--kubeconfig", plane.kubeconfig(BERTH), "--scheduler-name", NAME, "--lease",
                             "berth-system/berth-kube", "--identity", name, *FOLLOWED, *journals.words(plane, name)])


def tenant(kind, name, **spec):
    return {"apiVersion": "berth.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def pod(name, queue=None, user=None, **options):
    labels = {key: value for key, value in (("berth.dev/queue", queue), ("berth.dev/user", user)) if value}
    return objects.pod(name, scheduler=NAME, labels=labels, **options)


def node_of(plane, name):
    return plane.admin.get("Pod", name)["spec"].get("nodeName")


def bound(plane, *names):
    for name in names:
        wait_for(f"{name} is bound", lambda which=name: node_of(plane, which))


def accepted(plane, kind, name):
    """Returns the Accepted condition, once it is about the present spec."""
    def look():
        thing = plane.admin.get(kind, name)
        for one in thing.get("status", {}).get("conditions", []):
            if one["type"] == "Accepted" and one["observedGeneration"] == thing["metadata"]["generation"]:
                return one
        return None
    return wait_for(f"{kind} {name} is judged", look)


def until(plane, kind, name, value):
    wait_for(f"{kind} {name} is accepted: {value}", lambda: accepted(plane, kind, name)["status"] == value)


def refusal(plane, name, part):
    def look():
        for one in plane.admin.get("Pod", name).get("status", {}).get("conditions", []):
            if one["type"] == "PodScheduled" and one["status"] == "False" and part in one["message"]:
                return one["message"]
        return None
    return wait_for(f"{name} says '{part}'", look)


def use(plane, kind, name):
    status = plane.admin.get(kind, name).get("status", {})
    return status.get("pending"), status.get("running"), status.get("used", {}).get("cpu")


def clear(plane):
    def left():
        kinds = ("Pod", "Node", *(OURS if plane.admin.ask("GET", "/apis/berth.dev/v1")[0] == 200 else ()))
        return [{**thing, "kind": kind} for kind in kinds for thing in plane.admin.list(kind)]
    for thing in left():
        plane.admin.delete(thing, grace=0)
    wait_for("nothing is left", lambda: not left())
    plane.caught_up()


def kinds_are_found_when_installed(plane):
    """berth-kube starts before its kinds are installed, finds them then, and its rights suffice."""
    for name in ("namespace", "rbac"):
        plane.kubectl("apply", "-f", MANIFESTS / f"{name}.yaml")
    plane.scheduler = start(plane)
    plane.admin.create_all([objects.node("n", cpu="2"), pod("plain", cpu="1")])
    bound(plane, "plain")
    plane.install_kinds(MANIFESTS)
    plane.admin.create(tenant("Queue", "q"))
    condition = accepted(plane, "Queue", "q")
    assert condition["status"] == "True" and condition["reason"] == "Accepted", condition
    plane.kubectl("wait", "--for=condition=Accepted", "bqueue/q", f"--timeout={PATIENCE}s")
    plane.admin.create(pod("mine", "q", cpu="1"))
    bound(plane, "mine")
    wait_for("the queue says so", lambda: use(plane, "Queue", "q") == (0, 1, "1"))
    shown = plane.kubectl("get", "bqueue", "q").splitlines()
    assert shown[0].split() == ["NAME", "PARENT", "PRIORITY", "POLICY", "PENDING", "RUNNING", "CPU", "GPU", "USE",
                                "SPENT", "ACCEPTED", "AGE"], shown
    assert "True" in shown[1], shown


def schemas_refuse(plane):
    """Faults that a schema can express are refused by the API server itself."""
    for thing, part in (
            (tenant("Queue", "a.b"), "DNS label"), (tenant("Queue", "a", parent="a"), "its own parent"),
            (tenant("Group", "g", level=101), "less than or equal to 100"),
            (tenant("Queue", "a", weight=0), "greater than or equal to 1"),
            (tenant("Domain", "d", nodes=["n"], require=[{"key": "a"}]), "nodes or require"),
            (tenant("Policy", "p", formula="return age", weights={"age": 1}), "give one of them")):
        try:
            plane.admin.create(thing)
        except Refused as refused:
            assert part in str(refused), refused
        else:
            raise AssertionError(f"accepted: {thing}")


def a_bad_formula_is_reported(plane):
    """A bad formula is refused and the old one stays in force, also after a restart."""
    plane.admin.create(objects.node("n", cpu="2"))
    policy = tenant("Policy", "default", formula="return -size")
    plane.admin.create(policy)
    until(plane, "Policy", "default", "True")
    plane.admin.patch(policy, {"spec": {"formula": "return size +"}})
    condition = accepted(plane, "Policy", "default")
    assert condition["status"] == "False" and "formula" in condition["message"], condition
    assert "stays in force" in condition["message"], condition
    assert plane.admin.get("Policy", "default")["status"]["inForce"] == {"formula": "return -size"}
    plane.leave(plane.scheduler)
    plane.scheduler = start(plane)
    plane.admin.create(pod("holds", "default", cpu="2"))
    bound(plane, "holds")
    plane.admin.create(pod("early", "default", cpu="2"))
    refusal(plane, "early", "Insufficient cpu")
    plane.admin.create(pod("late", "default", cpu="1"))
    refusal(plane, "late", "Insufficient cpu")
    plane.admin.delete(pod("holds"), grace=0)
    bound(plane, "late")  # the smaller pod comes first
    assert node_of(plane, "early") is None
    plane.admin.patch(policy, {"spec": {"formula": "return size"}})
    until(plane, "Policy", "default", "True")
    assert "inForce" not in plane.admin.get("Policy", "default")["status"]


def order_of_creation_does_not_matter(plane):
    plane.admin.create(tenant("Queue", "low", parent="top", groups=["g"]))
    condition = accepted(plane, "Queue", "low")
    assert condition["status"] == "False" and "queue top does not exist" in condition["message"], condition
    plane.admin.create_all([tenant("Queue", "top"), tenant("Group", "g")])
    until(plane, "Queue", "low", "True")
    plane.admin.delete(tenant("Group", "g"))
    until(plane, "Queue", "low", "False")


def group_limit_over_queues(plane):
    group = tenant("Group", "team", namespaces=["default"], quota={"limits": {"cpu": 2}})
    plane.admin.create_all([objects.node("n", cpu="8"), group, tenant("Queue", "x"), tenant("Queue", "y"),
                            tenant("User", "ann", group="team"), tenant("User", "bob")])
    for kind, name in (("Group", "team"), ("Queue", "x"), ("Queue", "y"), ("User", "ann"), ("User", "bob")):
        until(plane, kind, name, "True")
    plane.admin.create(pod("a", "x", cpu="1"))
    plane.admin.create(pod("b", "y", user="ann", cpu="1"))
    bound(plane, "a", "b")
    plane.admin.create(pod("c", "y", cpu="1"))
    message = refusal(plane, "c", "quota")
    assert "quota group/team: 2 of 2 cpu are used or reserved; 1 requested" in message, message
    plane.admin.create(pod("plain", cpu="1"))
    bound(plane, "plain")
    wait_for("the group says so", lambda: use(plane, "Group", "team") == (1, 2, "2"))
    wait_for("the user says so", lambda: use(plane, "User", "ann") == (0, 1, "1"))
    plane.admin.patch(group, {"spec": {"quota": {"limits": {"cpu": 3}}}})
    bound(plane, "c")


def borrowed_shares_are_reclaimed(plane):
    """A queue borrows beyond its guarantee; a queue with a guarantee reclaims its share."""
    plane.admin.create_all([objects.node("n", cpu="4"), tenant("Queue", "x", quota={"guarantees": {"cpu": 2}}),
                            tenant("Queue", "y", quota={"guarantees": {"cpu": 2}})])
    for name in ("x", "y"):
        until(plane, "Queue", name, "True")
    for i in range(4):  # one after the other: the latest ones are preempted
        plane.admin.create(pod(f"x{i}", "x", cpu="1"))
        bound(plane, f"x{i}")
    plane.admin.create(pod("y0", "y", cpu="2"))
    bound(plane, "y0")
    left = sorted(one["metadata"]["name"] for one in plane.admin.list("Pod"))
    assert left == ["x0", "x1", "y0"], left
    plane.admin.create(pod("x4", "x", cpu="1"))
    refusal(plane, "x4", "Insufficient cpu")
    wait_for("the queues say so",
             lambda: (use(plane, "Queue", "x"), use(plane, "Queue", "y")) == ((1, 2, "2"), (0, 1, "2")))
    plane.admin.delete(pod("y0"), grace=0)
    bound(plane, "x4")


def queue_priority(plane):
    plane.admin.create_all([objects.node("n", cpu="1"), tenant("Queue", "low"), tenant("Queue", "high", priority=10)])
    for name in ("low", "high"):
        until(plane, "Queue", name, "True")
    plane.admin.create(pod("holds", "low", cpu="1"))
    bound(plane, "holds")
    plane.admin.create(pod("first", "low", cpu="1"))
    refusal(plane, "first", "Insufficient cpu")
    plane.admin.create(pod("second", "high", cpu="1"))
    refusal(plane, "second", "Insufficient cpu")
    assert node_of(plane, "holds")  # queues have an order, but do not preempt
    plane.admin.delete(pod("holds"), grace=0)
    bound(plane, "second")
    assert node_of(plane, "first") is None


def domains_bound_queues(plane):
    plane.admin.create_all([objects.node("a", cpu="8", labels={"part": "left"}),
                            objects.node("b", cpu="2", labels={"part": "right"}),
                            tenant("Domain", "right", require=[{"key": "part", "values": ["right"]}]),
                            tenant("Queue", "q", domains=["right"])])
    until(plane, "Queue", "q", "True")
    plane.admin.create(pod("one", "q", cpu="2"))
    bound(plane, "one")
    assert node_of(plane, "one") == "b"
    plane.admin.create(pod("two", "q", cpu="2"))
    refusal(plane, "two", "Insufficient cpu")
    wait_for("it counts its nodes", lambda: plane.admin.get("Domain", "right").get("status", {}).get("nodes") == 1)
    plane.admin.create(pod("lost", "nowhere", cpu="1"))
    refusal(plane, "lost", "queue nowhere does not exist")


def usage(plane, kind, name):
    return plane.admin.get(kind, name).get("status", {}).get("usage", {})


def record_usage(plane, name):
    """Runs a pod of the user for two seconds, and waits until its usage is in the status."""
    plane.admin.create(pod(f"{name}-old", "q", user=name, cpu="1"))
    bound(plane, f"{name}-old")
    wait_for("its use is told", lambda: usage(plane, "User", name))
    time.sleep(2)
    plane.admin.delete(pod(f"{name}-old"), grace=0)
    wait_for("its end is told", lambda: usage(plane, "User", name)["own"] >= 1000 and use(plane, "User", name)[1] == 0)


def past_usage_survives_its_leader(plane):
    """A user with more past usage comes later, also for a new leader that only watched until the old one was killed."""
    plane.admin.create_all([objects.node("n", cpu="2"), tenant("Queue", "q", policy="fair-share"),
                            tenant("User", "ann"), tenant("User", "bob")])
    until(plane, "Queue", "q", "True")
    follower = start(plane, "berth-kube-2")
    record_usage(plane, "ann")
    plane.admin.create_all([pod("full", cpu="1"), pod("rest", cpu="1")])
    bound(plane, "full", "rest")
    plane.leave(plane.scheduler, signal.SIGKILL)
    plane.scheduler = follower
    for name in ("ann", "bob"):  # by creation, ann would be first
        plane.admin.create(pod(f"{name}-new", "q", user=name, cpu="1"))
        refusal(plane, f"{name}-new", "Insufficient cpu")
    plane.admin.delete(pod("rest"), grace=0)
    bound(plane, "bob-new")
    assert node_of(plane, "ann-new") is None


def spent_totals_survive_a_kill(plane):
    """Spent totals survive a kill, and a status counts: with everything spent, pods are refused."""
    user = tenant("User", "dan", quota={"totals": [{"resource": "cpu", "hours": 2, "period": "30d"}]})
    plane.admin.create_all([objects.node("n", cpu="3"), tenant("Queue", "q"), user])
    until(plane, "User", "dan", "True")
    record_usage(plane, "dan")
    plane.leave(plane.scheduler, signal.SIGKILL)
    said = usage(plane, "User", "dan")
    assert [one["resource"] for one in said["totals"]] == ["cpu"] and said["totals"][0]["spent"] >= 1000, said
    plane.scheduler = start(plane)
    plane.admin.create(pod("one", "q", user="dan", cpu="1"))
    bound(plane, "one")
    now = wait_for("what runs is told, too",
                   lambda: usage(plane, "User", "dan")["at"] > said["at"] and usage(plane, "User", "dan"))
    since = datetime.datetime.fromisoformat(now["at"][:19]) - datetime.datetime.fromisoformat(said["at"][:19])
    more = now["totals"][0]["spent"] - said["totals"][0]["spent"]  # spent by one core since then
    assert 0 <= more <= 1000 * (since.total_seconds() + 1), (said, now)
    plane.leave(plane.scheduler, signal.SIGKILL)
    now["totals"][0]["spent"] = 2 * 3600 * 1000  # as if it had run for two hours
    plane.admin.patch(user, {"status": {"usage": now}}, "/status")
    plane.scheduler = start(plane)
    plane.admin.create(pod("two", "q", user="dan", cpu="1"))
    refusal(plane, "two", "of 2 cpu-hours of this period are used or reserved")
    plane.admin.delete(pod("one"), grace=0)
    refusal(plane, "two", "quota user/dan: 2 of 2 cpu-hours of this period are used or reserved")
    wait_for("kubectl shows it", lambda: "2.0/2 cpu" in plane.kubectl("get", "users.berth.dev", "dan"))


# these cases wait for leases, and for a status that is written once a minute
KILLS = [kinds_are_found_when_installed, past_usage_survives_its_leader, spent_totals_survive_a_kill]
CASES = [kinds_are_found_when_installed, schemas_refuse, a_bad_formula_is_reported, order_of_creation_does_not_matter,
         group_limit_over_queues, borrowed_shares_are_reclaimed, queue_priority, domains_bound_queues]


if __name__ == "__main__":
    run_cases([*(KILLS if sys.argv[1:] == ["kills"] else CASES), journals.every_plan_is_made_again], after=clear)
