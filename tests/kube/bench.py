"""Measures pods per second of kube-scheduler, of berth-kube, and of the API server alone.

The last one, the ceiling, is a plain client that posts bindings as fast as the API server takes them. One run on one
machine; `make bench-kube`.

    bench.py [--nodes 100,1000,5000] [--pods 5000] [--who ceiling,peer,berth] [--rounds 3] [--rate 400] [--held 45000]
             [--json FILE]

For each size of cluster, waiting pods are bound at full speed, with and without an Event per pod (kube-scheduler always
writes them): the time from the first bound pod until the last pod is bound and its Event is written. Then pods arrive
at a rate, and the wait of each is measured between the moments at which a watcher sees it and sees it bound. Every
second round runs in reverse order, since an API server slows down with the amount of data. Results are medians. Shares
are given as the median and the range over the rounds, and as the share in the time of all rounds together.
kube-scheduler, which is far below the goals, runs in the first round only. --held puts that many bound pods on the
largest cluster before memory is measured.

All programs are observed in the same way: by a watcher of every 25th pod, which costs the API server almost nothing.
The CPU time is that of the scheduler, without its start, and of the API server and etcd meanwhile: if all cores are
busy, their sum matters.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

from client import Watch, collection, wait_for
from control_plane import ADMIN, ControlPlane
import objects

BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", "build/gcc"))
LOAD, BERTH = BUILD / "bench/kube_load_bench", BUILD / "src/kube/berth-kube"
NAME = "bench"  # the schedulerName
PODS = collection("Pod", "default")
SETTLED = 1.0  # seconds without a change that count as the end
SEEN = 25  # at full speed the watcher sees one of so many pods


def node(number):
    return objects.node(f"node-{number}", cpu="32", memory="128Gi",
                        labels={"topology.kubernetes.io/zone": f"zone-{number % 3}"})


def pod(name, on=None, seen=False):
    labels = {"app": "load", **({"seen": "yes"} if seen else {})}
    return objects.pod(name, cpu="100m", memory="128Mi", scheduler=NAME, labels=labels, on=on)


def binding(name, on):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "default"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": on}}


def event(name, on):
    return {"apiVersion": "events.k8s.io/v1", "kind": "Event",
            "metadata": {"name": f"{name}.1", "namespace": "default"},
            "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "reason": "Scheduled", "action": "Binding",
            "reportingController": NAME, "reportingInstance": NAME,
            "note": f"Successfully assigned default/{name} to {on}",
            "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name}}


class Watcher:
    """Records when pods of the load arrive and are bound, in the cheapest way: a protobuf watch of pods without a node,
    which a bound pod leaves."""

    # Type, name and resource version (field 6, after the uid) are at the beginning of a frame.
    PATTERN = re.compile(rb"(ADDED|DELETED).*?(load-\d+).*?\*\$[0-9a-f-]{36}2(.)(\d+)", re.DOTALL)

    def __init__(self, plane):
        self.plane, self.came, self.bound, self.ended = plane, {}, {}, False
        self.since = plane.admin.must("GET", f"{PODS}?limit=1")["metadata"]["resourceVersion"]
        self.watch = self.again()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def again(self):
        return Watch(self.plane.admin, "Pod", self.since, "labelSelector=seen&fieldSelector=spec.nodeName%3D",
                     "application/vnd.kubernetes.protobuf;stream=watch")

    def read(self):
        while not self.ended:  # the server closes the watch of a slow watcher, which then reconnects
            rest = b""
            for piece in self.watch.pieces():
                now, rest, at = time.monotonic(), rest + piece, 0
                while len(rest) - at >= 4:
                    size = int.from_bytes(rest[at:at + 4], "big")
                    if len(rest) - at - 4 < size:
                        break
                    self.take(self.PATTERN.search(rest, at + 4, at + 4 + min(300, size)), now)
                    at += 4 + size
                rest = rest[at:]
            if not self.ended:
                self.watch = self.again()

    def take(self, found, now):
        if found:
            (self.came if found[1] == b"ADDED" else self.bound).setdefault(found[2].decode(), now)
            self.since = found[4][:found[3][0]].decode()

    def until(self, count, patience, program):
        def done():
            assert not program or program.running(), f"the scheduler ended: {program.tail(5)}"
            return len(self.bound) >= count
        wait_for(f"{count} pods are bound", done, patience, pause=0.02)

    def end(self):
        self.ended = True
        self.watch.close()
        self.thread.join()


class Costs:
    """CPU time of the API server and etcd since the start."""

    def __init__(self, plane):
        self.plane = plane
        self.before = self.now()

    def now(self):
        return self.plane.api.cpu(), self.plane.etcd.cpu()

    def since(self):
        return [now - before for now, before in zip(self.now(), self.before)]


class Bench:
    """One size of cluster."""

    def __init__(self, plane, nodes, options):
        self.plane, self.nodes, self.options = plane, nodes, options

    def load(self, requests, per_second=0, connections=None, check=True):
        """Sends requests (method, path, body) and returns the measurements."""
        text = "".join(f"{method} {path} {json.dumps(body, separators=(',', ':'))}\n"
                       for method, path, body in requests)
        done = subprocess.run([LOAD, self.plane.url, self.plane.work / "ca.crt", ADMIN,
                               str(connections or self.options.connections),
                               str(per_second)], input=text, stdout=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 0 or not check, "requests failed"
        return json.loads(done.stdout)

    def make_nodes(self):
        self.load([("POST", collection("Node"), node(number)) for number in range(self.nodes)])

    def make_pods(self, count, per_second=0, every=SEEN):
        return self.load([("POST", PODS, pod(f"load-{number}", seen=(number + 1) % every == 0))
                          for number in range(count)], per_second)

    def clear(self, *kinds):
        for path in kinds or (PODS, collection("Event", "default")):
            wait_for(f"{path} is empty",
                     lambda at=path: self.plane.admin.must("DELETE", at, {"gracePeriodSeconds": 0}) and
                     not self.plane.admin.must("GET", at + "?limit=1")["items"], patience=300)

    def ceiling(self, events):
        self.make_pods(self.options.pods)
        requests = []
        for number in range(self.options.pods):
            name, on = f"load-{number}", f"node-{number % self.nodes}"
            requests.append(("POST", f"{PODS}/{name}/binding", binding(name, on)))
            if events:
                requests.append(("POST", "/apis/events.k8s.io/v1/namespaces/default/events", event(name, on)))
        watcher, costs = Watcher(self.plane), Costs(self.plane)
        took = self.load(requests)
        server, etcd = costs.since()
        begin, end = self.times(watcher)
        watcher.end()
        self.clear()
        return {"per_second": self.per_second(begin, end), **self.per_pod(took["cpu_seconds"], server, etcd)}

    def times(self, watcher, program=None):
        """Returns when the first and the last watched pod was bound; the end is later if other pods are bound later."""
        watcher.until(self.options.pods // SEEN, self.options.patience, program)
        begin, end = min(watcher.bound.values()), max(watcher.bound.values())
        while self.plane.admin.must("GET", f"{PODS}?fieldSelector=spec.nodeName%3D&limit=1")["items"]:
            time.sleep(0.01)
            end = time.monotonic()
        return begin, end

    def per_second(self, begin, end):
        return (self.options.pods - SEEN) / (end - begin)

    def per_pod(self, *seconds):
        return dict(zip(("cpu_us", "server_us", "etcd_us"), (each / self.options.pods * 1e6 for each in seconds)))

    def start(self, who, events):
        if who == "peer":
            return self.plane.peer(NAME)
        return self.plane.run("berth-kube", [BERTH, "--kubeconfig", self.plane.kubeconfig(), "--scheduler-name", NAME,
                                             *([] if events else ["--events=off"])])

    @staticmethod
    def settled(program):
        """Returns the CPU time of a program once it is idle."""
        last, since = program.cpu(), time.monotonic()
        while time.monotonic() - since < SETTLED:
            time.sleep(0.1)
            if program.cpu() - last > 0.02:
                last, since = program.cpu(), time.monotonic()
        return program.cpu()

    def events_written(self):
        """Returns the number of Events and the time of the last one, once no more are written."""
        count, last = -1, time.monotonic()
        while time.monotonic() - last < SETTLED and count < self.options.pods:
            answer = self.plane.admin.must("GET", collection("Event", "default") + "?limit=1")
            now = len(answer["items"]) + answer["metadata"].get("remainingItemCount", 0)
            if now != count:
                count, last = now, time.monotonic()
            time.sleep(0.05)
        return count, last

    def burst(self, who, events):
        """Pods wait already when the scheduler starts."""
        start = self.start_costs(who, events)
        self.make_pods(self.options.pods)
        watcher, costs = Watcher(self.plane), Costs(self.plane)
        program = self.start(who, events)
        begin, end = self.times(watcher, program)
        found = {}
        if events:  # the end includes the last Event
            found["events_written"], last = self.events_written()
            end = max(end, last) if found["events_written"] else end
        server = costs.since()
        cpu = [self.settled(program), *server]
        found.update(per_second=self.per_second(begin, end), memory_mb=program.memory("VmHWM") / 1e6,
                     **self.per_pod(*(all_of_it - at_start for all_of_it, at_start in zip(cpu, start))))
        watcher.end()
        self.plane.leave(program)
        self.clear()
        return found

    def start_costs(self, who, events):
        """Returns the CPU time of a start without work: of the scheduler, the API server and etcd."""
        costs = Costs(self.plane)
        idle = self.start(who, events)
        cpu = [self.settled(idle), *costs.since()]
        self.plane.leave(idle)
        return cpu

    def arriving(self, who, events):
        """Pods arrive one after another."""
        program = self.start(who, events)
        self.settled(program)
        watcher = Watcher(self.plane)
        count = self.options.rate * self.options.seconds
        self.make_pods(count, self.options.rate, every=1)
        watcher.until(count, self.options.patience, program)
        waits = sorted((watcher.bound[name] - watcher.came[name]) * 1e3 for name in watcher.bound)
        watcher.end()
        self.plane.leave(program)
        self.clear()
        return {"p50_ms": statistics.median(waits), "p99_ms": waits[int(len(waits) * 0.99)]}

    def held(self, who):
        """Measures memory and speed with many bound pods."""
        self.load([("POST", PODS, pod(f"held-{number}", f"node-{number % self.nodes}"))
                   for number in range(self.options.held)])
        self.make_pods(self.options.pods)
        watcher = Watcher(self.plane)
        program = self.start(who, True)
        begin, end = self.times(watcher, program)
        found = {"memory_mb": program.memory("VmHWM") / 1e6, "per_second": self.per_second(begin, end)}
        watcher.end()
        self.plane.leave(program)
        self.clear()
        return found


def cell(value, form):
    return "-" if value is None else format(value, form)


def show(rows):
    print(f"\n{'nodes':>6} {'who':<8} {'events':<6} {'pods/s':>8} {'CPU us/pod':>11} {'server':>7} {'etcd':>6} "
          f"{'RSS MB':>7} {'p50 ms':>8} {'p99 ms':>8} {'written':>8}")
    for row in rows:
        print(f"{row['nodes']:>6} {row['who']:<8} {row['events']:<6} {cell(row.get('per_second'), '8.0f'):>8} "
              f"{cell(row.get('cpu_us'), '11.0f'):>11} {cell(row.get('server_us'), '7.0f'):>7} "
              f"{cell(row.get('etcd_us'), '6.0f'):>6} {cell(row.get('memory_mb'), '7.0f'):>7} "
              f"{cell(row.get('p50_ms'), '8.1f'):>8} {cell(row.get('p99_ms'), '8.1f'):>8} "
              f"{cell(row.get('events_written'), 'd'):>8}")


def middle(rounds):
    """Returns one row of several, with the median of each number."""
    return {key: statistics.median(row[key] for row in rounds) if isinstance(value, float) else value
            for key, value in rounds[0].items()}


def goals(found):
    """Prints whether berth-kube meets its goals. found: the rows of all rounds by (nodes, who, events)."""
    results = []
    for (nodes, who, events), rounds in found.items():
        if who != "berth":
            continue
        row = middle(rounds)
        ceilings, peer = found.get((nodes, "ceiling", events)), found.get((nodes, "peer", "yes"))
        if ceilings:
            shares = [ours["per_second"] / most["per_second"] * 100 for ours, most in zip(rounds, ceilings)]
            total = (statistics.harmonic_mean([r["per_second"] for r in rounds]) /
                     statistics.harmonic_mean([r["per_second"] for r in ceilings]))
            results.append((f"{nodes} nodes, events {events}: at least 95 % of the ceiling "
                            f"({min(shares):.0f} to {max(shares):.0f} % in {len(shares)} rounds, "
                            f"{total * 100:.1f} % of the time of all)",
                            statistics.median(shares), "%", statistics.median(shares) >= 95))
        if peer and "cpu_us" in row:
            results.append((f"{nodes} nodes, events {events}: at most a tenth of kube-scheduler's CPU per pod",
                           row["cpu_us"] / peer[0]["cpu_us"] * 100, "%", row["cpu_us"] <= peer[0]["cpu_us"] / 10))
        if "p50_ms" in row:
            results.append((f"{nodes} nodes, events {events}: pods that arrive are bound within 15 ms (p50)",
                            row["p50_ms"], "ms",
                           row["p50_ms"] < 15))
        if events == "held":
            results.append((f"{nodes} nodes, many pods held: under 100 MB", row["memory_mb"], "MB",
                            row["memory_mb"] < 100))
    for words, value, unit, good in results:
        print(f"{'met   ' if good else 'MISSED'} {words}: {value:.1f} {unit}")


def measure(plane, nodes, who, options):
    """Yields the rows of one size of cluster."""
    bench = Bench(plane, nodes, options)
    bench.make_nodes()
    for number in range(options.rounds):
        for events in ("no", "yes"):
            for name in who if number % 2 == 0 else reversed(who):
                if name == "peer" and (number or events == "no"):
                    continue  # kube-scheduler always writes Events
                row = {"nodes": nodes, "who": name, "events": events}
                row.update(bench.ceiling(events == "yes") if name == "ceiling" else bench.burst(name, events == "yes"))
                if options.rate and name != "ceiling" and events == "yes":
                    row.update(bench.arriving(name, True))
                yield row
    if options.held and nodes == max(options.nodes):
        for name in who:
            if name != "ceiling":
                yield {"nodes": nodes, "who": name, "events": "held", **bench.held(name)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", default="100,1000,5000", type=lambda text: [int(size) for size in text.split(",")])
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--who", default="ceiling,peer,berth")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=400, help="pods per second that arrive; 0: none do")
    parser.add_argument("--seconds", type=int, default=10, help="for how long they arrive")
    parser.add_argument("--held", type=int, default=0, help="pods already bound on the largest cluster, for memory")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--patience", type=int, default=300)
    parser.add_argument("--json", help="also write the rows to this file")
    options = parser.parse_args()
    who = [name for name in options.who.split(",") if name != "berth" or BERTH.exists()]
    if not LOAD.exists():
        sys.exit(f"bench.py: there is no {LOAD}; `make bench-kube` builds it")
    if "berth" in options.who and "berth" not in who:
        print(f"There is no {BERTH}: berth-kube is left out.")
    print(f"Load before the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    found = {}
    for nodes in options.nodes:
        with ControlPlane(["--delete-collection-workers", "8"]) as plane:
            for row in measure(plane, nodes, who, options):
                found.setdefault((nodes, row["who"], row["events"]), []).append(row)
                print(json.dumps(row), flush=True)
    show([middle(rounds) for rounds in found.values()])
    goals(found)
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(sum(found.values(), []), indent=1) + "\n")


if __name__ == "__main__":
    main()
