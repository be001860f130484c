"""The corpus: small clusters with pods to be scheduled, written for each feature, and mixes made from seeds.

A case is {"name", "before", "pending", "contended"}: existing objects, pods that arrive then, in order, and whether
they compete (then a scheduler may choose which of them it places). A name that begins with @ gets the number of the
case from compare.py. "delete": true in an object of "before" means that it is being deleted and stays in that state.

To add a case: a line in one of the functions below; then `make kube-expected` runs kube-scheduler again.
"""
import hashlib
import json
import random

import objects
from corpus_mixes import mixes
from corpus_volumes import volume_cases
from objects import (HOST, ZONE, case, container, expression, expressions, fields, held, node_affinity, pod_affinity,
                     pod_term, port, spread, three)

# Objects of every cluster, made once before the first case.
STANDING = [
    objects.namespace("blue", {"team": "blue", "env": "prod"}),
    objects.namespace("red", {"team": "red", "env": "test"}), objects.namespace("green"),
    objects.priority_class("low", 10), objects.priority_class("middle", 100), objects.priority_class("high", 1000),
    objects.priority_class("high-never", 1000, "Never"),
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "heavy"}, "handler": "heavy",
     "overhead": {"podFixed": {"cpu": "500m", "memory": "256Mi"}}},
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gpu-only"}, "handler": "gpu",
     "scheduling": {"nodeSelector": {"disk": "ssd"}}},
]


def names():
    yield case("unschedulable: all are", three(unschedulable=True), [objects.pod("@p", cpu="1")])
    yield case("unschedulable: one is not", three(unschedulable=True) + [objects.node("@d")],
               [objects.pod("@p", cpu="1")])
    tolerated = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]
    yield case("unschedulable: tolerated", three(unschedulable=True),
               [objects.pod("@p", cpu="1", tolerations=tolerated)])
    yield case("no nodes", [], [objects.pod("@p", cpu="1")])
    yield case("gates: one", three(), [objects.pod("@p", cpu="1", schedulingGates=[{"name": "tests/wait"}])])
    yield case("gates: one waits, the other not", three(), [
        objects.pod("@p", cpu="1", schedulingGates=[{"name": "tests/wait"}, {"name": "tests/more"}]),
        objects.pod("@q", cpu="1")])


TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
# label, taints of every node, tolerations
TAINTS = [
    ("none tolerated", [TAINT], []),
    ("equal", [TAINT], [{"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}]),
    ("equal by default", [TAINT], [{"key": "dedicated", "value": "ml"}]),
    ("another value", [TAINT], [{"key": "dedicated", "value": "web", "effect": "NoSchedule"}]),
    ("exists", [TAINT], [{"key": "dedicated", "operator": "Exists"}]),
    ("another effect", [TAINT], [{"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}]),
    ("everything", [TAINT, {"key": "x", "effect": "NoExecute"}], [{"operator": "Exists"}]),
    ("everything of an effect", [TAINT, {"key": "x", "effect": "NoExecute"}],
     [{"operator": "Exists", "effect": "NoSchedule"}]),
    ("one of two", [TAINT, {"key": "x", "value": "y", "effect": "NoSchedule"}],
     [{"key": "dedicated", "operator": "Exists"}]),
    ("both", [TAINT, {"key": "x", "value": "y", "effect": "NoSchedule"}],
     [{"key": "dedicated", "operator": "Exists"}, {"key": "x", "value": "y"}]),
    ("no execute", [{"key": "x", "value": "y", "effect": "NoExecute"}], []),
    ("no execute for a while", [{"key": "x", "value": "y", "effect": "NoExecute"}],
     [{"key": "x", "value": "y", "effect": "NoExecute", "tolerationSeconds": 60}]),
    ("prefer not", [{"key": "x", "value": "y", "effect": "PreferNoSchedule"}], []),
    ("empty value", [{"key": "x", "effect": "NoSchedule"}],
     [{"key": "x", "operator": "Equal", "effect": "NoSchedule"}]),
    ("empty value against one", [TAINT], [{"key": "dedicated", "operator": "Equal", "effect": "NoSchedule"}]),
    ("not ready", [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], []),
    ("not ready, tolerated for daemons", [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], []),
]


def taints():
    for label, found, tolerations in TAINTS:
        yield case(f"taint: {label}", three(taints=found), [objects.pod("@p", cpu="1", tolerations=tolerations)])
        yield case(f"taint: {label}, one node free but too small",
                   three(taints=found) + [objects.node("@d", cpu="500m")],
                   [objects.pod("@p", cpu="1", tolerations=tolerations)])


# label, affinity
AFFINITIES = [
    ("in", node_affinity(expressions(expression("disk", "In", "ssd", "nvme")))),
    ("in, none", node_affinity(expressions(expression("disk", "In", "tape")))),
    ("in, of a missing key", node_affinity(expressions(expression("nokey", "In", "ssd")))),
    ("not in", node_affinity(expressions(expression("disk", "NotIn", "ssd", "hdd")))),
    ("not in, all", node_affinity(expressions(expression(ZONE, "NotIn", "z1", "z2")))),
    ("exists", node_affinity(expressions(expression("disk", "Exists")))),
    ("exists, none", node_affinity(expressions(expression("nokey", "Exists")))),
    ("does not exist", node_affinity(expressions(expression("disk", "DoesNotExist")))),
    ("does not exist, all", node_affinity(expressions(expression("gen", "DoesNotExist")))),
    ("greater", node_affinity(expressions(expression("gen", "Gt", "5")))),
    ("greater, none", node_affinity(expressions(expression("gen", "Gt", "10")))),
    ("less", node_affinity(expressions(expression("gen", "Lt", "5")))),
    ("less, none", node_affinity(expressions(expression("gen", "Lt", "1")))),
    ("greater than a text", node_affinity(expressions(expression("disk", "Gt", "3")))),
    ("two expressions", node_affinity(expressions(expression("disk", "Exists"), expression(ZONE, "In", "z2")))),
    ("two expressions, both", node_affinity(expressions(expression("disk", "Exists"), expression("gen", "Gt", "2")))),
    ("two terms", node_affinity(expressions(expression("disk", "In", "tape")),
                                expressions(expression("gen", "Gt", "9")))),
    ("two terms, none",
     node_affinity(expressions(expression("disk", "In", "tape")), expressions(expression("gen", "Gt", "90")))),
    ("an empty term", node_affinity({})),
    ("an empty term beside one", node_affinity({}, expressions(expression("disk", "Exists")))),
    ("field in", node_affinity(fields("In", "@b"))),
    ("field in, no such node", node_affinity(fields("In", "@zzz"))),
    ("field not in", node_affinity(fields("NotIn", "@b"))),
    ("field and expression", node_affinity({**fields("In", "@b"), **expressions(expression("disk", "In", "hdd"))})),
    ("field and expression, none",
     node_affinity({**fields("In", "@b"), **expressions(expression("disk", "In", "ssd"))})),
    ("field of one term, expression of another",
     node_affinity(fields("In", "@b"), expressions(expression("disk", "In", "ssd")))),
    ("fields of two terms", node_affinity(fields("In", "@b"), fields("In", "@c"))),
    ("only preferred",
     node_affinity(preferred=[{"weight": 5, "preference": expressions(expression("disk", "In", "tape"))}])),
    ("preferred of an empty term", node_affinity(preferred=[{"weight": 5, "preference": {}}])),
]


def affinities():
    for label, affinity in AFFINITIES:
        yield case(f"node affinity: {label}", three(), [objects.pod("@p", cpu="1", affinity=affinity)])
    yield case("selector: one", three(), [objects.pod("@p", cpu="1", nodeSelector={"disk": "hdd"})])
    yield case("selector: none", three(), [objects.pod("@p", cpu="1", nodeSelector={"disk": "tape"})])
    yield case("selector: two labels", three(), [objects.pod("@p", cpu="1", nodeSelector={"disk": "hdd", ZONE: "z2"})])
    yield case("selector: by hostname", three(), [objects.pod("@p", cpu="1", nodeSelector={HOST: "@c"})])
    both = node_affinity(expressions(expression("gen", "Gt", "2")))
    yield case("selector and affinity", three(),
               [objects.pod("@p", cpu="1", nodeSelector={"disk": "hdd"}, affinity=both)])
    yield case("selector and affinity, none", three(),
               [objects.pod("@p", cpu="1", nodeSelector={"disk": "ssd"}, affinity=both)])
    yield case("selector: of a runtime class", three(), [objects.pod("@p", cpu="1", runtimeClassName="gpu-only")])


# label, ports held on the only node, ports requested
PORTS = [
    ("free", [port(80)], [port(81)]),
    ("taken", [port(80)], [port(80)]),
    ("another protocol", [port(80)], [port(80, protocol="UDP")]),
    ("the same protocol", [port(53, protocol="UDP")], [port(53, protocol="UDP")]),
    ("another address", [port(80, "10.0.0.1")], [port(80, "10.0.0.2")]),
    ("the same address", [port(80, "10.0.0.1")], [port(80, "10.0.0.1")]),
    ("all addresses against one", [port(80)], [port(80, "10.0.0.1")]),
    ("one address against all", [port(80, "10.0.0.1")], [port(80)]),
    ("zeros are all", [port(80, "0.0.0.0")], [port(80, "127.0.0.1")]),
    ("another address, another protocol", [port(80, "10.0.0.1")], [port(80, "10.0.0.1", "SCTP")]),
    ("one of two", [port(80)], [port(8080), port(80)]),
]


def ports():
    for label, held, wanted in PORTS:
        yield case(f"port: {label}",
                   [objects.node("@a"), objects.pod("@held", containers=[container(ports=held)], on="@a")],
                   [objects.pod("@p", containers=[container(ports=wanted)])])
    yield case("port: host network",
               [objects.node("@a"), objects.pod("@held", containers=[container(ports=[port(80)])], on="@a")],
               [objects.pod("@p", hostNetwork=True,
                            containers=[container(ports=[{"containerPort": 80, "hostPort": 80}])])])
    yield case("port: of an init container is free", [objects.node("@a"), objects.pod("@held", on="@a", initContainers=[
        container("i", ports=[port(80)])])], [objects.pod("@p", containers=[container(ports=[port(80)])])])
    yield case("port: of a sidecar is taken", [objects.node("@a"), objects.pod("@held", on="@a", initContainers=[
        container("i", ports=[port(80)], restart="Always")])],
               [objects.pod("@p", containers=[container(ports=[port(80)])])])
    yield case("port: two pods, two nodes", [objects.node("@a"), objects.node("@b")], [
        objects.pod(f"@p{i}", containers=[container(ports=[port(80)])]) for i in range(2)])
    yield case("port: three pods, two nodes", [objects.node("@a"), objects.node("@b")], [
        objects.pod(f"@p{i}", containers=[container(ports=[port(80)])]) for i in range(3)], True)


# label, resources of the only node, pod
SIZES = [
    ("exact", {"cpu": "2", "memory": "4Gi"}, {"cpu": "2", "memory": "4Gi"}),
    ("a milli more", {"cpu": "2"}, {"cpu": "2001m"}),
    ("a byte more", {"memory": "1Gi"}, {"memory": "1073741825"}),
    ("nothing asked", {"cpu": "0", "memory": "0"}, {}),
    ("nothing asked, no pod slot", {"pods": "0"}, {}),
    ("fractions", {"cpu": "1"}, {"cpu": "0.999"}),
    ("quantities of all kinds", {"memory": "1Gi"}, {"memory": "1000M"}),
    ("exponents", {"memory": "2e9"}, {"memory": "2000000000"}),
    ("storage, too much", {}, {"containers": [container(**{"ephemeral-storage": "101Gi"})]}),
    ("storage, fits", {}, {"containers": [container(**{"ephemeral-storage": "100Gi"})]}),
    ("two containers, sum fits", {"cpu": "2"}, {"containers": [container("c", cpu="1"), container("d", cpu="1")]}),
    ("two containers, sum does not", {"cpu": "2"},
     {"containers": [container("c", cpu="1"), container("d", cpu="1001m")]}),
    ("init container, the larger counts", {"cpu": "2"},
     {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="2")]}),
    ("init container, too large", {"cpu": "2"},
     {"containers": [container(cpu="1")], "initContainers": [container("i", cpu="3")]}),
    ("init containers are one after another", {"cpu": "2"}, {"containers": [container(cpu="1")],
                                                         "initContainers": [container("i", cpu="2"),
                                                                            container("j", cpu="2")]}),
    ("sidecar is added", {"cpu": "2"}, {"containers": [container(cpu="1500m")],
                                        "initContainers": [container("s", cpu="600m", restart="Always")]}),
    ("sidecar fits", {"cpu": "2"}, {"containers": [container(cpu="1500m")],
                                    "initContainers": [container("s", cpu="500m", restart="Always")]}),
    ("sidecar before an init container", {"cpu": "2"}, {"containers": [container(cpu="1")], "initContainers": [
        container("s", cpu="600m", restart="Always"), container("i", cpu="1500m")]}),
    ("sidecar after an init container", {"cpu": "2"}, {"containers": [container(cpu="1")], "initContainers": [
        container("i", cpu="1500m"), container("s", cpu="600m", restart="Always")]}),
    ("overhead fits", {"cpu": "2"}, {"cpu": "1500m", "runtimeClassName": "heavy"}),
    ("overhead does not", {"cpu": "2"}, {"cpu": "1501m", "runtimeClassName": "heavy"}),
    ("of the pod, larger than its containers", {"cpu": "2"},
     {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "3"}}}),
    ("of the pod, fits", {"cpu": "2"}, {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}}),
    ("of the pod, memory of the containers", {"memory": "2Gi"}, {"containers": [container(cpu="1", memory="3Gi")],
                                                                 "resources": {"requests": {"cpu": "2"}}}),
    ("of the pod and overhead", {"cpu": "2"},
     {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "1600m"}},
      "runtimeClassName": "heavy"}),
    ("limits are requests", {"cpu": "2"}, {"containers": [container(limits={"cpu": "3"})]}),
    ("gpu, fits", {"extra": {"nvidia.com/gpu": "2"}}, {"containers": [container(limits={"nvidia.com/gpu": "2"})]}),
    ("gpu, too many", {"extra": {"nvidia.com/gpu": "2"}}, {"containers": [container(limits={"nvidia.com/gpu": "3"})]}),
    ("gpu, none there", {}, {"containers": [container(limits={"nvidia.com/gpu": "1"})]}),
    ("gpu, none wanted", {"extra": {"nvidia.com/gpu": "0"}},
     {"containers": [container(limits={"nvidia.com/gpu": "0"})]}),
    ("gpu, zero of what is not there", {}, {"containers": [container(limits={"nvidia.com/gpu": "0"})]}),
    ("huge pages, fit", {"extra": {"hugepages-2Mi": "64Mi"}},
     {"containers": [container(memory="1Gi", cpu="1", limits={"hugepages-2Mi": "64Mi", "memory": "1Gi"})]}),
    ("huge pages, too many", {"extra": {"hugepages-2Mi": "64Mi"}},
     {"containers": [container(memory="1Gi", cpu="1", limits={"hugepages-2Mi": "66Mi", "memory": "1Gi"})]}),
    ("huge pages, of another size", {"extra": {"hugepages-2Mi": "64Mi"}},
     {"containers": [container(memory="1Gi", cpu="1", limits={"hugepages-1Gi": "1Gi", "memory": "1Gi"})]}),
]


def sizes():
    for label, there, wanted in SIZES:
        yield case(f"resources: {label}", [objects.node("@a", **there)], [objects.pod("@p", **wanted)])
    held = objects.pod("@held", cpu="1", memory="1Gi", on="@a")
    small = objects.node("@a", cpu="2", memory="2Gi", pods="2")
    yield case("resources: of a bound pod are taken", [small, held], [objects.pod("@p", cpu="1001m")])
    yield case("resources: the rest is free", [small, held], [objects.pod("@p", cpu="1", memory="1Gi")])
    yield case("resources: one pod slot is left", [small, held], [objects.pod("@p")])
    yield case("resources: no pod slot is left", [small, held, objects.pod("@more", on="@a")], [objects.pod("@p")])
    other = objects.pod("@held", cpu="2", on="@a", scheduler="another")
    yield case("resources: of another scheduler's pod are taken", [small, other], [objects.pod("@p", cpu="1")])
    for phase in ("Succeeded", "Failed", "Running"):
        yield case(f"resources: of a pod that is {phase}",
                   [small, {**objects.pod("@held", cpu="2", on="@a"), "status": {"phase": phase}}],
                   [objects.pod("@p", cpu="1")])
    leaving = {**objects.pod("@held", cpu="2", on="@a", terminationGracePeriodSeconds=3600), "delete": True}
    yield case("resources: of a pod that is being deleted are taken", [small, leaving], [objects.pod("@p", cpu="1")])
    over = objects.pod("@held", on="@a", containers=[container(cpu="3", memory="1Gi", limits={"nvidia.com/gpu": "1"})],
                       priorityClassName="low")
    yield case("resources: too much is held, of what is not asked for", [small, over],
               [objects.pod("@p", memory="1Gi")])
    yield case("resources: too much is held, of what is asked for", [small, over], [objects.pod("@p", cpu="1m")])
    yield case("resources: too much is held, nothing is asked for", [small, over], [objects.pod("@p")])
    yield case("resources: too much is held, more asked for than is there", [small, over],
               [objects.pod("@p", memory="2Gi")])
    yield case("preempt: one that holds too much", [small, over],
               [objects.pod("@p", cpu="1", priorityClassName="high")])
    yield case("preempt: not where too much stays",
               [small, over, {**over, "metadata": {**over["metadata"], "name": "@more"}, "spec": {
        **over["spec"], "priorityClassName": "high"}}], [objects.pod("@p", cpu="1", priorityClassName="middle")])
    yield case("resources: five of six fit", [objects.node("@a", cpu="3"), objects.node("@b", cpu="2")],
               [objects.pod(f"@p{i}", cpu="1") for i in range(6)], True)
    yield case("resources: slots", [objects.node("@a", pods="2"), objects.node("@b", pods="1")],
               [objects.pod(f"@p{i}") for i in range(5)], True)
    yield case("resources: gpus of two nodes", [objects.node(f"@{i}", extra={"nvidia.com/gpu": "4"}) for i in "ab"],
               [objects.pod(f"@p{i}", containers=[container(limits={"nvidia.com/gpu": str(n)})])
                for i, n in enumerate((2, 2, 4, 1, 1))], True)


def spreading():
    two = [held("@h0", "@a"), held("@h1", "@b")]
    mine = {"labels": {"app": "x"}, "cpu": "1"}

    def one(label, before, *constraints, nodes=None, contended=False, pods=1, **more):
        return case(f"spread: {label}", (nodes or three()) + before,
                    [objects.pod(f"@p{i}" if pods > 1 else "@p", topologySpreadConstraints=list(constraints),
                                 **{**mine, **more})
                     for i in range(pods)], contended)
    full = three()[:2] + [objects.node("@c", cpu="500m", labels={ZONE: "z2"})]
    yield one("the other zone", two, spread())
    yield one("the other zone is full", two, spread(), nodes=full)
    yield one("the other zone is full, soft", two, spread(hard=False), nodes=full)
    yield one("the other zone is full, more skew", two, spread(skew=3), nodes=full)
    yield one("the skew is just right", two, spread(skew=2), nodes=full)
    yield one("of others", [held("@h0", "@a", "y"), held("@h1", "@b", "y")], spread(), nodes=full)
    yield one("does not match itself", two, spread(), nodes=full, labels={"app": "other"})
    yield one("hosts", [held("@h0", "@a")], spread(HOST), nodes=full)
    yield one("hosts, all have one", [held("@h0", "@a"), held("@h1", "@b"), held("@h2", "@c")], spread(HOST))
    yield one("a node without the key", [held("@h0", "@a")], spread("rack"), nodes=three())
    yield one("another namespace does not count",
              [held("@h0", "@a", namespace="blue"), held("@h1", "@b", namespace="blue")], spread(), nodes=full)
    yield one("one that is being deleted does not count",
              [{**held("@h0", "@a", terminationGracePeriodSeconds=3600), "delete": True}], spread(HOST), nodes=full)
    yield one("too few domains", [held("@h0", "@a")], spread(minDomains=3), nodes=full)
    yield one("enough domains", [held("@h0", "@a")], spread(minDomains=2), nodes=full)
    yield one("too few domains, a fresh one", [held("@h0", "@a")], spread(minDomains=3))
    tainted = full[:2] + [objects.node("@c", labels={ZONE: "z2"}, taints=[TAINT])]
    yield one("taints are ignored", two, spread(), nodes=tainted)
    yield one("taints are honoured", two, spread(nodeTaintsPolicy="Honor"), nodes=tainted)
    selected = {"nodeSelector": {ZONE: "z1"}}
    yield one("selector is honoured", two, spread(), **selected)
    yield one("selector is ignored", two, spread(nodeAffinityPolicy="Ignore"), **selected)
    affinity = node_affinity(expressions(expression(ZONE, "In", "z1")))
    yield one("affinity is honoured", two, spread(), affinity=affinity)
    yield one("affinity is ignored", two, spread(nodeAffinityPolicy="Ignore"), affinity=affinity)
    versions = [held("@h0", "@a", labels={"v": "1"}), held("@h1", "@b", labels={"v": "1"})]
    yield one("keys: another version", versions, spread(matchLabelKeys=["v"]), nodes=full,
              labels={"app": "x", "v": "2"})
    yield one("keys: the same version", versions, spread(matchLabelKeys=["v"]), nodes=full,
              labels={"app": "x", "v": "1"})
    yield one("keys: no such label", versions, spread(matchLabelKeys=["w"]), nodes=full)
    yield one("two constraints", two, spread(), spread(HOST))
    yield one("two constraints, against each other", two + [held("@h2", "@c")], spread(), spread(HOST))
    yield one("expressions", two, spread(labelSelector={"matchExpressions": [expression("app", "In", "x", "y")]}),
              nodes=full)
    yield one("no selector", two, {**spread(), "labelSelector": None}, nodes=full)
    yield one("an empty selector", two, {**spread(), "labelSelector": {}}, nodes=full)
    yield one("many, hard", [], spread(), pods=6, contended=True)
    yield one("many, a small zone", [], spread(), nodes=full, pods=5, contended=True)
    yield one("many, hosts", [], spread(HOST), pods=5, nodes=three(cpu="2"), contended=True)
    yield one("many, soft", [], spread(hard=False), nodes=three(cpu="2"), pods=7, contended=True)


def companions():
    def one(label, before, affinity, nodes=None, pods=1, contended=False, **more):
        return case(f"pods: {label}", (nodes or three()) + before,
                    [objects.pod(f"@p{i}" if pods > 1 else "@p", affinity=affinity, **{"cpu": "1", **more})
                     for i in range(pods)], contended)
    blue, red = held("@h0", "@a", namespace="blue"), held("@h1", "@c", namespace="red")
    here = held("@h0", "@a")
    full = [objects.node("@a", cpu="500m", labels={ZONE: "z1"}), objects.node("@c", labels={ZONE: "z2"})]
    for anti in (False, True):
        word = "away from" if anti else "with"
        yield one(f"{word} x, by zone", [here], pod_affinity(pod_term(), anti=anti))
        yield one(f"{word} x, by zone, no room", [here], pod_affinity(pod_term(), anti=anti), nodes=full)
        yield one(f"{word} x, by host", [here], pod_affinity(pod_term(key=HOST), anti=anti))
        yield one(f"{word} x, none there", [], pod_affinity(pod_term(), anti=anti))
        yield one(f"{word} x, none there, like itself", [], pod_affinity(pod_term(), anti=anti), labels={"app": "x"})
        yield one(f"{word} x, no node has the key", [here], pod_affinity(pod_term(key="rack"), anti=anti))
        yield one(f"{word} x, soft", [here], pod_affinity(pod_term(), anti=anti, soft=True), nodes=full)
        yield one(f"{word} x, another namespace", [blue], pod_affinity(pod_term(), anti=anti), nodes=three()[:1])
        yield one(f"{word} x, namespace named", [blue], pod_affinity(pod_term(namespaces=["blue"]), anti=anti),
                  nodes=three()[:1])
        yield one(f"{word} x, namespace selected", [blue, red],
                  pod_affinity(pod_term(namespaceSelector={"matchLabels": {"team": "red"}}), anti=anti),
                  nodes=three()[:1])
        yield one(f"{word} x, namespace selected, other node", [blue, red],
                  pod_affinity(pod_term(namespaceSelector={"matchLabels": {"team": "red"}}), anti=anti), nodes=full)
        yield one(f"{word} x, all namespaces", [blue], pod_affinity(pod_term(namespaceSelector={}), anti=anti),
                  nodes=three()[:1])
        yield one(f"{word} x, named or selected", [blue, red], pod_affinity(
            pod_term(namespaces=["green"], namespaceSelector={"matchExpressions": [expression("env", "In", "prod")]}),
            anti=anti), nodes=three()[:1])
        yield one(f"{word} x and y, apart", [here, held("@h1", "@c", "y")],
                  pod_affinity(pod_term(), pod_term("y"), anti=anti))
        yield one(f"{word} x and y, one pod is both", [held("@h0", "@a", labels={"tier": "y"})], pod_affinity(
            pod_term(), {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"tier": "y"}}}, anti=anti),
                  nodes=three()[:1])
        yield one(f"{word} x and y, in one zone but two pods", [here, held("@h1", "@b", "y")],
                  pod_affinity(pod_term(), pod_term("y"), anti=anti))
        versions = [held("@h0", "@a", labels={"v": "1"})]
        only = three()[:2]
        yield one(f"{word} x of my version", versions, pod_affinity(pod_term(matchLabelKeys=["v"]), anti=anti),
                  nodes=only, labels={"app": "z", "v": "2"})
        yield one(f"{word} x of this version", versions, pod_affinity(pod_term(matchLabelKeys=["v"]), anti=anti),
                  nodes=only, labels={"app": "z", "v": "1"})
        yield one(f"{word} x of another version", versions, pod_affinity(pod_term(mismatchLabelKeys=["v"]), anti=anti),
                  nodes=only, labels={"app": "z", "v": "2"})
        yield one(f"{word} x, not of my version", versions, pod_affinity(pod_term(mismatchLabelKeys=["v"]), anti=anti),
                  nodes=only, labels={"app": "z", "v": "1"})
        yield one(f"{word} x, being deleted",
                  [{**held("@h0", "@a", terminationGracePeriodSeconds=3600), "delete": True}],
                  pod_affinity(pod_term(), anti=anti), nodes=only)
        yield one(f"{word} x, ended", [{**here, "status": {"phase": "Succeeded"}}], pod_affinity(pod_term(), anti=anti),
                  nodes=only)
        yield one(f"{word} anything", [here], pod_affinity({"topologyKey": ZONE, "labelSelector": {}}, anti=anti),
                  nodes=only)
        yield one(f"{word} nothing", [here], pod_affinity({"topologyKey": ZONE}, anti=anti), nodes=only)
        yield one(f"{word} what is not y", [here], pod_affinity(
            {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [expression("app", "NotIn", "y")]}}, anti=anti),
                  nodes=only)
        yield one(f"{word} each other", [], pod_affinity(pod_term(), anti=anti), labels={"app": "x"}, pods=4,
                  contended=True)
        yield one(f"{word} each other, by host", [], pod_affinity(pod_term(key=HOST), anti=anti), labels={"app": "x"},
                  pods=5, contended=True)
    shy = held("@h0", "@a", "shy", affinity=pod_affinity(pod_term(), anti=True))
    yield one("it is not wanted by one there", [shy], {}, labels={"app": "x"}, nodes=three()[:2])
    yield one("it is not wanted by one there, elsewhere", [shy], {}, labels={"app": "x"})
    yield one("it is not meant by one there", [shy], {}, labels={"app": "y"}, nodes=three()[:2])
    yield one("it is not wanted by one of another namespace",
              [held("@h0", "@a", "shy", namespace="blue",
                    affinity=pod_affinity(pod_term(namespaces=["default"]), anti=True))], {},
              labels={"app": "x"}, nodes=three()[:2])
    yield one("it is not wanted, softly",
              [held("@h0", "@a", "shy", affinity=pod_affinity(pod_term(), anti=True, soft=True))], {},
              labels={"app": "x"}, nodes=three()[:2])
    yield case("pods: x and those that follow it", three(), [
        objects.pod("@x", cpu="1", labels={"app": "x"}),
        *[objects.pod(f"@p{i}", cpu="1", affinity=pod_affinity(pod_term(key=HOST))) for i in range(2)]], True)


def budget(name, app, allowed):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
                       "observedGeneration": 1}}


def preemptions():
    full = [objects.node("@a", cpu="2"), objects.node("@b", cpu="2")]
    low = [objects.pod(f"@l{i}", cpu="2", on=f"@{on}", priorityClassName="low", labels={"app": on})
           for i, on in enumerate("ab")]

    def high(name="@p", cpu="2", **more):
        return objects.pod(name, **{"cpu": cpu, "priorityClassName": "high", **more})
    yield case("preempt: lower ones go", full + low, [high()])
    yield case("preempt: never", full + low, [high(priorityClassName="high-never")])
    yield case("preempt: not equals", full + low, [high(priorityClassName="low")])
    yield case("preempt: not higher ones",
               full + [objects.pod(f"@l{i}", cpu="2", on=f"@{i}", priorityClassName="high") for i in "ab"],
               [high(priorityClassName="middle")])
    yield case("preempt: it would not help", full + low, [high(cpu="3")])
    yield case("preempt: a selector excludes it", full + low, [high(nodeSelector={"disk": "ssd"})])
    yield case("preempt: on the node that is selected", full + low, [high(nodeSelector={HOST: "@b"})])
    yield case("preempt: no budget left for one", full + low + [budget("@pdb", "a", 0)], [high()])
    yield case("preempt: no budget left for any", full + low + [budget("@pdb", "a", 0), budget("@pdb2", "b", 0)],
               [high()])
    yield case("preempt: another scheduler's pod",
               full + [{**pod, "spec": {**pod["spec"], "schedulerName": "another"}} for pod in low], [high()])
    yield case("preempt: the ports",
               [objects.node("@a"),
                objects.pod("@l", on="@a", priorityClassName="low", containers=[container(ports=[port(80)])])],
               [high(containers=[container(ports=[port(80)])])])
    yield case("preempt: the shy",
               [objects.node("@a"),
                held("@l", "@a", "shy", priorityClassName="low", affinity=pod_affinity(pod_term(key=HOST), anti=True))],
               [high(labels={"app": "x"})])
    yield case("preempt: those it avoids", [objects.node("@a"), held("@l", "@a", priorityClassName="low")],
               [high(affinity=pod_affinity(pod_term(key=HOST), anti=True))])
    small = [objects.pod(f"@l{i}", cpu="500m", on="@a", priorityClassName="low") for i in range(4)]
    yield case("preempt: as few as needed", full[:1] + small, [high(cpu="1")])
    yield case("preempt: two come, both have room", full + low, [high("@p0"), high("@p1")], True)
    yield case("preempt: three come, two have room", full + low, [high("@p0"), high("@p1"), high("@p2")], True)
    yield case("preempt: high and middle", full + low,
               [high("@m", priorityClassName="middle"), high("@h"), high("@h2")], True)
    yield case("preempt: the highest first", full,
               [objects.pod(f"@p{i}", cpu="1", priorityClassName=name) for i, name in
                enumerate(("low", "low", "low", "high", "middle", "high"))], True)
    slow = [{**pod, "spec": {**pod["spec"], "terminationGracePeriodSeconds": 1}} for pod in low]
    yield case("preempt: those that end at leisure", full + slow, [high()], True)


def everything():
    """Returns all cases, each with its number."""
    found = []
    for part in (names, taints, affinities, ports, sizes, spreading, companions, preemptions, volume_cases):
        found.extend(part())
    found.extend(mixes(random.Random(7), 160, 60))
    assert len({one["name"] for one in found}) == len(found), "two cases have the same name"
    return found


def digest(one):
    """Returns a hash of the case."""
    return hashlib.sha256(json.dumps(one, sort_keys=True).encode()).hexdigest()[:12]


if __name__ == "__main__":
    for number, item in enumerate(everything()):
        print(number, digest(item), "contended" if item["contended"] else "", item["name"])
