"""Compares a scheduler with kube-scheduler: runs the corpus, one case after another on one API server.

    compare.py [--who berth | peer | first] [--save] [--json FILE] [--share I/N] [PART OF A NAME]...

If pods do not compete, each must be placed if and only if kube-scheduler places it. If they do, at least as many pods
of each priority must be placed in the end as by kube-scheduler (a scheduler that places more pods of a higher priority
may place fewer of a lower one). Every placement must pass kube-scheduler's own filters at the moment when it is made
(oracle), and no pod may wait that the filters would allow on a node. expected.json has the results of kube-scheduler;
--save runs it again for new and changed cases. `first` binds every pod to the first node: it proves that the checks
find faults.
"""
import argparse
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import client
from client import Follower, collection, path_of
from control_plane import HERE, ControlPlane
from corpus import STANDING, digest, everything
from corpus_volumes import CLASSES

BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", "build/gcc"))
EXPECTED = HERE / "expected.json"
NAME = "tests"  # the schedulerName of the pending pods
OWN = ("Pod", "Node", "PersistentVolume", "PersistentVolumeClaim", "CSINode", "CSIStorageCapacity", "VolumeAttachment",
       "PodDisruptionBudget")
STANDS = ("StorageClass", "CSIDriver", "Namespace")  # the same for all cases
WORLD = (*OWN, *STANDS)
STAYS = "tests.berth.dev/stays"  # a finalizer that keeps an object in the state of being deleted
SEEN = 0.15  # seconds after which a scheduler has seen new objects
QUIET = 0.15  # seconds without a change after which a case is over
LIES_READY = 0.1  # seconds for another watcher to see the same changes
QUIET_LONG = 1.8  # if pods compete or are preempted: longer than the peer's backoff
PATIENCE = client.PATIENCE // 3  # a case takes a second
ORDERS = 1000  # most dead ends in the search for an order


class Oracle:
    """kube-scheduler's filters, asked one question at a time."""

    def __init__(self, program, log):
        self.log = log
        with log.open("w") as words:
            self.program = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words,
                                            text=True)

    def refusals(self, things, pod, node=""):
        """Returns {node: reason} why the pod may not run on each node (or on this one) with these objects; "" if it
        may."""
        meta = pod["metadata"]
        question = {"objects": [versioned(thing) for thing in things] + [versioned(pod)],
                    "namespace": meta["namespace"], "pod": meta["name"], "node": node}
        self.program.stdin.write(json.dumps(question) + "\n")
        self.program.stdin.flush()
        line = self.program.stdout.readline()
        assert line, f"the oracle ended: {self.log.read_text()[-3000:]}"
        answer = json.loads(line)
        return {node: answer["error"]} if "error" in answer else answer["nodes"]

    def end(self):
        self.program.stdin.close()
        self.program.wait()
        self.program.stdout.close()


def versioned(thing):
    """Returns the object with its apiVersion, which lists and watches omit."""
    group = collection(thing["kind"]).strip("/").rsplit("/", 1)[0]
    return {"apiVersion": group.removeprefix("apis/").removeprefix("api/"), **thing}


def node_of(pod):
    return pod["spec"].get("nodeName")


def refused(pod):
    """Returns why the pod is not scheduled, by its condition; None if it has none."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message") or condition.get("reason")
    return None


class Runner:
    """Runs cases with the scheduler of NAME's pods. If pods compete, the scheduler is stopped until all of them exist,
    so that their order of arrival does not matter."""

    def __init__(self, plane, scheduler):
        self.scheduler = scheduler
        self.plane, self.admin, self.oracle = (
            plane, plane.admin, Oracle(plane.bin / "oracle", plane.work / "oracle.log"))
        self.admin.create_all(STANDING + CLASSES)
        self.log, self.changed = [], time.monotonic()
        self.follower = Follower(self.admin, WORLD, self.heard)

    def heard(self, change, thing):
        self.changed = time.monotonic()
        if thing["kind"] == "Pod":
            self.log.append((change, thing))

    def things(self, kind, prefix):
        return [thing for thing in self.follower.list(kind) if thing["metadata"]["name"].startswith(prefix)]

    def make(self, thing):
        thing = dict(thing)
        going = thing.pop("delete", False)
        if going and thing["kind"] != "Pod":
            thing["metadata"] = {**thing["metadata"], "finalizers": [STAYS]}
        self.admin.create(thing)
        if going:
            self.admin.delete(thing, 3600 if thing["kind"] == "Pod" else None)

    def run(self, case, number, seen=SEEN):
        """Returns the result of a case: {"placed": {pod: node or None}, "why": {pod: text}, "counts": {priority: pods},
        "wrong": [...], "left": [...]}."""
        prefix = f"c{number}-"
        case = json.loads(json.dumps(case).replace('"@', f'"{prefix}'))
        try:
            first = [thing for thing in case["before"] if thing["kind"] != "Pod"]
            self.admin.each(self.make, first)
            self.admin.each(self.make, [thing for thing in case["before"] if thing["kind"] == "Pod"])
            made = {path_of(thing) for thing in case["before"]}
            self.follower.until("all is seen",
                                lambda: made <= {path_of(t) for kind in OWN for t in self.things(kind, prefix)},
                                PATIENCE)
            time.sleep(seen)
            self.log.clear()
            start = self.things("Pod", prefix)
            with self.held_still(case["contended"]):
                for pod in case["pending"]:
                    self.admin.create({**pod, "spec": {**pod["spec"], "schedulerName": NAME}})
                # all pods exist before the scheduler continues, else it would rightly place the first ones first
                if case["contended"]:
                    came = {path_of(pod) for pod in case["pending"]}
                    self.follower.until("all have come",
                                        lambda: came <= {path_of(t) for t in self.things("Pod", prefix)}, PATIENCE)
                    time.sleep(LIES_READY)
            self.settle(case, prefix)
            return self.result(case, prefix, start)
        finally:
            self.clear(prefix)

    @contextlib.contextmanager
    def held_still(self, wanted):
        if wanted:
            self.scheduler.kill(signal.SIGSTOP)
        yield
        if wanted:
            self.scheduler.kill(signal.SIGCONT)

    def settle(self, case, prefix):
        """Waits until every pending pod is placed or refused, and nothing changes any more."""
        names = {pod["metadata"]["name"] for pod in case["pending"]}
        nodes = sum(thing["kind"] == "Node" for thing in case["before"])
        makes_room = any(pod["spec"].get("priorityClassName", "").startswith("high") for pod in case["pending"])
        end = time.monotonic() + PATIENCE

        def decided(pod):
            text = refused(pod) or ""
            # "0/2 nodes" with three nodes: the scheduler had not seen one of them
            return node_of(pod) or text and (not text.startswith("0/") or text.startswith(f"0/{nodes} "))
        while time.monotonic() < end:
            with self.follower.lock:
                pods = [pod for pod in self.things("Pod", prefix) if pod["metadata"]["name"] in names]
                waits = [pod for pod in pods if not node_of(pod)]
                quiet = QUIET_LONG if waits and (case["contended"] or makes_room or len(names) > 1) else QUIET
                promised = any(pod.get("status", {}).get("nominatedNodeName") for pod in waits)
                if len(pods) + self.deleted(names) >= len(names) and all(map(decided, pods)):
                    if time.monotonic() - self.changed > (3 * quiet if promised else quiet):
                        return
                self.follower.lock.wait(0.05)

    def deleted(self, names):
        return len({thing["metadata"]["name"] for change, thing in self.log if change == "DELETED"
                    and thing["metadata"]["name"] in names})

    def result(self, case, prefix, start):
        with self.follower.lock:
            pods, log = self.things("Pod", prefix), list(self.log)
        now = {pod["metadata"]["name"]: pod for pod in pods}
        placed, why = {}, {}
        for pod in case["pending"]:
            name = pod["metadata"]["name"]
            short = name.removeprefix(prefix)
            placed[short] = (node_of(now[name]) or None) if name in now else None
            if name in now and not placed[short]:
                why[short] = (refused(now[name]) or "").replace(prefix, "@")
        counts = {}
        for pod in pods:
            if node_of(pod):
                priority = str(pod["spec"].get("priority", 0))
                counts[priority] = counts.get(priority, 0) + 1
        return {"placed": placed, "why": why, "counts": counts,
                "wrong": self.faults(prefix, start, log), "left": self.left_out(case, prefix, now)}

    def faults(self, prefix, start, log):
        """Returns the placements that kube-scheduler's filters refuse, in the order in which they were made. Concurrent
        binds may arrive in another order than they were decided: a refused one is checked again after each later
        one."""
        rest = self.rest(prefix)
        nodes = {thing["metadata"]["name"] for thing in rest if thing["kind"] == "Node"}
        # The peer does not see pods on missing nodes.
        pods = {pod["metadata"]["uid"]: pod for pod in start if node_of(pod) in nodes}
        later = {}

        def passes(uid, pod):
            text = self.oracle.refusals([*rest, *pods.values()], pod, node_of(pod))[node_of(pod)]
            if text:
                later[uid] = (pod, text)
            else:
                later.pop(uid, None)
                pods[uid] = pod
            return not text
        for change, pod in log:
            uid = pod["metadata"]["uid"]
            if change == "DELETED":
                pods.pop(uid, None)
                if uid not in later:
                    continue
            elif node_of(pod) and uid not in pods and uid not in later:
                if not passes(uid, pod):
                    continue
            else:
                if uid in pods:
                    pods[uid] = pod
                continue
            while any(passes(*one) for one in [(uid, pod) for uid, (pod, _) in later.items()]):
                pass
        if later and self.some_order(rest, start, nodes, log):
            return []
        return [f"the filters refuse {pod['metadata']['name'].removeprefix(prefix)} on "
                f"{node_of(pod).removeprefix(prefix)}: {text}"
                for pod, text in later.values()]

    def some_order(self, rest, start, nodes, log):
        """Returns whether there is an order in which every placement passes, without the pods that were preempted.
        Placements of one decision are bound concurrently in any order: of two pods with affinity to their own kind the
        first may be bound second, and a third pod that needs one of them before both."""
        gone = {pod["metadata"]["uid"] for change, pod in log if change == "DELETED"}
        pods = {pod["metadata"]["uid"]: pod for pod in start if node_of(pod) in nodes
                and pod["metadata"]["uid"] not in gone}
        bound = {pod["metadata"]["uid"]: pod for _, pod in log
                 if node_of(pod) and pod["metadata"]["uid"] not in pods and pod["metadata"]["uid"] not in gone}
        came = {uid: number for number, uid in reversed(list(enumerate(pod["metadata"]["uid"] for _, pod in log)))}
        wanted = sorted(bound, key=lambda uid: (-bound[uid]["spec"].get("priority", 0), came[uid]))
        vain = set()  # sets of placed pods without a possible next pod

        def goes_on(placed):
            if len(placed) == len(wanted):
                return True
            if placed in vain or len(vain) > ORDERS:
                return False
            there = [*rest, *pods.values(), *(bound[uid] for uid in placed)]
            for uid in wanted:
                if uid not in placed and not self.oracle.refusals(there, bound[uid],
                                                                  node_of(bound[uid]))[node_of(bound[uid])]:
                    if goes_on(placed | {uid}):
                        return True
            vain.add(placed)
            return False
        return goes_on(frozenset())

    def rest(self, prefix):
        """Returns all objects but the pods."""
        return [thing for kind in WORLD if kind != "Pod" for thing in self.follower.list(kind)
                if kind in STANDS or thing["metadata"]["name"].startswith(prefix)]

    def left_out(self, case, prefix, now):
        """Returns the pods that still wait although the filters allow them on a node."""
        rest, found = self.rest(prefix), []
        nodes = {thing["metadata"]["name"] for thing in rest if thing["kind"] == "Node"}
        held = [pod for pod in now.values() if node_of(pod) in nodes]
        for name in (pod["metadata"]["name"] for pod in case["pending"]):
            if name not in now or node_of(now[name]) or now[name]["spec"].get("schedulingGates"):
                continue
            good = [node for node, text in self.oracle.refusals([*rest, *held], now[name]).items() if not text]
            if good:
                found.append(
                    f"{name.removeprefix(prefix)} is left out, though {good[0].removeprefix(prefix)} would take it")
        return found

    def clear(self, prefix):
        """Deletes all objects of a case, and waits until a watcher sees that they are gone."""
        def gone():
            return not any(self.things(kind, prefix) for kind in OWN)

        def drop(thing):
            if STAYS in thing["metadata"].get("finalizers", []):
                self.admin.patch(thing, {"metadata": {"finalizers": None}})
            self.admin.delete(thing, 0)
        end = time.monotonic() + PATIENCE
        while not gone() and time.monotonic() < end:
            for kinds in (OWN[:1], OWN[1:]):
                self.admin.each(drop, [thing for kind in kinds for thing in self.things(kind, prefix)])
            with self.follower.lock:
                self.follower.lock.wait_for(gone, 1)

    def end(self):
        self.follower.end()
        self.oracle.end()


class First:
    """A scheduler that binds every pod to the first node, even if that is wrong."""

    def __init__(self, plane):
        self.admin, self.done = plane.admin, set()
        self.follower = Follower(plane.client("admin-token"), ("Pod",))
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.02):
            for pod in self.follower.list("Pod"):
                if pod["spec"]["schedulerName"] == NAME and not node_of(
                    pod) and pod["metadata"]["uid"] not in self.done:
                    self.done.add(pod["metadata"]["uid"])
                    self.admin.bind(pod, min(node["metadata"]["name"] for node in self.admin.list("Node")))

    def kill(self, signo):
        """Needs no stopping: it decides pod by pod anyway."""

    def end(self):
        self.ended.set()
        self.thread.join()
        self.follower.end()


def fewer(counts, least):
    """Returns the highest priority of which fewer pods are placed; None if there is none, or if more of a higher one
    are placed."""
    for priority in sorted(set(counts) | set(least), key=int, reverse=True):
        got, want = counts.get(priority, 0), least.get(priority, 0)
        if got != want:
            return priority if got < want else None
    return None


def faults_of(case, result, expected, who):
    """Returns the faults of a result; none if it is as good as the peer's. Only the peer may leave pods out: it does so
    for minutes when a pod is preempted whose anti-affinity kept them away."""
    found = result["wrong"] + (result["left"] if who != "peer" else [])
    if expected is None or expected["hash"] != digest(case):
        return found + ["expected.json knows nothing of this case; `make kube-expected`"]
    if case["contended"]:
        least = expected["counts"]
        priority = fewer(result["counts"], least)
        if priority:
            found.append(
                f"of priority {priority} {result['counts'].get(priority, 0)} are placed, not {least[priority]}")
        return found
    for pod, node in result["placed"].items():
        if bool(node) != expected["placed"][pod]:
            found.append(f"{pod} is {'' if node else 'not '}placed; {result['why'].get(pod, '')}")
    return found


def least_of(results):
    """Returns the run of the peer that placed the fewest pods, compared from the highest priority on."""
    worst = results[0]
    for one in results[1:]:
        if fewer(one["counts"], worst["counts"]):
            worst = one
    return worst


def save(runner, chosen):
    """Runs the peer twice for unknown cases, and once more slowly if the results differ."""
    known = json.loads(EXPECTED.read_text()) if EXPECTED.exists() else {}
    known = {case["name"]: known[case["name"]] for case in everything() if case["name"] in known}
    for number, case in chosen:
        if known.get(case["name"], {}).get("hash") == digest(case):
            continue
        results = [runner.run(case, number) for _ in range(2)]
        if not case["contended"] and len({json.dumps({pod: bool(node) for pod, node in one["placed"].items()})
                                          for one in results}) > 1:
            results = [runner.run(case, number, seen=1)]
            print(f"# {case['name']}: checked once more", flush=True)
        for one in results:
            assert not one["wrong"], f"{case['name']}: the oracle and the peer differ: {one['wrong']}"
        worst = least_of(results)
        entry = {"hash": digest(case)}
        if case["contended"]:
            entry["counts"] = worst["counts"]
        else:
            entry["placed"] = {pod: bool(node) for pod, node in worst["placed"].items()}
            entry["why"] = worst["why"]
        known[case["name"]] = entry
        if len(known) % 20 == 0:
            write(known)
    write(known)


def write(known):
    names = [case["name"] for case in everything() if case["name"] in known]
    lines = [f"{json.dumps(name)}: {json.dumps(known[name], sort_keys=True)}" for name in names]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def start(who, plane):
    if who == "first":
        return First(plane)
    if who == "peer":
        return plane.peer(NAME)
    return plane.run("berth-kube",
                     [BUILD / "src/kube/berth-kube", "--kubeconfig", plane.kubeconfig(), "--scheduler-name", NAME])


def compare(runner, chosen, who):
    """Prints TAP; returns the number of failed cases and the result of each."""
    expected = json.loads(EXPECTED.read_text())
    failed, all_results = 0, {}
    for done, (number, case) in enumerate(chosen, 1):
        result = runner.run(case, number)
        wrong = faults_of(case, result, expected.get(case["name"]), who)
        if wrong:  # perhaps the machine was busy: run it again, slowly
            print(f"# once more, after: {'; '.join(wrong)}", flush=True)
            result = runner.run(case, number, seen=1)
            wrong = faults_of(case, result, expected.get(case["name"]), who)
        all_results[case["name"]] = {**result, "failed": wrong}
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {done} - {case['name']}", flush=True)
        for text in wrong:
            print(f"# {text}", flush=True)
    print(f"1..{len(chosen)}")
    return failed, all_results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--who", choices=("berth", "peer", "first"), default="berth")
    parser.add_argument("--save", action="store_true",
                        help="write what kube-scheduler does with new cases to expected.json")
    parser.add_argument("--json", help="write what became of each case to this file")
    parser.add_argument("--fails", action="store_true", help="succeed only where every case fails")
    parser.add_argument("--share", default="0/1", help="1/3: the second of three equal parts of the corpus")
    parser.add_argument("parts", nargs="*", help="only cases with one of these in their name")
    options = parser.parse_args()
    chosen = [(number, case) for number, case in enumerate(everything())
              if not options.parts or any(part in case["name"] for part in options.parts)]
    part, parts = map(int, options.share.split("/"))
    chosen = chosen[part::parts]
    begin = time.monotonic()
    with ControlPlane() as plane:
        plane.stand_ins("reaper", "volumes")
        scheduler = start("peer" if options.save else options.who, plane)
        runner = Runner(plane, scheduler)
        failed = 0
        if options.save:
            save(runner, chosen)
        else:
            failed, results = compare(runner, chosen, options.who)
            if failed:
                plane.tell()
            if options.json:
                pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
        runner.end()
        scheduler.end()
    print(f"# {len(chosen)} cases, {failed} failed, {time.monotonic() - begin:.0f} s")
    sys.exit(failed != len(chosen) if options.fails else failed != 0)


if __name__ == "__main__":
    main()
