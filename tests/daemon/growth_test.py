"""Cases of growth_test.sh: tables of a real berthd that requests can grow. Each grows to its bound or over several
doublings; then berthd is killed and restarted.

BERTH_UNDER is a command that runs berthd, such as "valgrind -q --error-exitcode=9". Standard library only; prints TAP.
"""
import os
import shlex
import signal

from agent_kit import BERTHD, Cluster, case, main, skip_unless, wait_for

BATCH = 50
MANY = int(os.environ.get("BERTH_GROWTH", "300"))
# Kinds without a bound below MANY: the path, and a function that makes the i-th object.
KINDS = {
    "groups": lambda i: {"id": f"g{i}"},
    "users": lambda i: {"id": f"u{i}", "group": f"g{i}"},
    "queues": lambda i: {"id": f"q{i}", "quota": {"limits": {"cpu": str(i + 1)}}},
    "roles": lambda i: {"id": f"l{i}", "permissions": {"read": "own"}},
    "nodes": lambda i: {"id": f"m{i}", "allocatable": {"cpu": "1", "memory": "1Gi"}, "labels": {f"k{i}": "x"}},
    "domains": lambda i: {"id": f"o{i}", "nodes": [f"m{i}"]},
    "volumes": lambda i: {"id": f"d{i}"},
    "secrets": lambda i: {"id": f"s{i}", "data": {"k": "x"}},
    "crons": lambda i: {"id": f"c{i}", "schedule": "0 0 1 1 *", "job": {"command": ["/bin/true"], "name": "c"}},
    "apps": lambda i: {"name": f"w{i}", "command": ["/bin/true"], "resources": {"cpu": "1m"}},
    "jobs": lambda i: {"name": f"j{i}", "command": ["/bin/true"], "resources": {"cpu": "1m"}},
    "windows": lambda i: {"id": f"t{i}", "start": "2026-01-01T00:00:00Z", "end": "2036-01-01T00:00:00Z",
                          "nodes": [f"m{i}"], "maintenance": True},
    "policies": lambda i: {"id": f"p{i}"},
    "profiles": lambda i: {"id": f"f{i}"},
}


def under():
    return Cluster(prefix=shlex.split(os.environ.get("BERTH_UNDER", "")))


def counted(cluster, kind):
    return len(cluster.get(f"/v1/{kind}?limit=1000")["items"])


def bad_words(cluster):
    return [line for line in cluster.daemon.log if "state.broken" in line or "plan.failed" in line]


def grown(cluster, kind, make):
    """Returns how many of MANY objects were accepted: by transactions, then one by one up to the first refused one."""
    singular = {"policies": "policy"}.get(kind, kind[:-1])
    for first in range(0, MANY, BATCH):
        changes = [{"op": "put", "kind": singular, "object": make(i),
                    **({"id": make(i)["id"]} if "id" in make(i) else {})}
                   for i in range(first, min(first + BATCH, MANY))]
        status, answer = cluster.ask("POST", "/v1/txn", {"changes": changes})
        if status == 200:
            continue
        assert 400 <= status < 500 and answer["error"]["message"], f"{kind}: {status} {answer}"
        for i in range(first, MANY):
            status, answer = cluster.ask("POST", f"/v1/{kind}", make(i))
            if status != 201:
                assert 400 <= status < 500, f"{kind} {i}: {status} {answer}"
                print(f"# {kind}: {i} and no more: {answer['error']['message']}")
                return i
    return MANY


@case
def every_kind_grows_to_its_bound_and_survives_a_kill():
    """Refusals have a status of 4xx and a message; accepted objects exist after a kill."""
    with under() as cluster:
        kept = {}
        for kind, make in KINDS.items():
            kept[kind] = counted(cluster, kind) + grown(cluster, kind, make)
        status, answer = cluster.ask("GET", "/readyz")
        assert status == 200, answer
        assert kept["windows"] == min(64, MANY), kept
        assert not bad_words(cluster)
        cluster.daemon.end(signal.SIGKILL)
        cluster.start()
        ident = cluster.ask("POST", "/v1/apps",
                            {"name": "placed", "command": ["/bin/true"], "resources": {"cpu": "1m"}})[1]["id"]
        wait_for("a plan places it", lambda: cluster.instances(ident) or bad_words(cluster))
        assert not bad_words(cluster)
        got = {kind: counted(cluster, kind) for kind in KINDS}
        got["apps"] -= 1
        assert got == kept, f"{got}, not {kept}"
        status = cluster.daemon.end()
        assert status == 0, f"{status}: {cluster.daemon.log[-30:]}"


@case
def resources_grow_to_their_bound_through_every_kind():
    with under() as cluster:
        ways = [lambda i: ("PUT", f"/v1/resources/r{i}", {"kind": "cumulative", "period": "30d"}),
                lambda i: ("PUT", f"/v1/nodes/m{i}", {"allocatable": {"cpu": "1", f"r{i}": "1"}}),
                lambda i: ("POST", "/v1/jobs",
                           {"name": "j", "command": ["/bin/true"], "hold": True, "resources": {f"r{i}": "1"}}),
                lambda i: ("PUT", f"/v1/queues/q{i}", {"quota": {"limits": {f"r{i}": "1"}}})]
        for i in range(253):
            status, answer = cluster.ask(*ways[i % len(ways)](i))
            assert status == 201, f"{i}: {status} {answer}"
        for way in ways:
            status, answer = cluster.ask(*way(300))
            assert status == 400 and "256 distinct resources" in answer["error"]["message"], f"{status} {answer}"
        cluster.daemon.end(signal.SIGKILL)
        cluster.start()
        status, answer = cluster.ask(*ways[0](0))
        assert status == 200, answer
        status = cluster.daemon.end()
        assert status == 0, f"{status}: {cluster.daemon.log[-30:]}"


skip_unless(BERTHD)
main()
