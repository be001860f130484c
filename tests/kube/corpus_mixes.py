"""The corpus: random mixes of features, made from a seed."""
import objects
from objects import (HOST, ZONE, case, container, expression, expressions, fields, node_affinity, pod_affinity,
                     pod_term, port, spread)

TAINTS = [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"},
          {"key": "soft", "value": "x", "effect": "PreferNoSchedule"},
          {"key": "leave", "value": "x", "effect": "NoExecute"}]


def some_nodes(rng, count, small):
    found = []
    for number in range(count):
        labels = {ZONE: f"z{rng.randint(1, 3)}", "gen": str(rng.randint(1, 9))}
        if rng.random() < 0.7:
            labels["disk"] = rng.choice(("ssd", "hdd"))
        taints = [taint for taint in TAINTS if rng.random() < 0.15]
        extra = {"nvidia.com/gpu": str(rng.choice((2, 4)))} if rng.random() < 0.4 else None
        found.append(objects.node(f"@n{number}", cpu=str(rng.randint(2, 4) if small else rng.randint(4, 16)),
                                  memory=f"{rng.choice((4, 8, 16))}Gi",
                                  labels=labels, taints=taints, extra=extra, unschedulable=rng.random() < 0.08))
    return found


def affinity_of(rng):
    """Returns a random affinity with one or more of its kinds."""
    found = {}
    if rng.random() < 0.35:
        terms = [rng.choice((expressions(expression("disk", rng.choice(("In", "NotIn")), rng.choice(("ssd", "hdd")))),
                             expressions(expression("gen", rng.choice(("Gt", "Lt")), str(rng.randint(2, 8)))),
                             expressions(expression(ZONE, "In", f"z{rng.randint(1, 3)}"), expression("disk", "Exists")),
                             fields("In", f"@n{rng.randint(0, 3)}"))) for _ in range(rng.randint(1, 2))]
        found.update(node_affinity(*terms))
    if rng.random() < 0.3:
        found.update(pod_affinity(pod_term(rng.choice("xy"), rng.choice((ZONE, HOST))), anti=False,
                                  soft=rng.random() < 0.3))
    if rng.random() < 0.35:
        terms = [pod_term(rng.choice("xy"), rng.choice((ZONE, HOST)),
                          **rng.choice(({}, {"namespaceSelector": {}}, {"namespaces": ["blue"]})))
                 for _ in range(rng.randint(1, 2))]
        found.update(pod_affinity(*terms, anti=True, soft=rng.random() < 0.3))
    return found


def some_spread(rng):
    more = rng.choice(({}, {"nodeTaintsPolicy": "Honor"}, {"nodeAffinityPolicy": "Ignore"}))
    hard = rng.random() < 0.7
    if hard and rng.random() < 0.2:
        more = {**more, "minDomains": rng.randint(2, 4)}
    return spread(rng.choice((ZONE, HOST)), rng.randint(1, 2), hard, {"app": rng.choice("xy")}, **more)


def some_pod(rng, name, large, **more):
    spec = {"labels": {"app": rng.choice("xyz")}, **more}
    limits = {"nvidia.com/gpu": str(rng.randint(1, 3))} if rng.random() < 0.15 else None
    ports = [port(rng.choice((80, 81)), rng.choice((None, "10.0.0.1")))] if rng.random() < 0.2 else None
    cpu = rng.choice(("500m", "1", "2")) if not large else rng.choice(("1", "3", "6", "9"))
    spec["containers"] = [container(cpu=cpu, memory=f"{rng.choice((256, 1024, 3000))}Mi", limits=limits, ports=ports)]
    if rng.random() < 0.2:
        spec["initContainers"] = [container("i", cpu=rng.choice(("500m", "3")), restart=rng.choice((None, "Always")))]
    if rng.random() < 0.1:
        spec["runtimeClassName"] = "heavy"
    affinity = affinity_of(rng)
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.35:
        spec["topologySpreadConstraints"] = [some_spread(rng)]
    if rng.random() < 0.2:
        spec["nodeSelector"] = rng.choice(({"disk": "ssd"}, {ZONE: "z1"}))
    if rng.random() < 0.4:
        spec["tolerations"] = [rng.choice(({"operator": "Exists"}, {"key": "dedicated", "operator": "Exists"},
                                           {"key": "leave", "value": "x"}))]
    return objects.pod(name, **spec)


def held_pods(rng, nodes, count, **more):
    """Returns existing pods on any nodes, whether they would be allowed there or not."""
    found = []
    for number in range(count):
        one = some_pod(rng, f"@h{number}", False, **more)
        one["spec"]["nodeName"] = rng.choice(nodes)["metadata"]["name"]
        if rng.random() < 0.2:
            one["metadata"]["namespace"] = "blue"
        found.append(one)
    return found


def mixes(rng, alone, together):
    """Yields cases with one pod alone, and with many that compete."""
    for number in range(alone):
        nodes = some_nodes(rng, rng.randint(2, 6), False)
        yield case(f"mix {number}", nodes + held_pods(rng, nodes, rng.randint(0, 6)), [some_pod(rng, "@p", True)])
    for number in range(together):
        nodes = some_nodes(rng, rng.randint(2, 5), True)
        before = nodes + held_pods(rng, nodes, rng.randint(0, 3), priorityClassName="low")
        classes = ("low", "middle", "high") if number % 2 else ("middle",)
        yield case(f"crowd {number}", before,
                   [some_pod(rng, f"@p{i}", False, priorityClassName=rng.choice(classes))
                    for i in range(rng.randint(5, 12))], True)
