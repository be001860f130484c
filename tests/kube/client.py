"""A client of a Kubernetes API server for tests: kept-alive connections, parallel requests, watches. Standard library
only."""
import concurrent.futures
import http.client
import json
import os
import socket
import ssl
import threading
import time

# Seconds until an expected event counts as missing; no speed is tested here.
PATIENCE = int(os.environ.get("BERTH_PATIENCE", "60"))

# kind: (group and version, plural, is it namespaced)
KINDS = {
    "Namespace": ("api/v1", "namespaces", False),
    "Node": ("api/v1", "nodes", False),
    "Pod": ("api/v1", "pods", True),
    "Service": ("api/v1", "services", True),
    "Event": ("api/v1", "events", True),
    "ConfigMap": ("api/v1", "configmaps", True),
    "PersistentVolume": ("api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims", True),
    "StorageClass": ("apis/storage.k8s.io/v1", "storageclasses", False),
    "CSINode": ("apis/storage.k8s.io/v1", "csinodes", False),
    "CSIDriver": ("apis/storage.k8s.io/v1", "csidrivers", False),
    "VolumeAttachment": ("apis/storage.k8s.io/v1", "volumeattachments", False),
    "CSIStorageCapacity": ("apis/storage.k8s.io/v1", "csistoragecapacities", True),
    "LimitRange": ("api/v1", "limitranges", True),
    "PriorityClass": ("apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "RuntimeClass": ("apis/node.k8s.io/v1", "runtimeclasses", False),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets", True),
    "Lease": ("apis/coordination.k8s.io/v1", "leases", True),
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
}


def wait_for(what, check, patience=PATIENCE, pause=0.05):
    """Waits until check() returns a true value, and returns it."""
    end = time.monotonic() + patience
    while True:
        last = check()
        if last:
            return last
        if time.monotonic() > end:
            raise AssertionError(f"never: {what}")
        time.sleep(pause)


class Refused(Exception):
    """An answer of 400 or above."""

    def __init__(self, what, status, answer):
        super().__init__(f"{what}: {status} {answer.get('message', answer) if isinstance(answer, dict) else answer}")
        self.status, self.answer = status, answer


def collection(kind, namespace=None):
    version, plural, inside = KINDS[kind]
    middle = f"namespaces/{namespace}/" if inside and namespace else ""
    return f"/{version}/{middle}{plural}"


def path_of(thing):
    """Returns the path of an object, with its name."""
    return collection(thing["kind"], thing["metadata"].get("namespace", "default")) + "/" + thing["metadata"]["name"]


class Client:
    """Sends requests as one user. Threads may share it: each has its own connection."""

    def __init__(self, host, port, ca, token, workers=8):
        self.host, self.port, self.token, self.workers = host, port, token, workers
        self.context = ssl.create_default_context(cafile=str(ca))
        self.here = threading.local()
        self.pool = concurrent.futures.ThreadPoolExecutor(workers)

    def connect(self, timeout=PATIENCE):
        return http.client.HTTPSConnection(self.host, self.port, context=self.context, timeout=timeout)

    def headers(self, **more):
        return {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
                "Accept": "application/json", **more}

    def ask(self, method, path, body=None, content="application/json"):
        """Returns (status, decoded answer); reopens a connection that was closed meanwhile, once."""
        data = None if body is None else json.dumps(body)
        for again in (False, True):
            link = getattr(self.here, "link", None)
            if not link:
                link = self.here.link = self.connect()
            try:
                link.request(method, path, data, self.headers(**{"Content-Type": content}))
                answer = link.getresponse()
                text = answer.read()
                break
            except (OSError, http.client.HTTPException):
                link.close()
                self.here.link = None
                if again:
                    raise
        is_json = (answer.getheader("Content-Type") or "").startswith("application/json")
        return answer.status, json.loads(text) if is_json and text else text.decode()

    def must(self, method, path, body=None, content="application/json"):
        """Returns the answer. Repeats the request if a server that has just started is not yet ready for it."""
        end = time.monotonic() + PATIENCE
        while True:
            status, answer = self.ask(method, path, body, content)
            if status < 400:
                return answer
            if status != 429 or "initializing" not in str(answer) or time.monotonic() > end:
                raise Refused(f"{method} {path}", status, answer)
            time.sleep(0.1)

    def get(self, kind, name, namespace="default"):
        return self.must("GET", f"{collection(kind, namespace)}/{name}")

    def list(self, kind, namespace=None, query=""):
        return self.must("GET", collection(kind, namespace) + (f"?{query}" if query else ""))["items"]

    def create(self, thing):
        """Returns the stored object. A status that creation drops (of pods, claims, budgets) is written afterwards."""
        made = self.must("POST", collection(thing["kind"], thing["metadata"].get("namespace", "default")), thing)
        if "status" in thing and thing["kind"] != "Node":
            made = self.must("PATCH", path_of(thing) + "/status", {"status": thing["status"]},
                             "application/merge-patch+json")
        return made

    def each(self, function, things):
        """Calls the function for each object, several at a time; raises the first failure."""
        return list(self.pool.map(function, things))

    def create_all(self, things):
        return self.each(self.create, things)

    def patch(self, thing, change, part=""):
        return self.must("PATCH", path_of(thing) + part, change, "application/merge-patch+json")

    def delete(self, thing, grace=None):
        """Returns False if the object was gone already. An object that was read from the server has a uid, so a later
        object of the same name is not deleted."""
        uid = thing["metadata"].get("uid")
        body = {**({} if grace is None else {"gracePeriodSeconds": grace}),
                **({"preconditions": {"uid": uid}} if uid else {})}
        status, answer = self.ask("DELETE", path_of(thing), body or None)
        # The message is "UID in precondition: ..." or "the UID in the precondition (...)", depending on where the
        # server detects it.
        gone = status == 404 or status == 409 and "UID in" in str(answer) and "precondition" in str(answer)
        if status >= 400 and not gone:
            raise Refused(f"DELETE {path_of(thing)}", status, answer)
        return status < 400

    def bind(self, pod, node):
        """Binds a pod like a scheduler; returns (status, answer)."""
        meta = pod["metadata"]
        binding = {"apiVersion": "v1", "kind": "Binding",
                   "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
                   "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        return self.ask("POST", path_of(pod) + "/binding", binding)

    def watch(self, kind, since=None, query=""):
        return Watch(self, kind, since, query)

    def close(self):
        self.pool.shutdown(wait=False)


class Watch:
    """Yields events (type, object) until the server ends the watch or any thread calls close(). Without `since`, all
    existing objects come first."""

    def __init__(self, client, kind, since=None, query="", accept="application/json"):
        words = "watch=1&allowWatchBookmarks=true" + (f"&resourceVersion={since}" if since
                                                      else "") + (f"&{query}" if query else "")
        self.link = client.connect(timeout=None)
        self.link.request("GET", f"{collection(kind)}?{words}", None, client.headers(Accept=accept))
        self.socket = self.link.sock
        self.answer = self.link.getresponse()
        if self.answer.status != 200:
            raise Refused(f"watch of {kind}", self.answer.status, self.answer.read().decode())

    def pieces(self):
        """Yields received bytes; none after the end."""
        try:
            while piece := self.answer.read1(1 << 20):
                yield piece
        except (OSError, ValueError, http.client.HTTPException):
            pass  # a lost connection is an end
        finally:
            self.link.close()

    def __iter__(self):
        rest = b""
        for piece in self.pieces():
            lines = (rest + piece).split(b"\n")
            rest = lines.pop()
            for line in lines:
                event = json.loads(line)
                yield event["type"], event["object"]

    def close(self):
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the watch had ended


class Follower:
    """Keeps all objects of some kinds up to date by watches, one thread for each; heard(type, object) is called for
    every change."""

    def __init__(self, client, kinds, heard=None):
        self.client, self.heard = client, heard
        self.stop = threading.Event()
        self.watches = {}
        self.lock = threading.Condition()
        self.things = {kind: {} for kind in kinds}
        self.synced, self.trouble = set(), []
        self.threads = [threading.Thread(target=self.follow, args=(kind,), daemon=True) for kind in kinds]
        for thread in self.threads:
            thread.start()
        wait_for(f"{kinds} are listed", lambda: len(self.synced) == len(kinds))

    def follow(self, kind):
        since = None
        while not self.stop.is_set():
            try:
                if since is None:
                    since = self.relist(kind)
                self.watches[kind] = self.client.watch(kind, since)
                for change, thing in self.watches[kind]:
                    if change == "ERROR":
                        since = None
                        break
                    since = thing["metadata"]["resourceVersion"]
                    if change != "BOOKMARK":
                        thing["kind"] = kind
                        self.take(kind, change, thing)
            except (OSError, http.client.HTTPException, ValueError, Refused) as error:
                self.trouble.append(str(error))
                self.stop.wait(0.1)

    def relist(self, kind):
        answer = self.client.must("GET", collection(kind))
        now = {}
        for thing in answer["items"] or []:
            thing["kind"] = kind
            now[thing["metadata"]["uid"]] = thing
        for uid, thing in list(self.things[kind].items()):
            if uid not in now:
                self.take(kind, "DELETED", thing)
        for thing in now.values():
            self.take(kind, "MODIFIED" if thing["metadata"]["uid"] in self.things[kind] else "ADDED", thing)
        self.synced.add(kind)
        return answer["metadata"]["resourceVersion"]

    def take(self, kind, change, thing):
        with self.lock:
            if change == "DELETED":
                self.things[kind].pop(thing["metadata"]["uid"], None)
            else:
                self.things[kind][thing["metadata"]["uid"]] = thing
            if self.heard:
                self.heard(change, thing)
            self.lock.notify_all()

    def list(self, kind):
        with self.lock:
            return list(self.things[kind].values())

    def until(self, what, check, patience=PATIENCE):
        """Waits until check() is true; checks after every change."""
        end = time.monotonic() + patience
        with self.lock:
            while True:
                found = check()
                if found:
                    return found
                if time.monotonic() > end:
                    raise AssertionError(f"never: {what}")
                self.lock.wait(0.2)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            while thread.is_alive():  # the thread may just have begun another watch
                for watch in list(self.watches.values()):
                    watch.close()
                thread.join(0.1)
