"""kube_test.py - a real Kubernetes control plane starts, the peer binds a pod, and it survives a kill: the base of the
other tests."""
from client import wait_for
from control_plane import BERTH, NOBODY, run_cases
import objects


def peer_binds_a_pod(plane):
    plane.admin.create_all([objects.node("small", cpu="1"), objects.node("large", cpu="8")])
    plane.peer("peer")
    pods = plane.admin.create_all([objects.pod("fits", cpu="4", scheduler="peer"),
                                   objects.pod("never", cpu="9", scheduler="peer")])

    def bound():
        return plane.admin.get("Pod", "fits")["spec"].get("nodeName")
    assert wait_for("the peer binds the pod", bound) == "large"

    def refused():
        conditions = plane.admin.get("Pod", "never")["status"].get("conditions", [])
        return [c["message"] for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
    message = wait_for("the peer says why not", refused)[0]
    assert message.startswith("0/2 nodes are available") and "2 Insufficient cpu" in message, message
    status, answer = plane.admin.bind(pods[0], "small")
    assert status == 409, answer


def kubelet_stands_in(plane):
    stand_in = plane.stand_ins("kubelet")
    plane.admin.create(objects.node("home"))
    made = plane.admin.create(objects.pod("lives", on="home", terminationGracePeriodSeconds=30))
    wait_for("the pod runs", lambda: plane.admin.get("Pod", "lives")["status"]["phase"] == "Running")
    plane.admin.delete(made)
    wait_for("the pod is gone", lambda: plane.admin.ask("GET", "/api/v1/namespaces/default/pods/lives")[0] == 404)
    plane.leave(stand_in)


def volumes_stand_in(plane):
    stand_in = plane.stand_ins("volumes")
    plane.admin.create({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "made"},
                        "provisioner": "csi.tests", "volumeBindingMode": "WaitForFirstConsumer"})
    plane.admin.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {
        "name": "data", "namespace": "default", "annotations": {"volume.kubernetes.io/selected-node": "home"}},
        "spec": {"storageClassName": "made", "accessModes": ["ReadWriteOnce"],
                 "resources": {"requests": {"storage": "1Gi"}}}})
    wait_for("the claim is bound",
             lambda: plane.admin.get("PersistentVolumeClaim", "data")["status"]["phase"] == "Bound")
    plane.leave(stand_in)


def other_users_have_no_rights(plane):
    for token in (NOBODY, BERTH):  # until a role is bound to it
        assert plane.client(token).ask("GET", "/api/v1/nodes")[0] == 403, token
    assert plane.client("wrong").ask("GET", "/api/v1/nodes")[0] == 401
    assert "large" in plane.kubectl("get", "nodes", "-o", "name")


def survives_a_kill(plane):
    before = {thing["metadata"]["uid"] for thing in plane.admin.list("Node")}
    plane.kill_api()
    plane.start_api()
    assert {thing["metadata"]["uid"] for thing in plane.admin.list("Node")} == before and before


def main():
    run_cases([peer_binds_a_pod, kubelet_stands_in, volumes_stand_in, other_users_have_no_rights, survives_a_kill])


if __name__ == "__main__":
    main()
