"""kube_scheduler_test.py - berth-kube places pods on a real API server: placed, refused, preempted, gated, with
volumes, after kills."""
import os
import pathlib
import signal
import subprocess
import sys

from client import wait_for
from control_plane import ADMIN, BERTH, NOBODY, run_cases
from delay_proxy import DelayProxy
import journals
import objects

PROGRAM = pathlib.Path(os.environ["BERTH_BUILD"]) / "src/kube/berth-kube"
MANIFESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/kubernetes"
NAME = "berth"
SHORT_LEASE = ["--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s",
               "--leader-elect-retry-period=500ms"]
DELAYS_S = (0.6, 1.2, 4)
SLOW_ROUNDS = 3  # renewals of the lease and successive pods, per delay


def start(plane, name="berth-kube", token=BERTH, *words, port=None):
    return plane.berth_kube(name,
                            [PROGRAM, "--kubeconfig", plane.kubeconfig(token, port), "--scheduler-name", NAME,
                             "--lease",
                             "berth-system/berth-kube", "--identity", name, *journals.words(plane, name), *words])


def pod(name, **options):
    return objects.pod(name, scheduler=NAME, **options)


def node_of(plane, name):
    return plane.admin.get("Pod", name)["spec"].get("nodeName")


def bound(plane, name):
    return wait_for(f"{name} is bound", lambda: node_of(plane, name))


def condition(plane, name):
    for one in plane.admin.get("Pod", name).get("status", {}).get("conditions", []):
        if one["type"] == "PodScheduled" and one["status"] == "False":
            return one
    return None


def said(program, word):
    return any(word in line for line in program.tail(100000))


def clear(plane):
    for kind in ("Pod", "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "Node"):
        for thing in plane.admin.list(kind):
            plane.admin.delete({**thing, "kind": kind}, grace=0)
    wait_for("nothing is left", lambda: not plane.admin.list("Pod") and not plane.admin.list("Node"))
    plane.caught_up()


def placed_as_installed(plane):
    """The manifests make the service account, and its rights suffice."""
    for name in ("namespace", "rbac"):
        plane.kubectl("apply", "-f", MANIFESTS / f"{name}.yaml")
    plane.kubectl("apply", "--dry-run=server", "-k", MANIFESTS)
    journals.installs(plane, MANIFESTS)
    plane.admin.create_all([objects.node("small", cpu="1"), objects.node("large", cpu="8")])
    plane.scheduler = start(plane)
    plane.admin.create_all([pod("fits", cpu="4"), pod("never", cpu="9"),
                            objects.pod("other", cpu="1", scheduler="somebody")])
    assert bound(plane, "fits") == "large"
    message = wait_for("it says why not", lambda: condition(plane, "never"))
    assert message["reason"] == "Unschedulable", message
    assert message["message"].startswith("0/2 nodes are available: 2 Insufficient cpu"), message

    def events():
        found = {(one["involvedObject"]["name"], one["reason"]): one["message"] for one in plane.admin.list("Event")}
        return found if ("fits", "Scheduled") in found and ("never", "FailedScheduling") in found else None
    found = wait_for("events are written", events)
    assert found["fits", "Scheduled"] == "Successfully assigned default/fits to large", found
    assert "Insufficient cpu" in found["never", "FailedScheduling"], found
    assert node_of(plane, "other") is None


def pods_of_other_schedulers_count(plane):
    plane.admin.create(objects.node("n", cpu="4"))
    plane.admin.create(objects.pod("foreign", cpu="3", on="n", scheduler="somebody"))
    plane.admin.create(pod("large", cpu="2"))
    wait_for("it finds no place", lambda: condition(plane, "large"))
    plane.admin.delete(plane.admin.get("Pod", "foreign"), grace=0)
    assert bound(plane, "large") == "n"


def changed_reasons_are_updated_later(plane):
    """Not every new reason is written, but the last one is, even if nothing happens after it."""
    plane.admin.create(objects.node("a", cpu="1"))
    plane.admin.create(pod("waits", cpu="8"))
    wait_for("it says why not", lambda: condition(plane, "waits"))
    plane.admin.create(objects.node("b", cpu="1"))
    wait_for("it counts both nodes", lambda: condition(plane, "waits")["message"].startswith("0/2 nodes are available"))


def lower_priorities_are_preempted(plane):
    plane.admin.create(objects.node("n", cpu="4"))
    plane.priority_class("urgent", 1000)
    plane.admin.create_all([pod("low-1", cpu="2", terminationGracePeriodSeconds=30), pod("low-2", cpu="2")])
    bound(plane, "low-1"), bound(plane, "low-2")
    kubelet = plane.stand_ins("kubelet")
    plane.admin.create(pod("urgent", cpu="2", priorityClassName="urgent"))
    assert bound(plane, "urgent") == "n"
    left = {thing["metadata"]["name"] for thing in plane.admin.list("Pod")}
    assert len(left) == 2 and "urgent" in left, left
    gone = ({"low-1", "low-2"} - left).pop()
    notes = wait_for("it was told", lambda: [one["message"] for one in plane.admin.list("Event")
                                             if one["reason"] == "Preempted" and one["involvedObject"]["name"] == gone])
    assert notes == ["Preempted by pod default/urgent on node n"], notes
    plane.leave(kubelet)


def scheduling_gates_are_respected(plane):
    plane.admin.create(objects.node("n"))
    made = plane.admin.create(pod("gated", cpu="1", schedulingGates=[{"name": "tests/later"}]))
    plane.admin.create(pod("free", cpu="1"))
    bound(plane, "free")
    assert node_of(plane, "gated") is None
    plane.admin.patch(made, {"spec": {"schedulingGates": None}})
    assert bound(plane, "gated") == "n"


def claim(name, storage_class):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"storageClassName": storage_class, "accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": "1Gi"}}}}


def storage_class(name, provisioner):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def mounts(name):
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def volumes_wait_for_their_pod(plane):
    stand_in = plane.stand_ins("volumes")
    plane.admin.create_all([objects.node("near"), objects.node("far")])
    plane.admin.create_all([storage_class("local", "kubernetes.io/no-provisioner"), storage_class("made", "csi.tests")])
    disk = plane.admin.create({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"}, "spec": {
        "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
        "local": {"path": "/mnt"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["far"]}]}]}}}})
    plane.admin.patch(disk, {"status": {"phase": "Available"}}, "/status")
    plane.admin.create_all([claim("kept", "local"), claim("fresh", "made"), claim("none", "local")])
    plane.admin.create_all([pod("on-disk", volumes=mounts("kept")), pod("on-fresh", volumes=mounts("fresh"))])
    assert bound(plane, "on-disk") == "far"
    assert plane.admin.get("PersistentVolumeClaim", "kept")["spec"]["volumeName"] == "disk"
    where = bound(plane, "on-fresh")
    fresh = plane.admin.get("PersistentVolumeClaim", "fresh")
    assert fresh["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == where, fresh
    plane.admin.create(pod("on-none", volumes=mounts("none")))
    wait_for("it finds no volume", lambda: condition(plane, "on-none"))
    plane.leave(stand_in)


def slow_answers_begin(plane):
    """Starts an instance behind a proxy for each delay, with a name and a lease of its own. They need seconds to know
    the cluster, so other cases run meanwhile."""
    plane.slow = []
    for delay in DELAYS_S:
        proxy, name = DelayProxy(plane.port, delay), f"slow-{delay}"
        plane.slow.append((name, delay, proxy,
                           start(plane, name, ADMIN, "--scheduler-name", name, "--lease", f"berth-system/{name}",
                                 port=proxy.port)))


def slow_answers_bind(plane):
    """With answers that take 0.6, 1.2 and 4 s, each instance leads without a gap, and binds successive pods."""
    plane.admin.create(objects.node("n", cpu="64"))
    for turn in range(SLOW_ROUNDS):
        names = [f"{name}-{turn}" for name, *_ in plane.slow]
        plane.admin.create_all([objects.pod(f"{name}-{turn}", cpu="1", scheduler=name) for name, *_ in plane.slow])
        for name in names:
            assert bound(plane, name) == "n"
    for name, delay, proxy, program in plane.slow:
        lease = plane.admin.get("Lease", name, "berth-system")["spec"]
        assert lease["leaseDurationSeconds"] == 15 and lease["leaseTransitions"] == 0, lease
        troubles = [line for line in program.tail(100000) if "lease.ended" in line or "lease.trouble" in line]
        assert not troubles, (delay, troubles)
        plane.leave(program)
        proxy.end()


def another_takes_over(plane):
    plane.admin.create(objects.node("n", cpu="64"))
    plane.leave(plane.scheduler)
    plane.scheduler = start(plane, "first", BERTH, *SHORT_LEASE)
    wait_for("the first leads", lambda: said(plane.scheduler, "lease.began"))
    second = start(plane, "second", BERTH, *SHORT_LEASE)
    wait_for("the second knows the cluster", lambda: said(second, "start"))
    plane.leave(plane.scheduler, signal.SIGKILL)
    plane.admin.create(pod("after-a-kill", cpu="1"))
    assert bound(plane, "after-a-kill") == "n"
    assert said(second, "lease.began")
    third = start(plane, "third")
    plane.leave(second)  # an orderly stop releases the lease
    plane.admin.create(pod("after-a-stop", cpu="1"))
    assert bound(plane, "after-a-stop") == "n"
    assert said(third, "lease.began")
    plane.scheduler = third


def the_api_server_comes_back(plane):
    plane.admin.create(objects.node("n", cpu="64"))
    plane.admin.create(pod("before", cpu="1"))
    bound(plane, "before")
    plane.kill_api()
    plane.start_api()
    plane.admin.create(pod("after", cpu="1"))
    assert bound(plane, "after") == "n"


def http_getter(program):
    def ask(path):
        return subprocess.run(["curl", "-s", "-o", "-", "-w", "\n%{http_code}",
                               f"http://127.0.0.1:{program.port}{path}"],
                              capture_output=True, text=True, check=False).stdout
    return ask


def it_runs_without_a_disk(plane):
    """Decisions are not recorded then, and /readyz tells it."""
    program = start(plane, "no-disk", BERTH, "--no-lease", "--scheduler-name", "lonely", "--journal",
                    "/dev/null/journal")
    ask = http_getter(program)
    plane.admin.create_all([objects.node("n"), objects.pod("p", cpu="1", scheduler="lonely")])
    assert bound(plane, "p") == "n"
    assert "the journal is not being written: " in ask("/readyz") and ask("/readyz").endswith("200"), ask("/readyz")
    assert "berth_kube_journal_on 0\n" in ask("/metrics") and "berth_kube_journal_gaps_total 1\n" in ask("/metrics")
    assert said(program, "journal.failed")
    plane.leave(program)


def each_name_has_its_profile(plane):
    """With two names in one process, one plan places the pods of both, each by its own profile; pods with a third name
    are ignored."""
    program = start(plane, "two-names", BERTH, "--no-lease", "--scheduler-name", "spreads,packs=pack")
    plane.admin.create_all([objects.node("busy", cpu="16"), objects.node("idle", cpu="16")])
    plane.admin.create(objects.pod("old", cpu="8", on="busy", scheduler="somebody"))
    plane.admin.create(objects.pod("foreign", cpu="1", scheduler="somebody"))
    plane.caught_up(program=program)
    for i in range(3):
        plane.admin.create_all([objects.pod(f"{name}-{i}", cpu="1", memory="1Mi", scheduler=name)
                                for name in ("spreads", "packs")])
    plane.admin.create_all([objects.pod(f"{name}-never", cpu="17", scheduler=name) for name in ("spreads", "packs")])
    places = {f"{name}-{i}": bound(plane, f"{name}-{i}") for name in ("spreads", "packs") for i in range(3)}
    assert places == {**{f"spreads-{i}": "idle" for i in range(3)}, **{f"packs-{i}": "busy" for i in range(3)}}, places

    def reporters():
        found = {one["involvedObject"]["name"]: one["reportingComponent"] for one in plane.admin.list("Event")
                 if one["reason"] in ("Scheduled", "FailedScheduling")
                 and one["involvedObject"]["name"].startswith(("spreads-", "packs-"))}
        return found if {*places, "spreads-never", "packs-never"} <= {*found} else None
    found = wait_for("events are written", reporters)
    assert all(found[name] == name.split("-")[0] for name in found), found
    assert node_of(plane, "foreign") is None and condition(plane, "foreign") is None
    told = http_getter(program)("/metrics")
    for name, profile in (("spreads", "default"), ("packs", "pack")):
        assert f'berth_kube_pods_bound_total{{scheduler="{name}",profile="{profile}"}} 3\n' in told, told
    plane.leave(program)


def health_and_metrics_are_served(plane):
    program = start(plane, "asked", BERTH)
    ask = http_getter(program)
    wait_for("it is ready", lambda: ask("/readyz").endswith("200"))
    told = ask("/metrics")
    assert "berth_kube_objects{what=\"pods\"}" in told, told
    # another instance leads, unless it was paused
    assert "berth_kube_journal_on 0" in told or said(program, "lease.began"), told
    plane.leave(program)
    # Without rights it never becomes ready, and reports what is forbidden.
    program = start(plane, "nobody", NOBODY)
    ask = http_getter(program)
    wait_for("it says what it may not do", lambda: said(program, "forbidden"))
    assert ask("/healthz").endswith("200") and ask("/readyz").endswith("503")
    plane.leave(program)


def main():
    run_cases([placed_as_installed, slow_answers_begin, pods_of_other_schedulers_count,
               changed_reasons_are_updated_later, lower_priorities_are_preempted, scheduling_gates_are_respected,
               volumes_wait_for_their_pod, slow_answers_bind, another_takes_over, the_api_server_comes_back,
               health_and_metrics_are_served,
               it_runs_without_a_disk, each_name_has_its_profile, journals.every_plan_is_made_again], clear)


if __name__ == "__main__":
    main()
