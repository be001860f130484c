"""judge.py - berth-kube's admission webhook with a real API server: refusals have a reason; without the webhook
everything, or nothing of berth.dev, is accepted, as its configuration says; pods are always accepted. Also the reporter
of GPUs. Run by tests/kube/kube_judge_test.sh."""
import json
import os
import pathlib
import subprocess

from client import KINDS, PATIENCE, Refused, wait_for
from control_plane import BERTH, NOBODY, free_ports, run_cases
import objects

PROGRAM = pathlib.Path(os.environ["BERTH_BUILD"]) / "src/kube/berth-kube"
MANIFESTS = pathlib.Path(__file__).resolve().parent.parent.parent / "packaging/kubernetes"
PLURALS = {"Queue": "queues", "Group": "groups", "User": "users", "Policy": "policies"}
KINDS.update({kind: ("apis/berth.dev/v1", plural, False) for kind, plural in PLURALS.items()})
KINDS["Job"] = ("apis/berth.dev/v1", "jobs", True)
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


def start(plane, *words):
    plane.scheduler = plane.run("berth-kube", [
        PROGRAM, "--kubeconfig", plane.kubeconfig(BERTH), "--lease", "berth-system/berth-kube", "--webhook",
        f"127.0.0.1:{plane.webhook_port}", "--webhook-cert", plane.work / "webhook-cert.pem", "--webhook-key",
        plane.work / "webhook-key.pem", *words])
    plane.until_listening(plane.webhook_port, plane.scheduler)


def rendered(plane, *components):
    """Returns all objects of the manifests with these components, by kind and name."""
    folder = plane.work / "overlay"
    folder.mkdir(exist_ok=True)
    where = pathlib.Path(os.path.relpath(MANIFESTS, folder.resolve()))
    (folder / "kustomization.yaml").write_text(json.dumps({
        "resources": [str(where)], "components": [str(where / "components" / one) for one in components]}))
    (folder / "all.yaml").write_text(plane.kubectl("kustomize", folder))
    made = json.loads("[" + plane.kubectl("create", "--dry-run=client", "-o", "json", "-f", folder / "all.yaml")
                      .replace("}\n{", "},\n{") + "]")
    return {(one["kind"], one["metadata"]["name"]): one for some in made for one in some.get("items", [some])}


def register(plane, *components):
    """Registers the webhook of the manifests with its address here instead of a Service."""
    hook = rendered(plane, *components)["ValidatingWebhookConfiguration", "berth-kube"]
    hook["webhooks"][0]["clientConfig"] = {"url": f"https://127.0.0.1:{plane.webhook_port}/judge",
                                           "caBundle": plane.bundle}
    # a machine that is busy for some seconds must not count as a missing answer
    hook["webhooks"][0]["timeoutSeconds"] = 30
    plane.admin.ask("DELETE", f"{WEBHOOKS}/{hook['metadata']['name']}")
    plane.admin.must("POST", WEBHOOKS, hook)
    return hook["webhooks"][0]["failurePolicy"]


def thing(kind, name, **spec):
    return {"apiVersion": "berth.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def job(name, cpu="1", **spec):
    template = {"spec": {"containers": [objects.container(cpu=cpu)]}}
    return {"apiVersion": "berth.dev/v1", "kind": "Job", "metadata": {"name": name, "namespace": "default"},
            "spec": {"suspend": True, "roles": [{"template": template}], **spec}}


def refused(client, what):
    """Returns why the API server refuses the object; "" if it accepts it. Nothing is stored."""
    version, plural, inside = KINDS[what["kind"]]
    path = f"/{version}/" + (f"namespaces/default/{plural}" if inside else plural) + "?dryRun=All"
    status, answer = client.ask("POST", path, what)
    return answer["message"] if status >= 400 else ""


def prepare(plane):
    for name in ("namespace", "rbac"):
        plane.kubectl("apply", "-f", MANIFESTS / f"{name}.yaml")
    plane.install_kinds(MANIFESTS)
    plane.webhook_port = free_ports(1)[0]
    plane.bundle = subprocess.run([PROGRAM, "webhook-cert", "--dir", plane.work, "--service",
                                   "berth-kube.berth-system"], check=True,
                                  capture_output=True, text=True).stdout.strip()
    plane.admin.create_all([
        thing("Queue", "small", quota={"limits": {"cpu": 4}}), thing("User", "ann", names=["ann@example"]),
        thing("User", "nob", names=["nobody"]),
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
         "metadata": {"name": "nobody-edits"},
         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "berth-edit"},
         "subjects": [{"kind": "User", "name": "nobody"}]}])
    start(plane)


def refusals_have_reasons(plane):
    prepare(plane)
    assert register(plane) == "Ignore"
    wait_for("the webhook is asked",
             lambda: "could never run" in refused(plane.admin, job("large", cpu="5", queue="small")))
    (plane.work / "large.json").write_text(json.dumps(job("large", cpu="5", queue="small")))
    done = plane.kubectl("create", "-f", plane.work / "large.json", check=False)
    assert done.returncode != 0, done.stdout
    assert ('admission webhook "judge.berth.dev" denied the request: quota queue/small: at most 4 cpu at once; this job requests '
            "5 cpu and could never run; 4 cpu would be accepted") in done.stderr, done.stderr
    for what, part in (
            (job("a", queue="none"), "queue none does not exist"), (job(
                "a", user="ann"), "admin may not create jobs as user ann"),
            (thing("Policy", "p", formula="return age +"), "line 1"), (thing("Queue",
             "q", timeLimit="2h", maxTime="1h"), "is longer than maxTime"),
            (job("a", queue="small"), "")):
        # An accepted object may be unchecked: the API server did not answer in time whether the queue exists.
        why = wait_for(f"'{part}' is said",
                       lambda which=what: refused(plane.admin, which)) if part else refused(plane.admin, what)
        assert part in why and bool(part) == bool(why), (what, why)
    nobody = plane.client(NOBODY)
    assert "nobody may not create jobs as user ann" in refused(nobody, job("a", user="ann"))
    assert refused(nobody, job("a", user="nob")) == ""
    nobody.close()
    (plane.work / "odd.json").write_text(json.dumps(job("odd", deadline="2020-01-01T00:00:00Z")))
    done = plane.kubectl("create", "-f", plane.work / "odd.json", check=False)
    assert done.returncode == 0 and "Warning: spec.deadline: the deadline has passed" in done.stderr, done.stderr


def applied_together(plane):
    """A queue and a job in it are made one right after the other: the job is not refused for a queue that berth-kube
    has not seen yet."""
    for i in range(5):
        plane.admin.create(thing("Queue", f"new{i}"))
        plane.admin.create(job(f"in-new{i}", queue=f"new{i}"))
    plane.admin.patch(job("in-new0"), {"metadata": {"labels": {"a": "b"}}})
    for number in range(10):  # an accepted change may be unchecked, as above
        try:
            plane.admin.patch(job("in-new0"), {"spec": {"queue": f"none-{number}"}})
        except Refused as why:
            assert f"queue none-{number} does not exist" in str(why), why
            return
    raise AssertionError("a job was moved to a queue that is not there")


def several_at_once(plane):
    """Concurrent jobs never exceed the admitted amount. Defaults of the namespace and the runtime class count."""
    plane.admin.create(thing("Queue", "bounded", quota={"admitted": {"cpu": 4}}))
    wait_for("the queue is known",
             lambda: "0 cpu of 4 cpu are admitted" in refused(plane.admin, job("large", cpu="5", queue="bounded")))
    taken = []

    def make(what):
        try:
            taken.append(plane.admin.create(what))
        except Refused as why:
            assert "of 4 cpu are admitted" in str(why), why
    plane.admin.each(make, [job(f"many-{number}", cpu="1", queue="bounded") for number in range(16)])
    assert len(taken) == 4, len(taken)
    for one in taken:
        plane.admin.delete(one)
    plane.admin.create_all([
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults", "namespace": "default"},
         "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "5"}}]}},
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "heavy",
         "overhead": {"podFixed": {"cpu": "4"}}}])
    silent, heavy = job("silent", queue="bounded"), job("heavy", cpu="1", queue="bounded")
    silent["spec"]["roles"][0]["template"]["spec"]["containers"][0].pop("resources", None)
    heavy["spec"]["roles"][0]["template"]["spec"]["runtimeClassName"] = "heavy"
    for what in (silent, heavy):
        wait_for(f"{what['metadata']['name']} asks for too much",
                 lambda which=what: "this job requests 5 cpu" in refused(plane.admin, which))
    plane.admin.delete({"kind": "LimitRange", "metadata": {"name": "defaults", "namespace": "default"}})


def without_the_webhook(plane):
    """Without the webhook everything is accepted or, with the strict component, nothing of berth.dev; pods in both
    cases."""
    plane.leave(plane.scheduler)
    assert refused(plane.admin, job("large", cpu="5", queue="small")) == ""
    plane.admin.create(objects.pod("one", cpu="1"))
    assert register(plane, "strict") == "Fail"
    why = wait_for("it counts", lambda: refused(plane.admin, job("small", cpu="1")))
    assert 'failed calling webhook "judge.berth.dev"' in why, why
    plane.admin.create(objects.pod("two", cpu="1"))
    plane.admin.delete(objects.pod("one"), grace=0)
    plane.admin.patch(job("odd"), {"status": {"phase": "Suspended"}}, "/status")
    start(plane, "--webhook-unsure", "deny")  # as the component says: nothing is accepted before the cluster is known
    wait_for("it is judged again", lambda: refused(plane.admin, job("small", cpu="1")) == "")
    assert "could never run" in refused(plane.admin, job("large", cpu="5", queue="small"))


def report(plane, node, root):
    """Runs the reporter once, with only the rights of its manifests."""
    return subprocess.run([PROGRAM, "report-node", "--node", node, "--once", "--root", root, "--kubeconfig",
                           plane.kubeconfig(NOBODY)],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)


def gpu_labels(plane, node):
    labels = plane.admin.get("Node", node)["metadata"].get("labels", {})
    return {key.removeprefix("berth.dev/gpu."): value for key, value in labels.items()
            if key.startswith("berth.dev/gpu.")}


def gpus_are_reported(plane):
    """GPUs of a simulated machine become labels of its node, which pods can select; they disappear with the GPUs."""
    things = rendered(plane, "reporter")
    assert things["DaemonSet",
                  "berth-reporter"]["spec"]["template"]["spec"]["containers"][0]["image"] == "berth-kube:0.1"
    program = plane.work / "machine/usr/bin/nvidia-smi"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'NVIDIA H200, 143771'\necho 'NVIDIA H200, 143771'\n")
    program.chmod(0o755)
    gpus = {"extra": {"nvidia.com/gpu": "2"}}
    plane.admin.create_all([objects.node("h200", **gpus),
                            objects.node("a100", labels={"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB",
                                                         "nvidia.com/gpu.memory": "40536"}, **gpus)])
    done = report(plane, "h200", plane.work / "machine")
    assert done.returncode == 1 and "cannot patch" in done.stderr, done.stderr
    plane.admin.create(things["ClusterRole", "berth-reporter"])
    plane.kubectl("create", "clusterrolebinding", "reports", "--clusterrole=berth-reporter", "--user=nobody")
    wait_for("its rights are enough", lambda: report(plane, "h200", plane.work / "machine").returncode == 0)
    assert gpu_labels(plane, "h200") == {"model": "NVIDIA-H200", "memory": "143771",
                                         "count": "2"}, gpu_labels(plane, "h200")
    for name, notes, node in (("models", {"berth.dev/gpu-models": "V100,H200"}, "h200"),
                              ("large", {"berth.dev/gpu-memory": "100Gi"}, "h200"),
                              ("a100", {"berth.dev/gpu-models": "A100", "berth.dev/gpu-memory": "39Gi"}, "a100")):
        plane.admin.create(objects.pod(name, scheduler="berth",
                                       containers=[objects.container(limits={"nvidia.com/gpu": "1"})],
                                       annotations=notes))
        wait_for(f"{name} is bound", lambda which=name: plane.admin.get("Pod", which)["spec"].get("nodeName"))
        assert plane.admin.get("Pod", name)["spec"]["nodeName"] == node, name
    program.unlink()
    assert report(plane, "h200", plane.work / "machine").returncode == 0
    assert gpu_labels(plane, "h200") == {}, gpu_labels(plane, "h200")
    done = report(plane, "nobody", plane.work / "machine")
    assert done.returncode == 1 and "not found" in done.stderr, done.stderr


def with_an_older_role(plane):
    """Kinds that berth-kube may not watch count as absent: it reports each of them once, and leads and binds as
    usual."""
    plane.leave(plane.scheduler)
    later = {"limitranges", "csidrivers", "csistoragecapacities", "runtimeclasses", "volumeattachments", "podgroups"}
    role = plane.admin.get("ClusterRole", "berth-kube")
    rules = [{**rule, "resources": [one for one in rule["resources"] if one not in later]} for rule in role["rules"]]
    plane.admin.patch(role, {"rules": [rule for rule in rules if rule["resources"]]})
    berth = plane.client(BERTH)
    for path in ("/api/v1/limitranges", "/apis/storage.k8s.io/v1/csidrivers",
                 "/apis/storage.k8s.io/v1/csistoragecapacities",
                 "/apis/storage.k8s.io/v1/volumeattachments", "/apis/node.k8s.io/v1/runtimeclasses",
                 "/apis/scheduling.k8s.io/v1alpha2/podgroups"):
        wait_for(f"{path} may not be listed", lambda which=path: berth.ask("GET", which)[0] == 403)
    berth.close()
    start(plane)
    plane.admin.create(objects.pod("older", scheduler="berth", cpu="1"))
    wait_for("a pod is bound", lambda: plane.admin.get("Pod", "older")["spec"].get("nodeName"))
    told = [line for line in plane.scheduler.tail(1000) if "watch.refused" in line]
    assert len(told) == len(later), told
    for word in later:
        assert any(f"({word})" in line and "kubectl apply -f packaging/kubernetes/rbac.yaml" in line
                   for line in told), (word, told)
    plane.kubectl("apply", "-f", MANIFESTS / "rbac.yaml")


if __name__ == "__main__":
    run_cases([refusals_have_reasons, applied_together, several_at_once, without_the_webhook, gpus_are_reported,
               with_an_older_role])
