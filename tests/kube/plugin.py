"""plugin.py - `kubectl berth` through kubectl itself: placed and waiting pods, advice that helps, unknown names,
missing rights, lists. Run by tests/kube/kube_plugin_test.sh."""
import json
import os
import pathlib
import subprocess

from client import KINDS, wait_for
from control_plane import ADMIN, BERTH, NOBODY, PATIENCE, run_cases
import objects

PROGRAMS = pathlib.Path(os.environ["BERTH_BUILD"]) / "src/kube"
MANIFESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/kubernetes"
NAME = "berth"
KINDS["Job"] = ("apis/berth.dev/v1", "jobs", True)


def kubectl_berth(plane, *words, token=ADMIN):
    """Runs the plugin, which kubectl finds in the PATH."""
    env = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "KUBECONFIG": str(plane.kubeconfig(token))}
    return subprocess.run([plane.bin / "kubectl", "berth", *words], env=env, capture_output=True, text=True,
                          timeout=PATIENCE, check=False)


def told(plane, *words, token=ADMIN):
    done = kubectl_berth(plane, *words, token=token)
    assert done.returncode == 0, done
    return done.stdout


def refused(plane, *words, token=ADMIN, code=1):
    done = kubectl_berth(plane, *words, token=token)
    assert done.returncode == code, done
    return done


def has(text, *parts):
    for part in parts:
        assert part in text, f"'{part}' is not in:\n{text}"


def pod(name, **options):
    return objects.pod(name, scheduler=NAME, **options)


def bound(plane, *names):
    for name in names:
        wait_for(f"{name} is bound", lambda which=name: plane.admin.get("Pod", which)["spec"].get("nodeName"))


def waits(plane, name, begins=""):
    """Waits until the scheduler has set a reason that begins so."""
    def look():
        return [one for one in plane.admin.get("Pod", name).get("status", {}).get("conditions", [])
                if one["type"] == "PodScheduled" and one["status"] == "False" and one["message"].startswith(begins)]
    return wait_for(f"{name} waits", look)[0]["message"]


def clear(plane):
    kinds = ["Pod", "Node"] + (["Job"] if plane.admin.ask("GET", "/apis/berth.dev/v1")[0] == 200 else [])
    for kind in kinds:
        for thing in plane.admin.list(kind):
            plane.admin.delete({**thing, "kind": kind}, grace=0)
    wait_for("nothing is left", lambda: not any(plane.admin.list(kind) for kind in kinds))
    plane.caught_up()


def a_placed_pod(plane):
    for name in ("namespace", "rbac"):
        plane.kubectl("apply", "-f", MANIFESTS / f"{name}.yaml")
    plane.admin.create_all([objects.node("small", cpu="2"), objects.node("large", cpu="8")])
    plane.admin.create(pod("web", cpu="1"))
    plane.scheduler = plane.berth_kube("berth-kube",
                                       [PROGRAMS / "berth-kube", "--kubeconfig", plane.kubeconfig(BERTH), "--lease",
                                        "berth-system/berth-kube"])
    bound(plane, "web")
    text = told(plane, "why", "web")
    has(text, "pod default/web is on large", "Why this node", "large would be the best feasible node", "large (here)",
        "least_allocated", "small")
    has(told(plane, "why", "pod/web", "-n", "default"), "large (here)")


def a_pod_that_waits(plane):
    """The given advice helps."""
    plane.admin.create_all([objects.node("a", cpu="4"),
                            objects.node("b", cpu="4", taints=[{"key": "kept", "effect": "NoSchedule"}])])
    plane.admin.create(pod("holder", cpu="3"))
    bound(plane, "holder")
    plane.admin.create(pod("big", cpu="2"))
    waits(plane, "big")
    text = told(plane, "why", "big")
    has(text, "pod default/big is pending", "It requests 2 cpu.", "Position 1 of 1 pending workloads.",
        "1 of 2 nodes has too little cpu left: 2 needed, at most 1 free", "a has 1 of cpu free, 2 needed",
        "untolerated taint: kept",
        "cpu of a: 3 of 4 allocated, to default/holder (3, priority 0)",
        "With a priority above 0, it would get room on a by preempting default/holder",
        "with 1 cpu instead of 2: on a", "with a toleration for all taints: on b")
    plane.admin.create_all([pod("cut", cpu="1"), pod("tolerant", cpu="2", tolerations=[{"operator": "Exists"}])])
    bound(plane, "cut", "tolerant")
    assert (plane.admin.get("Pod", "cut")["spec"]["nodeName"] == "a" and
            plane.admin.get("Pod", "tolerant")["spec"]["nodeName"] == "b")
    plane.priority_class("urgent", 1000)
    plane.admin.create(pod("urgent", cpu="3", priorityClassName="urgent"))
    bound(plane, "urgent")
    wait_for("it made room as foretold",
             lambda: "holder" not in [one["metadata"]["name"] for one in plane.admin.list("Pod")])


def pods_of_others_and_ended_pods(plane):
    plane.admin.create(objects.node("n", cpu="4"))
    plane.admin.create_all([objects.pod("theirs", cpu="1"), objects.pod("placed", cpu="1", on="n"),
                            pod("gated", cpu="1", schedulingGates=[{"name": "example.com/later"}]),
                            pod("over", cpu="1")])
    bound(plane, "over")
    plane.admin.patch({**plane.admin.get("Pod", "over"), "kind": "Pod"}, {"status": {"phase": "Succeeded"}}, "/status")
    has(told(plane, "why", "theirs"),
        "Its schedulerName is default-scheduler, which is not a Berth scheduler; Berth does not place it.")
    has(told(plane, "why", "placed"), "is on n",
        "which is not a Berth scheduler; Berth cannot explain its placement.")
    has(told(plane, "why", "gated"), "scheduling gates (example.com/later)")
    has(told(plane, "why", "over"), "has ended: Succeeded")


def unknown_names(plane):
    plane.admin.create_all([objects.node("n", cpu="4"), pod("trainer", cpu="1")])
    has(refused(plane, "why", "trainr").stderr, "no pod or job 'trainr' in namespace default; did you mean 'trainer'?")
    has(refused(plane, "why", "pod/xyz", "-n", "kube-system").stderr,
        "no pod 'xyz' in namespace kube-system; use -n to choose another namespace")
    has(refused(plane, "why", "node/n").stderr, "NAME, pod/NAME or job/NAME")
    has(refused(plane, "why", code=2).stderr, "needs the name of a pod")
    has(refused(plane, "wy", "x", code=2).stderr, "the commands are why, queue and nodes")
    has(refused(plane, "queue", "--profile", "none").stderr, "unknown profile 'none'")
    has(told(plane, "--help"), "kubectl berth why train-0 -n vision", "berth-viewer")


def rights(plane):
    """With too few rights the plugin shows what the pod says; with the role berth-viewer everything."""
    plane.admin.create(objects.node("n", cpu="1"))
    plane.admin.create(pod("big", cpu="2"))
    message = waits(plane, "big", "0/1 nodes")
    wait_for("an event says so, too", lambda: message in {one["message"] for one in plane.admin.list("Event")})
    done = refused(plane, "why", "big", token=NOBODY)
    has(done.stderr, "your user may not get pods in namespace default",
        "ask an administrator for the role berth-viewer")
    plane.kubectl("create", "role", "pods", "--verb=get,list", "--resource=pods,events", "-n", "default")
    plane.kubectl("create", "rolebinding", "pods", "--role=pods", "--user=nobody", "-n", "default")
    wait_for("it may read the pod",
             lambda: "is pending" in kubectl_berth(plane, "why", "big", token=NOBODY).stdout)
    done = refused(plane, "why", "big", token=NOBODY)
    has(done.stderr, "your user may not list ", "nodes", "pods", "role berth-viewer")
    has(done.stdout, f"PodScheduled condition: {message}", f"Last scheduling event: {message}")
    has(refused(plane, "nodes", token=NOBODY).stderr, "your user may not list ")
    plane.kubectl("create", "clusterrolebinding", "viewer", "--clusterrole=berth-viewer", "--user=nobody")
    wait_for("it may read all", lambda: kubectl_berth(plane, "why", "big", token=NOBODY).returncode == 0)
    has(told(plane, "why", "big", token=NOBODY), "no node has 2 CPUs; the largest has 1",
        "with 1 cpu instead of 2: on n")
    has(told(plane, "queue", token=NOBODY), "big")


def lists(plane):
    plane.priority_class("high", 500)
    plane.admin.create_all([objects.node("n", cpu="2", memory="4Gi", extra={"nvidia.com/gpu": "4"}),
                            objects.node("m", cpu="1", unschedulable=True)])
    plane.admin.create(pod("here", cpu="500m", memory="1Gi",
                           containers=[objects.container(cpu="500m", memory="1Gi", limits={"nvidia.com/gpu": "1"})]))
    bound(plane, "here")
    assert "No pending workloads." in told(plane, "queue")
    plane.admin.create(pod("first", cpu="8"))
    plane.admin.create(pod("second", cpu="8"))
    plane.admin.create(pod("urgent", cpu="8", priorityClassName="high"))
    for name in ("first", "second", "urgent"):
        waits(plane, name)
    items = json.loads(told(plane, "queue", "-o", "json"))["items"]
    assert [(one["position"], one["name"], one["priority"]) for one in items][0] == (1, "urgent", 500), items
    assert {one["name"] for one in items} == {"first", "second",
                                              "urgent"} and all("no node has 8 CPUs; the largest has 2" in one["reason"]
                                                                for one in items), items
    assert "urgent" in told(plane, "queue").splitlines()[1]
    assert "No pending workloads." in told(plane, "queue", "-n", "kube-system")
    nodes = {one["name"]: one for one in json.loads(told(plane, "nodes", "-o", "json"))["items"]}
    assert nodes["n"]["cpu"] == {"allocatable": "2", "requested": "500m", "free": "1.5"}, nodes
    assert (nodes["n"]["memory"]["free"] == "3Gi" and
            nodes["n"]["gpu"] == {"allocatable": "4", "requested": "1", "free": "3"}), nodes
    assert nodes["m"]["unschedulable"] is True
    has(told(plane, "nodes"), "m (cordoned)", "GPUS")


def a_job(plane):
    """Its roles are planned like by berth-kube; a user who may not create its pods sees the job's own status."""
    has(refused(plane, "why", "job/train").stderr, "no job 'train' in namespace default")
    plane.install_kinds(MANIFESTS)
    plane.admin.create(objects.node("n", cpu="4"))
    template = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [objects.container(cpu="1")]}}
    plane.admin.create({"apiVersion": "berth.dev/v1", "kind": "Job",
                        "metadata": {"name": "train", "namespace": "default"},
                        "spec": {"roles": [{"name": "worker", "tasks": 6, "template": template}]}})
    wait_for("it says that it waits", lambda: plane.admin.get("Job", "train").get("status", {}).get("reason"))
    text = told(plane, "why", "train")
    has(text, "job default/train is Pending", "Tasks: 6 pending, 0 running", "Reason: ", "role worker",
        "Each of its tasks requests 1 cpu.",
        "the gang needs 6 pods placed at once; only 4 fit", "with 650m cpu instead of 1: on n")
    has(told(plane, "queue"), "train:worker (6 tasks)")
    item = json.loads(told(plane, "queue", "-o", "json"))["items"][0]
    assert (item["name"], item["tasks"], item["position"]) == ("train:worker", 6, 1), item
    text = told(plane, "why", "job/train", token=NOBODY)
    has(text, "Reason: ", "rejects a dry run of its pods from your user")
    has(kubectl_berth(plane, "queue", token=NOBODY).stderr, "1 job is left out")
    assert not plane.admin.list("Pod"), "a trial was stored"
    plane.admin.delete({"kind": "Job", **plane.admin.get("Job", "train")}, grace=0)
    plane.admin.create({"apiVersion": "berth.dev/v1", "kind": "Job",
                        "metadata": {"name": "small", "namespace": "default"},
                        "spec": {"roles": [{"tasks": 2, "template": template}]}})
    wait_for("its pods are made", lambda: len(plane.admin.list("Pod")) == 2)
    has(told(plane, "why", "small"), "Pods (", "small-task-0  n", "small-task-1  n")
    has(told(plane, "why", "small-task-1"), "pod default/small-task-1 is on n", "n would be the only feasible node")
    has(told(plane, "queue"), "No pending workloads.")
    nodes = json.loads(told(plane, "nodes", "-o", "json"))["items"]  # no trial pods are made; pods of jobs count
    assert nodes[0]["cpu"] == {"allocatable": "4", "requested": "2", "free": "2"}, nodes


def a_credential_plugin(plane):
    """The credential plugin runs like by kubectl; if it is missing, its install hint is shown."""
    config, path = json.loads(plane.kubeconfig().read_text()), plane.work / "exec.kubeconfig"
    program = plane.work / "credentials"
    program.write_text("#!/bin/sh\nprintf '{\"kind\": \"ExecCredential\", \"apiVersion\": \"%s\", "
                       "\"status\": {\"token\": \"%s\"}}' \"$1\" \"$TOKEN\"\n")
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{PROGRAMS}:{os.environ['PATH']}", "KUBECONFIG": str(path)}

    def run(command, version, *words):
        version = f"client.authentication.k8s.io/{version}"
        config["users"][0]["user"] = {"exec": {
            "apiVersion": version, "command": command, "args": [version], "env": [{"name": "TOKEN", "value": ADMIN}],
            "interactiveMode": "IfAvailable", "installHint": "Ask the people of the cluster for it."}}
        path.write_text(json.dumps(config))
        return subprocess.run([plane.bin / "kubectl", *words], env=env, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
    plane.admin.create(objects.node("one", cpu="2"))
    for version in ("v1", "v1beta1"):
        for words in (("get", "nodes"), ("berth", "nodes")):
            done = run("./credentials", version, *words)
            assert done.returncode == 0 and "one" in done.stdout, (version, words, done)
    done = run("./nowhere", "v1", "berth", "nodes")
    assert done.returncode == 1, done
    has(done.stderr, "nowhere", "cannot run it", "Ask the people of the cluster for it.")


def main():
    run_cases([a_placed_pod, a_pod_that_waits, pods_of_others_and_ended_pods, unknown_names, rights, lists, a_job,
               a_credential_plugin], clear)


if __name__ == "__main__":
    main()
