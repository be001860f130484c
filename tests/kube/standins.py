"""Fakes of a cluster's other controllers in one small process, as far as scheduling depends on them.

    standins.py PORT CA TOKEN [kubelet | reaper] [volumes] [claims]

  kubelet  sets a bound pod to Running, unless it has a claim of its own for which it might wait; removes a pod that is
           being deleted at once, unless its grace period is an hour
  reaper   only removes pods
  volumes  binds a claim and a volume that a scheduler has matched (the volume's claimRef); makes a volume on the
           selected node for a claim of a class with a provisioner, unless the provisioner's name begins with by-hand
  claims   makes the claims of pods with ephemeral volumes
"""
import signal
import sys
import threading
import time

from client import PATIENCE, Client, Follower, Refused, path_of

SELECTED = "volume.kubernetes.io/selected-node"
ACCESSIBLE = "kubernetes.io/hostname"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def own_claims(pod):
    return [volume for volume in pod["spec"].get("volumes", []) if "ephemeral" in volume]


class Kubelet:
    """Sets bound pods to Running, finishes deletions."""

    kinds, runs = ("Pod",), True

    def __init__(self, client):
        self.client, self.begun = client, set()

    def heard(self, change, thing):
        if thing["kind"] != "Pod" or not thing["spec"].get("nodeName"):
            return
        uid, phase = thing["metadata"]["uid"], thing.get("status", {}).get("phase")
        if change == "DELETED":
            self.begun.discard(uid)
        elif thing["metadata"].get("deletionTimestamp"):
            if thing["metadata"].get("deletionGracePeriodSeconds", 0) < 3600:
                self.client.pool.submit(self.client.delete, thing, 0)
        elif self.runs and phase == "Pending" and uid not in self.begun and not own_claims(thing):
            self.begun.add(uid)
            self.client.pool.submit(self.run, thing)

    def run(self, pod):
        """Changes only the seen version: a test may have set the pod to ended meanwhile."""
        path, status = path_of(pod), 200
        while status < 400 and pod["status"].get("phase") == "Pending":
            patch = {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"]}, "status": {
                "phase": "Running", "startTime": now(), "conditions": [
                    {"type": kind, "status": "True", "lastTransitionTime": now()}
                    for kind in ("PodScheduled", "Ready")]}}
            if self.client.ask("PATCH", path + "/status", patch, "application/merge-patch+json")[0] != 409:
                return  # done, or the pod is gone
            status, pod = self.client.ask("GET", path)


class Reaper(Kubelet):
    """Only finishes deletions."""

    runs = False


class Volumes:
    """Acts as the volume controllers once a scheduler has chosen."""

    kinds = ("PersistentVolume", "PersistentVolumeClaim", "StorageClass", "Node")

    def __init__(self, client):
        self.client, self.follower, self.begun = client, None, set()

    def heard(self, change, thing):
        if change == "DELETED" or thing["kind"] not in ("PersistentVolume", "PersistentVolumeClaim"):
            return
        meta = thing["metadata"]
        if thing["kind"] == "PersistentVolume":
            owner = thing["spec"].get("claimRef")
            if owner and thing.get("status", {}).get("phase") != "Bound":
                self.once(("bind", meta["uid"]), self.bind, thing, owner)
        elif not thing["spec"].get("volumeName") and meta.get("annotations", {}).get(SELECTED):
            self.once(("make", meta["uid"]), self.make, thing, meta["annotations"][SELECTED])

    def once(self, key, function, *words):
        if key not in self.begun:
            self.begun.add(key)
            self.client.pool.submit(function, *words)

    def bind(self, volume, owner):
        name = volume["metadata"]["name"]
        claim = {"kind": "PersistentVolumeClaim", "metadata": {"namespace": owner["namespace"], "name": owner["name"]}}
        meant = {"uid": owner["uid"]} if "uid" in owner else {}  # so that a newer claim with the same name is not bound
        try:
            self.client.patch(claim, {"metadata": {**meant, "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
                                      "spec": {"volumeName": name}})
            self.client.patch(claim, {"status": {"phase": "Bound", "accessModes": volume["spec"]["accessModes"],
                                                 "capacity": volume["spec"]["capacity"]}}, "/status")
            self.client.patch(volume, {"status": {"phase": "Bound"}}, "/status")
        except Refused as error:
            print(error, file=sys.stderr, flush=True)

    def make(self, claim, node):
        meta, spec = claim["metadata"], claim["spec"]
        try:
            found = self.client.get("StorageClass", spec["storageClassName"])
            if found["provisioner"].startswith(("kubernetes.io/no-provisioner", "by-hand")):
                return
            self.client.create({
                "apiVersion": "v1", "kind": "PersistentVolume",
                "metadata": {"name": f"{meta['name']}-{meta['uid'][:8]}"},
                "spec": {"capacity": {"storage": spec["resources"]["requests"]["storage"]},
                         "accessModes": spec["accessModes"], "storageClassName": spec["storageClassName"],
                         "csi": {"driver": found["provisioner"], "volumeHandle": meta["uid"]},
                         "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                                      "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]},
                         "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                             {"key": ACCESSIBLE, "operator": "In", "values": [node]}]}]}}}})
        except Refused as error:
            print(error, file=sys.stderr, flush=True)


class Claims:
    """Acts as the controller of ephemeral volumes."""

    kinds = ("Pod",)

    def __init__(self, client):
        self.client, self.begun = client, set()

    def heard(self, change, thing):
        meta = thing["metadata"]
        if change == "DELETED" or meta.get("deletionTimestamp") or meta["uid"] in self.begun or not own_claims(thing):
            return
        self.begun.add(meta["uid"])
        self.client.pool.submit(self.make, thing)

    def make(self, pod):
        meta = pod["metadata"]
        for volume in own_claims(pod):
            self.make_one({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "spec": volume["ephemeral"]["volumeClaimTemplate"]["spec"],
                "metadata": {"name": f"{meta['name']}-{volume['name']}", "namespace": meta["namespace"],
                             "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"],
                     "controller": True}]}})

    def make_one(self, claim):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                self.client.create(claim)
                return
            except Refused as error:
                print(error, file=sys.stderr, flush=True)
                if error.status != 409:  # 409: the claim of an earlier pod with the same name still exists
                    return
            time.sleep(0.1)


PARTS = {"kubelet": Kubelet, "reaper": Reaper, "volumes": Volumes, "claims": Claims}


def main():
    port, authority, token, *wanted = sys.argv[1:]
    client = Client("127.0.0.1", int(port), authority, token)
    parts = [PARTS[name](client) for name in wanted or ("kubelet", "volumes")]

    def heard(change, thing):
        for part in parts:
            if thing["kind"] in part.kinds:
                part.heard(change, thing)
    Follower(client, sorted({kind for part in parts for kind in part.kinds}), heard)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Event().wait()


if __name__ == "__main__":
    main()
