"""Kills berth-kube and the API server while pods come and go: every pod is bound once, and no node ever holds more than
it has.

    rounds.py [--rounds 100] [--api 20] [--seed 1]

Some of the rounds kill the API server (which takes seconds to return), the others berth-kube. At the end there are two
instances: the leader is killed, and the other continues.
"""
import argparse
import os
import pathlib
import random
import sys
import time

from client import Follower, Refused, wait_for
from control_plane import ControlPlane
import objects

BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", "build/gcc"))
BERTH = BUILD / "src/kube/berth-kube"
NAME = "rounds"
NODES, NODE_CPU = 10, 8  # cores of each node
SIZES = (1, 2, 3)
# A killed instance is followed by one with another identity, which waits until the lease expires.
SHORT_LEASE = ["--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s",
               "--leader-elect-retry-period=500ms"]
# However pods are distributed, some node has 3 free cores while fewer than 6 are used on average.
CORES_MOST = NODES * (NODE_CPU - max(SIZES) + 1)


class PodChecker:
    """Checks every change of every pod."""

    def __init__(self):
        self.where, self.used, self.faults, self.bound = {}, {}, [], 0

    def heard(self, change, pod):
        if pod["kind"] != "Pod":
            return
        uid, node, name = pod["metadata"]["uid"], pod["spec"].get("nodeName"), pod["metadata"]["name"]
        cpu = int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
        before = self.where.get(uid)
        if change == "DELETED":
            if before:
                self.used[before] -= cpu
            self.where.pop(uid, None)
        elif node and not before:
            self.where[uid] = node
            self.bound += 1
            self.used[node] = self.used.get(node, 0) + cpu
            if self.used[node] > NODE_CPU:
                self.faults.append(f"{node} holds {self.used[node]} cores of {NODE_CPU} once {name} is on it")
        elif before and node != before:
            self.faults.append(f"{name} was on {before}, and is on {node}")


class Rounds:
    """A cluster, its pods, and what is killed."""

    def __init__(self, plane, seed):
        self.plane, self.rng, self.made = plane, random.Random(seed), 0
        self.checker = PodChecker()
        plane.admin.create_all([objects.node(f"n{number}", cpu=str(NODE_CPU)) for number in range(NODES)])
        self.follower = Follower(plane.admin, ("Pod", "Node"), self.checker.heard)
        self.berth = self.start("berth-kube")

    def start(self, name, *options):
        return self.plane.run(name,
                              [BERTH, "--kubeconfig", self.plane.kubeconfig(), "--scheduler-name", NAME, *SHORT_LEASE,
                               *options])

    def unbound(self):
        return [pod for pod in self.follower.list("Pod") if not pod["spec"].get("nodeName")]

    def come_and_go(self):
        """Adds some pods, and deletes others to leave room for all; adds none if too many still wait."""
        pods = [objects.pod(f"p{self.made + number}", cpu=str(self.rng.choice(SIZES)), scheduler=NAME)
                for number in range(self.rng.randint(3, 8))]
        there = self.follower.list("Pod")
        total = sum(map(self.cpu, there + pods))
        held = [pod for pod in there if pod["spec"].get("nodeName")]
        self.rng.shuffle(held)
        while total > CORES_MOST and held:
            total -= self.cpu(held[-1])
            self.plane.admin.delete(held.pop())
        if total <= CORES_MOST:
            self.made += len(pods)
            self.plane.admin.create_all(pods)

    def kill_berth(self):
        self.berth.kill()
        self.plane.leave(self.berth)
        self.berth = self.start("berth-kube")

    def kill_api(self):
        self.plane.kill_api()
        self.plane.start_api()

    def run(self, rounds, api):
        kinds = [self.kill_api] * api + [self.kill_berth] * (rounds - api)
        self.rng.shuffle(kinds)
        for number, kill in enumerate(kinds):
            self.come_and_go()
            time.sleep(self.rng.random() * 0.4)
            kill()
            assert self.berth.running(), f"berth-kube ended by itself: {self.berth.tail(5)}"
            if number % 10 == 9:
                self.settle()

    def settle(self):
        def all_bound():
            assert not self.checker.faults, self.checker.faults
            return not self.unbound() and self.checker.bound >= self.made
        try:
            wait_for("every pod is bound", all_bound)
        except AssertionError as error:
            left = [(pod["metadata"]["name"], self.cpu(pod),
                     [c.get("message") for c in pod.get("status", {}).get("conditions", [])])
                    for pod in self.unbound()]
            raise AssertionError(f"{error}; {self.checker.bound} of {self.made} were; cores used: {self.truth()}; "
                                 f"left: {left}") from error

    @staticmethod
    def cpu(pod):
        return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    def truth(self):
        """Returns the used cores per node, as the API server has them now."""
        used = {f"n{number}": 0 for number in range(NODES)}
        for pod in self.plane.admin.list("Pod"):
            if pod["spec"].get("nodeName"):
                used[pod["spec"]["nodeName"]] += self.cpu(pod)
        return used

    def two(self):
        """Returns the seconds from the leader's death until the other instance has bound a pod."""
        other = self.start("other")
        time.sleep(1)  # the other instance waits for the lease by now; if not, the test only takes longer
        self.come_and_go()
        self.settle()
        self.berth.kill()
        begin = time.monotonic()
        self.come_and_go()
        self.settle()
        took = time.monotonic() - begin
        self.plane.leave(self.berth)
        assert other.running(), other.tail(5)
        return took


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--api", type=int, default=20, help="of these, how many kill the API server")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if not BERTH.exists():
        print(f"skip: there is no {BERTH}")
        sys.exit(77)
    with ControlPlane() as plane:
        rounds = Rounds(plane, options.seed)
        try:
            rounds.run(options.rounds, options.api)
            rounds.settle()
            print(f"ok 1 - {options.rounds} kills, {options.api} of the API server, {rounds.made} pods, "
                  f"seed {options.seed}", flush=True)
            print(f"ok 2 - the other took over, pods were bound again after {rounds.two():.1f} s")
            print("1..2")
        except (AssertionError, Refused):
            print(f"not ok - seed {options.seed}")
            raise
        finally:
            rounds.follower.end()


if __name__ == "__main__":
    main()
