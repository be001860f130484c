"""Kubernetes objects for tests in short form; further keyword arguments go into the spec."""

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def meta(name, namespace=None, labels=None, annotations=None):
    found = {"name": name}
    for key, value in (("namespace", namespace), ("labels", labels), ("annotations", annotations)):
        if value:
            found[key] = value
    return found


def node(name, cpu="4", memory="16Gi", pods="110", labels=None, taints=None, images=None, annotations=None,
         unschedulable=False, extra=None):
    """Returns a ready node; `extra` are further resources."""
    resources = {"cpu": cpu, "memory": memory, "pods": pods, "ephemeral-storage": "100Gi", **(extra or {})}
    spec = {}
    if taints:
        spec["taints"] = taints
    if unschedulable:
        spec["unschedulable"] = True
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": meta(name, labels={"kubernetes.io/hostname": name, **(labels or {})}, annotations=annotations),
            "spec": spec, "status": {"capacity": resources, "allocatable": resources, "images": images or [],
                                     "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                                                     "message": "ready",
                                                     "lastHeartbeatTime": "2026-01-01T00:00:00Z",
                                                     "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}


def container(name="c", cpu=None, memory=None, limits=None, ports=None, image="registry.local/none:1", restart=None,
              **extra):
    requests = {key: value for key, value in {"cpu": cpu, "memory": memory, **extra}.items() if value is not None}
    found = {"name": name, "image": image, "imagePullPolicy": "IfNotPresent"}
    if requests or limits:
        found["resources"] = {**({"requests": requests} if requests else {}), **({"limits": limits} if limits else {})}
    if ports:
        found["ports"] = ports
    if restart:
        found["restartPolicy"] = restart
    return found


def pod(name, cpu=None, memory=None, namespace="default", scheduler="default-scheduler", labels=None, containers=None,
        on=None, annotations=None, **spec):
    """Returns a pending pod, or one that is already on a node."""
    found = {"schedulerName": scheduler, "terminationGracePeriodSeconds": 0,
             "containers": containers or [container(cpu=cpu, memory=memory)], **spec}
    if on:
        found["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta(name, namespace, labels, annotations), "spec": found}


def namespace(name, labels=None):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta(name, labels=labels)}


def priority_class(name, value, policy="PreemptLowerPriority"):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": meta(name), "value": value,
            "preemptionPolicy": policy}


def case(name, before, pending, contended=False):
    return {"name": name, "before": before, "pending": pending, "contended": contended}


def three(**options):
    """Returns three nodes in two zones: @a and @b in z1, @c in z2."""
    return [node("@a", labels={ZONE: "z1", "disk": "ssd", "gen": "1"}, **options),
            node("@b", labels={ZONE: "z1", "disk": "hdd", "gen": "5"}, **options),
            node("@c", labels={ZONE: "z2", "gen": "10"}, **options)]


def expression(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def node_affinity(*terms, preferred=None):
    found = {}
    if terms:
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": list(terms)}
    if preferred:
        found["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return {"nodeAffinity": found}


def expressions(*found):
    return {"matchExpressions": list(found)}


def fields(operator, *names):
    return {"matchFields": [expression("metadata.name", operator, *names)]}


def port(number, host_ip=None, protocol=None):
    return {"containerPort": 80, "hostPort": number, **({"hostIP": host_ip} if host_ip else {}),
            **({"protocol": protocol} if protocol else {})}


def spread(key=ZONE, skew=1, hard=True, select=None, **more):
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": {"matchLabels": select or {"app": "x"}}, **more}


def held(name, on, app="x", **more):
    return pod(name, on=on, labels={"app": app, **more.pop("labels", {})}, **more)


def pod_term(app="x", key=ZONE, **more):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}


def pod_affinity(*terms, anti=False, soft=False):
    kind = "podAntiAffinity" if anti else "podAffinity"
    if soft:
        return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "podAffinityTerm": term} for term in terms]}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}
