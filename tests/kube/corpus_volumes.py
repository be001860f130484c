"""The corpus: volumes."""
import objects
from objects import HOST, ZONE, case, expression, three

DRIVER = "csi.tests"
TELLS = "tells.tests"  # a driver that reports its storage capacity


def storage_class(name, provisioner, mode="WaitForFirstConsumer", **more):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "volumeBindingMode": mode, **more}


# Objects made once before the first case.
CLASSES = [
    storage_class("static", "kubernetes.io/no-provisioner"), storage_class("made", DRIVER),
    storage_class("now", DRIVER, "Immediate"),
    storage_class("zoned", DRIVER, allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}]),
    storage_class("told", TELLS),
    storage_class("told-zoned", TELLS,
                  allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}]),
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": TELLS},
     "spec": {"attachRequired": True, "storageCapacity": True}},
    {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
     "spec": {"storageCapacity": False}},
]


def claim(name, cls="static", size="1Gi", mode="ReadWriteOnce", volume=None, namespace="default", **spec):
    """Returns a claim; it is bound if a volume is named."""
    found = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": objects.meta(name, namespace),
             "spec": {"storageClassName": cls, "accessModes": [mode], "resources": {"requests": {"storage": size}},
                      **spec}}
    if volume:
        found["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        found["spec"]["volumeName"] = volume
        found["status"] = {"phase": "Bound", "accessModes": [mode], "capacity": {"storage": size}}
    return found


def volume(name, cls="static", size="1Gi", mode="ReadWriteOnce", nodes=None, zones=None, of=None, labels=None,
           namespace="default", csi=None, source=None):
    """Returns a volume; it is bound if it has a claim. `nodes` and `zones` say where it can be reached, the latter by a
    node affinity."""
    source = source or ({"csi": {"driver": csi, "volumeHandle": name}} if csi else {"local": {"path": "/mnt/x"}})
    terms = []
    if nodes:
        terms.append(expression(HOST, "In", *nodes))
    if zones:
        terms.append(expression(ZONE, "In", *zones))
    if not terms and "local" in source:
        terms.append(expression(HOST, "Exists"))
    found = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": objects.meta(name, labels=labels),
             "spec": {"capacity": {"storage": size}, "accessModes": [mode], "storageClassName": cls,
                      "persistentVolumeReclaimPolicy": "Retain", **source,
                      **({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": terms}]}}} if terms
                         else {})},
             "status": {"phase": "Bound" if of else "Available"}}
    if of:
        found["spec"]["claimRef"] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace,
                                     "name": of}
    return found


def with_claims(name, *claims, **more):
    return objects.pod(name, **{"cpu": "1", **more}, volumes=[
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": one}} for i, one in enumerate(claims)])


def csi_node(name, count, driver=DRIVER):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name},
            "spec": {"drivers": [{"name": driver, "nodeID": name, "topologyKeys": [],
                                  "allocatable": {"count": count}}]}}


def attachment(node, number, driver=DRIVER):
    """Returns the attachment of volume @vN to the node."""
    return {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": f"{node}-{number}"},
            "spec": {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": f"@v{number}"}}}


def pair(number, namespace="default", **more):
    """Returns a bound claim @cN and its volume @vN."""
    mode = more.get("mode", "ReadWriteOnce")
    return [claim(f"@c{number}", volume=f"@v{number}", namespace=namespace, mode=mode, cls=more.get("cls", "static")),
            volume(f"@v{number}", of=f"@c{number}", namespace=namespace, **more)]


def bound_cases():
    yield case("volume: a claim is missing", three(), [with_claims("@p", "@c0")])
    yield case("volume: bound, anywhere", three() + pair(0), [with_claims("@p", "@c0")])
    yield case("volume: bound, on one node", three() + pair(0, nodes=["@b"]), [with_claims("@p", "@c0")])
    yield case("volume: bound, on a node that is full",
               three(cpu="1") + pair(0, nodes=["@b"]) + [objects.pod("@h", cpu="1", on="@b")],
               [with_claims("@p", "@c0")])
    yield case("volume: bound, on no node", three() + pair(0, nodes=["@zzz"]), [with_claims("@p", "@c0")])
    yield case("volume: bound, two that meet", three() + pair(0, nodes=["@a", "@b"]) + pair(1, nodes=["@b", "@c"]),
               [with_claims("@p", "@c0", "@c1")])
    yield case("volume: bound, two that do not meet", three() + pair(0, nodes=["@a"]) + pair(1, nodes=["@b"]),
               [with_claims("@p", "@c0", "@c1")])
    yield case("volume: bound, in a zone", three() + pair(0, zones=["z2"]), [with_claims("@p", "@c0")])
    yield case("volume: bound, and a selector against it", three() + pair(0, zones=["z2"]),
               [with_claims("@p", "@c0", nodeSelector={ZONE: "z1"})])
    yield case("volume: zone label", three() + pair(0, labels={ZONE: "z2"}), [with_claims("@p", "@c0")])
    yield case("volume: zone label of no node", three() + pair(0, labels={ZONE: "z9"}), [with_claims("@p", "@c0")])
    yield case("volume: zone label of two zones", three() + pair(0, labels={ZONE: "z2__z3"}),
               [with_claims("@p", "@c0")])
    yield case("volume: zone label, nodes without zones", [objects.node("@a")] + pair(0, labels={ZONE: "z2"}),
               [with_claims("@p", "@c0")])
    yield case("volume: the volume is missing", three() + [claim("@c0", volume="@v0")], [with_claims("@p", "@c0")])
    yield case("volume: a claim of another namespace", three() + pair(0, namespace="blue"), [with_claims("@p", "@c0")])
    yield case("volume: at once, not bound yet", three() + [claim("@c0", "now")], [with_claims("@p", "@c0")])
    yield case("volume: of no such class", three() + [claim("@c0", "nowhere")], [with_claims("@p", "@c0")])
    yield case("volume: claim is lost", three() + [{**claim("@c0", volume="@v0"), "status": {"phase": "Lost"}}],
               [with_claims("@p", "@c0")])
    yield case("volume: claim is being deleted", three() + [volume("@v0", of="@c0"), {
        **claim("@c0", volume="@v0"), "delete": True}], [with_claims("@p", "@c0")])
    yield case("volume: none but an empty folder", three(),
               [objects.pod("@p", cpu="1", volumes=[{"name": "e", "emptyDir": {}}])])


def waiting_cases():
    yield case("volume: waits, one fits", three() + [claim("@c0"), volume("@v0", nodes=["@b"])],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, none fits", three() + [claim("@c0", size="2Gi"), volume("@v0", nodes=["@b"])],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, a larger one fits", three() + [claim("@c0"), volume("@v0", size="5Gi", nodes=["@b"])],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, of another mode", three() + [claim("@c0", mode="ReadWriteMany"), volume("@v0")],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, of another class", three() + [claim("@c0"), volume("@v0", cls="other")],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, taken by another", three() + [claim("@c0"), volume("@v0", of="@other")],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, on a node that is full",
               three(cpu="1") + [claim("@c0"), volume("@v0", nodes=["@b"]), objects.pod("@h", cpu="1", on="@b")],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, two on one node",
               three() + [claim("@c0"), claim("@c1")] + [volume(f"@v{i}", nodes=["@b"]) for i in range(2)],
               [with_claims("@p", "@c0", "@c1")])
    yield case("volume: waits, two on two nodes",
               three() + [claim("@c0"), claim("@c1"), volume("@v0", nodes=["@a"]), volume("@v1", nodes=["@b"])],
               [with_claims("@p", "@c0", "@c1")])
    yield case("volume: waits, a selector",
               three() + [claim("@c0", selector={"matchLabels": {"kind": "fast"}}), volume("@v0", nodes=["@a"]),
                                                        volume("@v1", nodes=["@c"], labels={"kind": "fast"})],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, a selector, none",
               three() + [claim("@c0", selector={"matchLabels": {"kind": "fast"}}), volume("@v0")],
               [with_claims("@p", "@c0")])
    yield case("volume: waits, one bound and one not",
               three() + pair(0, nodes=["@b"]) + [claim("@c1"), volume("@v1", nodes=["@b"])],
               [with_claims("@p", "@c0", "@c1")])
    yield case("volume: waits, one bound elsewhere",
               three() + pair(0, nodes=["@a"]) + [claim("@c1"), volume("@v1", nodes=["@b"])],
               [with_claims("@p", "@c0", "@c1")])
    yield case("volume: made where the pod goes", three() + [claim("@c0", "made")], [with_claims("@p", "@c0")])
    yield case("volume: made in a zone", three() + [claim("@c0", "zoned")], [with_claims("@p", "@c0")])
    yield case("volume: made in a zone that has no node", three()[:2] + [claim("@c0", "zoned")],
               [with_claims("@p", "@c0")])
    yield case("volume: made in a zone, a selector against it", three() + [claim("@c0", "zoned")],
               [with_claims("@p", "@c0", nodeSelector={ZONE: "z1"})])
    yield case("volume: waits, two pods, one volume", three() + [claim("@c0"), claim("@c1"), volume("@v0")],
               [with_claims("@p0", "@c0"), with_claims("@p1", "@c1")], True)
    yield case("volume: waits, two pods of one claim", three() + [claim("@c0"), volume("@v0", nodes=["@b"])],
               [with_claims("@p0", "@c0"), with_claims("@p1", "@c0")])
    yield case("volume: waits, two pods of one claim at once", three() + [claim("@c0"), volume("@v0", nodes=["@b"])],
               [with_claims("@p0", "@c0"), with_claims("@p1", "@c0")], True)
    own = {"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": {
        "storageClassName": "static", "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}}}}}
    yield case("volume: of the pod itself, its claim is missing", three(), [objects.pod("@p", cpu="1", volumes=[own])])


def limit_cases():
    once = pair(0, mode="ReadWriteOncePod")
    yield case("volume: for one pod only, free", three() + once, [with_claims("@p", "@c0")])
    yield case("volume: for one pod only, taken", three() + once + [with_claims("@h", "@c0", on="@a")],
               [with_claims("@p", "@c0")])
    yield case("volume: for one pod only, two come", three() + once,
               [with_claims("@p0", "@c0"), with_claims("@p1", "@c0")], True)
    yield case("volume: for one pod only, of a lower one",
               three() + once + [with_claims("@h", "@c0", on="@a", priorityClassName="low")],
               [with_claims("@p", "@c0", priorityClassName="high")])
    csi = [one for number in range(3) for one in pair(number, csi=DRIVER)]
    used = [with_claims(f"@h{number}", f"@c{number}", on="@a") for number in range(2)]
    yield case("volume: limit, room for one", [objects.node("@a"), csi_node("@a", 3)] + csi + used,
               [with_claims("@p", "@c2")])
    yield case("volume: limit, reached", [objects.node("@a"), csi_node("@a", 2)] + csi + used,
               [with_claims("@p", "@c2")])
    yield case("volume: limit, reached, the same volume", [objects.node("@a"), csi_node("@a", 2)] + csi + used,
               [with_claims("@p", "@c1")])
    yield case("volume: limit, reached here, not there",
               [objects.node("@a"), objects.node("@b"), csi_node("@a", 2), csi_node("@b", 2)] + csi + used,
               [with_claims("@p", "@c2")])
    yield case("volume: limit, two at a time", [objects.node("@a"), csi_node("@a", 3)] + csi + used[:1],
               [with_claims("@p", "@c1", "@c2")])
    yield case("volume: limit, two at a time, too many", [objects.node("@a"), csi_node("@a", 2)] + csi + used[:1],
               [with_claims("@p", "@c1", "@c2")])
    yield case("volume: limit, of made ones",
               [objects.node("@a"), csi_node("@a", 2), claim("@c9", "made")] + csi + used, [with_claims("@p", "@c9")])
    yield case("volume: limit, three come, two fit", [objects.node("@a"), csi_node("@a", 2)] + csi,
               [with_claims(f"@p{number}", f"@c{number}") for number in range(3)], True)
    yield case("volume: limit, nothing known of the driver", [objects.node("@a")] + csi + used,
               [with_claims("@p", "@c2")])


def attached_cases():
    """Yields cases with volumes attached to nodes, with and without pods that use them."""
    csi = [one for number in range(3) for one in pair(number, csi=DRIVER)]

    def a(count):
        return [objects.node("@a"), csi_node("@a", count)] + csi
    used = with_claims("@h", "@c0", on="@a")
    comes = [with_claims("@p", "@c2")]
    yield case("attached: nobody uses it, no room", a(1) + [attachment("@a", 0)], comes)
    yield case("attached: nobody uses it, room for one", a(2) + [attachment("@a", 0)], comes)
    yield case("attached: two, nobody uses them", a(2) + [attachment("@a", 0), attachment("@a", 1)], comes)
    yield case("attached: a pod uses it", a(2) + [used, attachment("@a", 0)], comes)
    yield case("attached: a pod uses one of two", a(2) + [used, attachment("@a", 0), attachment("@a", 1)], comes)
    yield case("attached: to another node", a(1) + [objects.node("@b", cpu="0"), attachment("@b", 0)], comes)
    yield case("attached: here, not there", a(1) + [objects.node("@b"), csi_node("@b", 1), attachment("@a", 0)], comes)
    yield case("attached: by another driver", a(1) + [attachment("@a", 0, "other.tests")], comes)
    yield case("attached: no such volume", a(1) + [attachment("@a", 9)], comes)
    yield case("attached: what the pod comes with, and nobody uses yet", a(1) + [attachment("@a", 2)], comes)
    yield case("attached: what the pod comes with, and one uses", a(1) + [used, attachment("@a", 0)],
               [with_claims("@p", "@c0")])
    yield case("attached: to a node without limits", [objects.node("@a"), attachment("@a", 0)] + csi, comes)
    yield case("attached: a pod without volumes", a(1) + [attachment("@a", 0)], [objects.pod("@p", cpu="1")])
    yield case("attached: one waits for its volume to be made", a(1) + [attachment("@a", 0), claim("@c9", "made")],
               [with_claims("@p", "@c9")])
    yield case("attached: two come, one fits", a(2) + [attachment("@a", 0)],
               [with_claims("@p0", "@c1"), with_claims("@p1", "@c2")], True)


def left(name, where, size="10Gi", cls="told", most=None):
    """Returns the free storage capacity of nodes in a zone or by any selector; None: without a topology."""
    found = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity", "metadata": objects.meta(name, "default"),
             "storageClassName": cls}
    if size:
        found["capacity"] = size
    if most:
        found["maximumVolumeSize"] = most
    if where is not None:
        found["nodeTopology"] = {"matchLabels": {ZONE: where}} if isinstance(where, str) else where
    return found


def capacity_cases():
    def one(name, *capacities, cls="told", **more):
        return case(f"capacity: {name}", three() + [claim("@c0", cls), *capacities], [with_claims("@p", "@c0", **more)])
    yield one("nothing is told")
    yield one("nothing is told, of a driver that does not", cls="made")
    yield one("enough in a zone", left("@s", "z2"))
    yield one("enough in a zone, a selector against it", left("@s", "z2"), nodeSelector={ZONE: "z1"})
    yield one("just enough", left("@s", "z2", "1Gi"))
    yield one("one byte too little", left("@s", "z2", "1073741823"))
    yield one("enough in all, not for one volume", left("@s", "z2", "10Gi", most="512Mi"))
    yield one("enough for one volume, less in all", left("@s", "z2", "1Mi", most="2Gi"))
    yield one("enough for one volume, nothing said of all", left("@s", "z2", None, most="2Gi"))
    yield one("nobody says how much", left("@s", "z2", None))
    yield one("nobody says where", left("@s", None))
    yield one("everywhere", left("@s", {}))
    yield one("in no zone that is there", left("@s", "z9"))
    yield one("of another class", left("@s", "z2", cls="made"))
    yield one("too little in one zone, enough in the other", left("@s", "z2", "1Mi"), left("@t", "z1"))
    yield one("of two that say the same zone one is enough", left("@s", "z2", "1Mi"), left("@t", "z2", "2Gi"))
    yield one("by expressions", left("@s", {"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}))
    yield one("by expressions, not in",
              left("@s", {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd", "hdd"]}]}))
    yield one("where the class makes none", left("@s", "z1", cls="told-zoned"), cls="told-zoned")
    yield one("where the class makes some", left("@s", "z2", cls="told-zoned"), cls="told-zoned")
    yield case("capacity: a volume that is there needs none",
               three() + [claim("@c0", "told"), volume("@v0", cls="told", nodes=["@b"])], [with_claims("@p", "@c0")])
    yield case("capacity: two claims, each fits",
               three() + [claim("@c0", "told"), claim("@c1", "told", size="2Gi"), left("@s", "z2", "2Gi")],
               [with_claims("@p", "@c0", "@c1")])
    yield case("capacity: two claims, one is too large",
               three() + [claim("@c0", "told"), claim("@c1", "told", size="3Gi"), left("@s", "z2", "2Gi")],
               [with_claims("@p", "@c0", "@c1")])
    yield case("capacity: on a node that is full",
               three(cpu="1") + [claim("@c0", "told"), left("@s", "z2"), objects.pod("@h", cpu="1", on="@c")],
               [with_claims("@p", "@c0")])


GCE, AWS = {"gcePersistentDisk": {"pdName": "d1"}}, {"awsElasticBlockStore": {"volumeID": "vol-1"}}
ISCSI = {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:d1", "lun": 0}}
RBD = {"rbd": {"monitors": ["10.0.0.1:6789", "10.0.0.2:6789"], "image": "i1", "pool": "p1"}}


def other(source, **fields):
    """Returns the same disk with other fields."""
    return {kind: {**inside, **fields} for kind, inside in source.items()}


def disk_cases():
    """Yields cases with disks named in pods: one of two pods on a node writes, and the other has the same disk."""
    def pods(held, wanted, **more):
        return (objects.pod("@h", cpu="1", on="@a", volumes=[{"name": "d", **held}]),
                objects.pod("@p", cpu="1", volumes=[{"name": "d", **wanted}], **more))

    def one(name, held, wanted, **more):
        there, comes = pods(held, wanted, **more)
        return case(f"disk: {name}", [objects.node("@a"), there], [comes])
    for word, disk in (("gce", GCE), ("aws", AWS), ("iscsi", ISCSI), ("rbd", RBD)):
        reads = other(disk, readOnly=True)
        yield one(f"{word}, both write", disk, disk)
        yield one(f"{word}, one reads", disk, reads)
        yield one(f"{word}, the other reads", reads, disk)
        yield one(f"{word}, both read", reads, reads)
        there, comes = pods(disk, disk)
        yield case(f"disk: {word}, on another node", [objects.node("@a"), objects.node("@b"), there], [comes])
    yield one("gce, another", GCE, other(GCE, pdName="d2"))
    yield one("aws, another", AWS, other(AWS, volumeID="vol-2"))
    yield one("iscsi, another", ISCSI, other(ISCSI, iqn="iqn.2001-04.com.example:d2"))
    yield one("iscsi, another unit of it", ISCSI, other(ISCSI, lun=1))
    yield one("rbd, another pool", RBD, other(RBD, pool="p2"))
    yield one("rbd, another image", RBD, other(RBD, image="i2"))
    yield one("rbd, one monitor of both", RBD, other(RBD, monitors=["10.0.0.3:6789", "10.0.0.2:6789"]))
    yield one("rbd, other monitors", RBD, other(RBD, monitors=["10.0.0.3:6789"]))
    yield one("of one name and another kind", GCE, other(AWS, volumeID="d1"))
    there, comes = pods(GCE, GCE, priorityClassName="high")
    there["spec"]["priorityClassName"] = "low"
    yield case("disk: of a lower one, which gives way", [objects.node("@a"), there], [comes])
    yield case("disk: twice in one pod", [objects.node("@a")],
               [objects.pod("@p", cpu="1", volumes=[{"name": "d", **GCE}, {"name": "e", **other(GCE, readOnly=True)}])])
    yield case("disk: of another namespace",
               [objects.node("@a"),
                objects.pod("@h", cpu="1", on="@a", namespace="blue", volumes=[{"name": "d", **GCE}])],
               [objects.pod("@p", cpu="1", volumes=[{"name": "d", **GCE}])])
    yield case("disk: three come, two nodes", [objects.node("@a"), objects.node("@b")],
               [objects.pod(f"@p{number}", cpu="1", volumes=[{"name": "d", **GCE}]) for number in range(3)], True)


# Volume sources of pods and volumes that CSI drivers have replaced, the driver, and the provisioner of classes.
TAKEN_OVER = [
    ("gce", lambda name: {"gcePersistentDisk": {"pdName": name}}, "pd.csi.storage.gke.io", "kubernetes.io/gce-pd"),
    ("aws", lambda name: {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}}, "ebs.csi.aws.com",
     "kubernetes.io/aws-ebs"),
    ("cinder", lambda name: {"cinder": {"volumeID": name}}, "cinder.csi.openstack.org", "kubernetes.io/cinder"),
    ("azure", lambda name: {"azureDisk": {"diskName": name, "diskURI": f"/subscriptions/{name}", "kind": "Managed"}},
     "disk.csi.azure.com", "kubernetes.io/azure-disk"),
    ("portworx", lambda name: {"portworxVolume": {"volumeID": name}}, "pxd.portworx.com",
     "kubernetes.io/portworx-volume"),
]
CLASSES.extend(storage_class(f"old-{word}", provisioner) for word, _, _, provisioner in TAKEN_OVER)


def taken_over_cases():
    """Yields cases in which these volumes count against the limit of the driver."""
    for word, source, driver, _ in TAKEN_OVER:
        def holds(name, disk, make=source, **more):
            return objects.pod(name, cpu="1", volumes=[{"name": "d", **make(disk)}], **more)

        def node(count, name=driver):
            return [objects.node("@a"), csi_node("@a", count, name)]
        yield case(f"taken over: {word}, in pods, room for one", node(2) + [holds("@h", "d1", on="@a")],
                   [holds("@p", "d2")])
        yield case(f"taken over: {word}, in pods, no room", node(1) + [holds("@h", "d1", on="@a")], [holds("@p", "d2")])
        bound = [claim("@c0", volume="@v0"), volume("@v0", of="@c0", source=source("d2"))]
        yield case(f"taken over: {word}, a volume, no room", node(1) + bound + [holds("@h", "d1", on="@a")],
                   [with_claims("@p", "@c0")])
        yield case(f"taken over: {word}, the same in a volume and a pod",
                   node(1) + bound + [with_claims("@h", "@c0", on="@a")], [
            objects.pod("@p", cpu="1", volumes=[{"name": "d", **source("d2")}])])
        yield case(f"taken over: {word}, made by a class",
                   node(1) + [claim("@c0", f"old-{word}"), holds("@h", "d1", on="@a")], [with_claims("@p", "@c0")])
    zoned = [claim("@c0", volume="@v0"),
             volume("@v0", of="@c0", source={"gcePersistentDisk": {"pdName": "d1"}}, labels={ZONE: "z1"})]
    yield case("taken over: gce, of a zone it is another",
               [objects.node("@a", labels={ZONE: "z1"}), csi_node("@a", 1, "pd.csi.storage.gke.io")]
               + zoned + [objects.pod("@h", cpu="1", on="@a", volumes=[{"name": "d", **GCE}])],
               [with_claims("@p", "@c0")])
    yield case("taken over: aws, with its zone in the name",
               [objects.node("@a"), csi_node("@a", 1, "ebs.csi.aws.com"), claim("@c0", volume="@v0"),
               volume("@v0", of="@c0",
                      source={"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-0123456789abcdef0"}}),
               objects.pod("@h", cpu="1", on="@a",
                           volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "vol-0123456789abcdef0"}}])],
               [with_claims("@p", "@c0")])


def volume_cases():
    yield from bound_cases()
    yield from waiting_cases()
    yield from limit_cases()
    yield from attached_cases()
    yield from capacity_cases()
    yield from disk_cases()
    yield from taken_over_cases()
