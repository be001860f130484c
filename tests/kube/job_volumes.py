"""job_volumes.py - jobs whose claims wait for their first pod: cases of jobs.py, which has the helper functions."""
import time

import objects
from client import wait_for
from corpus_volumes import claim, storage_class, volume

SELECTED = "volume.kubernetes.io/selected-node"


def mounts(name):
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]}


def own(cls, *names):
    """Returns pod volumes with a claim for each pod, or several."""
    return {"volumes": [{"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": claim("x", cls)["spec"]}}}
                        for name in names or ("own",)]}


def bound_to(plane, name):
    """Returns the volume of a claim, once it has one."""
    found = wait_for(f"claim {name} has a volume", lambda: [
        one for one in plane.admin.list("PersistentVolumeClaim") if one["metadata"]["name"] == name
        and one["spec"].get("volumeName")])
    return found[0]["spec"]["volumeName"]


def clear(plane):
    for kind in ("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIDriver"):
        for thing in plane.admin.list(kind):
            plane.admin.delete({**thing, "kind": kind}, grace=0)
    wait_for("no volumes are left",
             lambda: not plane.admin.list("PersistentVolumeClaim") and not plane.admin.list("PersistentVolume"))
    plane.caught_up("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIDriver")


def cases(j):
    """Returns the cases; `j` is the module of jobs."""

    def a_volume_is_bound_before_the_pods_are_made(plane):
        plane.stand_ins("volumes", "claims")
        plane.admin.create_all([objects.node("a", cpu="8"), objects.node("b", cpu="8"),
                                storage_class("static", "kubernetes.io/no-provisioner"),
                                claim("c0"), volume("v0", nodes=["b"])])
        plane.admin.create(j.job("static", j.role("x", 3, template=mounts("c0"))))
        found = j.has(plane, "static", "static-x-0", "static-x-1", "static-x-2")
        assert {pod["spec"]["nodeName"] for pod in found.values()} == {"b"}, found
        assert bound_to(plane, "c0") == "v0"
        clear(plane)

    def a_volume_is_made_for_a_gang(plane):
        """The volume is made for the node of one task; as it is reachable from there only, all tasks go there."""
        plane.admin.create_all([objects.node("a", cpu="4"), objects.node("b", cpu="4"),
                                storage_class("made", "csi.tests"), claim("c0", "made", mode="ReadWriteMany")])
        plane.caught_up()  # with only one node known, all tasks would go there at once
        plane.admin.create(j.job("made", j.role("m", template=mounts("c0")), j.role("x", 2, template=mounts("c0"))))
        found = j.has(plane, "made", "made-m-0", "made-x-0", "made-x-1")
        nodes = {pod["spec"]["nodeName"] for pod in found.values()}
        made, = plane.admin.list("PersistentVolume")
        term, = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert (nodes == set(term["matchExpressions"][0]["values"]) and
                bound_to(plane, "c0") == made["metadata"]["name"]), (nodes, made)
        wait_for("it says that it was placed again", lambda: any(
            "cannot be accessed from node" in text for _, text in j.events(plane, "made")))
        assert j.status(plane, "made")["restarts"] == 0
        j.finish(plane, "made")
        j.until(plane, "made", "Complete")
        clear(plane)

    def one_node_for_what_is_attached(plane):
        """With a claim for one node, of a driver that attaches its volumes, all tasks go to one node at once."""
        plane.admin.create_all([objects.node("a", cpu="2"), objects.node("b", cpu="4"), objects.node("c", cpu="2"),
                                storage_class("made", "csi.tests"),
                                {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
                                 "metadata": {"name": "csi.tests"}, "spec": {}},
                                claim("c0", "made")])
        plane.caught_up()  # above all the driver must be known
        plane.admin.create(j.job("once", j.role("x", 3, template=mounts("c0"))))
        found = j.has(plane, "once", "once-x-0", "once-x-1", "once-x-2")
        assert {pod["spec"]["nodeName"] for pod in found.values()} == {"b"}, found
        assert not [text for _, text in j.events(plane, "once") if "cannot be accessed" in text]
        clear(plane)

    def each_pod_has_a_claim(plane):
        plane.admin.create_all([objects.node("a", cpu="1"), objects.node("b", cpu="1"),
                                storage_class("made", "csi.tests"), storage_class("now", "csi.tests", "Immediate")])
        plane.admin.create(j.job("early", j.role("x", 2, template=own("now"))))
        wait_for("it says which classes can be used",
                 lambda: "WaitForFirstConsumer" in j.status(plane, "early").get("reason", ""))
        plane.admin.create(j.job("own", j.role("x", 2, template=own("made", "own", "more"))))
        found = j.has(plane, "own", "own-x-0", "own-x-1")
        for name, pod in found.items():
            for of in ("own", "more"):  # one claim exists before the other
                made = bound_to(plane, f"{name}-{of}")
                volumes = {one["metadata"]["name"]: one for one in plane.admin.list("PersistentVolume")}
                term, = volumes[made]["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
                assert term["matchExpressions"][0]["values"] == [pod["spec"]["nodeName"]], (pod, volumes[made])
        uids = {name: pod["metadata"]["uid"] for name, pod in found.items()}
        assert uids == {name: pod["metadata"]["uid"]
                        for name, pod in j.pods(plane, "own").items()}, "pods were made again"
        clear(plane)

    def there_is_no_storage_on_its_node(plane):
        """The provisioner removes the selected node from the claim: the pod is deleted, and its task is placed
        again."""
        plane.admin.create_all([objects.node("a", cpu="1"), storage_class("hand", "by-hand.tests")])
        plane.admin.create(j.job("hand", j.role("x", template=own("hand"))))
        first = j.has(plane, "hand", "hand-x-0")["hand-x-0"]["metadata"]["uid"]

        def selected():
            return [one for one in plane.admin.list("PersistentVolumeClaim")
                    if one["metadata"].get("annotations", {}).get(SELECTED) == "a"]
        told, = wait_for("the node is told", selected)

        pause = [0.1]

        def given_up():
            """Removes the selected node whenever the claim has one, each time after a longer pause: berth-kube sets it
            again if it was removed before berth-kube has seen it."""
            for one in selected():
                time.sleep(pause[0])
                pause[0] = min(2 * pause[0], 5)
                plane.admin.patch({**one, "kind": "PersistentVolumeClaim"},
                                  {"metadata": {"annotations": {SELECTED: None}}})
            return first not in {pod["metadata"]["uid"] for pod in j.pods(plane, "hand").values()}
        wait_for("the pod is gone", given_up)
        plane.admin.delete({**told, "kind": "PersistentVolumeClaim"}, grace=0)  # like the garbage collector
        wait_for("another is made", lambda: j.live(plane, "hand") == ["hand-x-0"])
        assert j.status(plane, "hand")["restarts"] == 0
        wait_for(
    "it says why",
    lambda: any(
        "cannot be provisioned on its node" in text for _,
        text in j.events(
            plane,
             "hand")))
        # otherwise it would be created after the clean-up
        wait_for("the other has its claim", lambda: plane.admin.list("PersistentVolumeClaim"))
        clear(plane)

    return [a_volume_is_bound_before_the_pods_are_made, a_volume_is_made_for_a_gang, one_node_for_what_is_attached,
            each_pod_has_a_claim, there_is_no_storage_on_its_node]
