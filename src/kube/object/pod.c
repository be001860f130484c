/* pod.c - parses v1.Pod. Field numbers are those of k8s.io/api core/v1. */
#include "kube/object/pod.h"

#include "kube/object/pod_volume.h"

/* ---- kept fields ------------------------------------------------------------------------------------------------ */

#define F KUBE_FIELD

enum {
    POD_META = 1,
    POD_SPEC = 2,
    POD_STATUS = 3,

    SPEC_VOLUMES = 1,
    SPEC_CONTAINERS = 2,
    SPEC_NODE_SELECTOR = 7,
    SPEC_NODE = 10,
    SPEC_AFFINITY = 18,
    SPEC_SCHEDULER = 19,
    SPEC_INITS = 20,
    SPEC_TOLERATIONS = 22,
    SPEC_PRIORITY = 25,
    SPEC_PREEMPTION = 31,
    SPEC_OVERHEAD = 32,
    SPEC_SPREAD = 33,
    SPEC_GATES = 38,
    SPEC_DEVICES = 39,
    SPEC_RESOURCES = 40,
    SPEC_GROUP = 43,

    STATUS_PHASE = 1,
    STATUS_CONDITIONS = 2,
    STATUS_CONTAINERS = 8,
    STATUS_INITS = 10,
    STATUS_NOMINATED = 11,

    CONDITION_TYPE = 1,
    CONDITION_STATUS = 2,
    CONDITION_SINCE = 4,
    CONDITION_MESSAGE = 6,

    CONTAINER_NAME = 1,
    CONTAINER_IMAGE = 2,
    CONTAINER_PORTS = 6,
    CONTAINER_RESOURCES = 8,
    CONTAINER_RESTART = 24,

    ACTUAL_NAME = 1,
    ACTUAL_ALLOCATED = 10,
    ACTUAL_RESOURCES = 11,

    RESOURCES_REQUESTS = 2,
};

static const struct kube_field_filter keep_resources = {.whole = F(RESOURCES_REQUESTS)};
static const struct kube_nested_filter container_inside[] = {
    {CONTAINER_RESOURCES, &keep_resources}
};
static const struct kube_field_filter keep_container = {
    .whole = F(CONTAINER_NAME) | F(CONTAINER_IMAGE) | F(CONTAINER_PORTS) | F(CONTAINER_RESTART),
    KUBE_INSIDE(container_inside),
};
static const struct kube_nested_filter spec_inside[] = {
    {SPEC_VOLUMES,    &kube_keep_pod_volume},
    {SPEC_CONTAINERS, &keep_container      },
    {SPEC_INITS,      &keep_container      },
    {SPEC_RESOURCES,  &keep_resources      },
};
static const struct kube_field_filter keep_spec = {
    .whole = F(SPEC_NODE_SELECTOR) | F(SPEC_AFFINITY) | F(SPEC_SCHEDULER) | F(SPEC_TOLERATIONS) | F(SPEC_PRIORITY) |
             F(SPEC_PREEMPTION) | F(SPEC_OVERHEAD) | F(SPEC_SPREAD) | F(SPEC_GATES) | F(SPEC_DEVICES) | F(SPEC_GROUP),
    KUBE_INSIDE(spec_inside),
};
static const struct kube_nested_filter actual_inside[] = {
    {ACTUAL_RESOURCES, &keep_resources}
};
static const struct kube_field_filter keep_actual = {.whole = F(ACTUAL_NAME) | F(ACTUAL_ALLOCATED),
                                                     KUBE_INSIDE(actual_inside)};
static const struct kube_nested_filter status_inside[] = {
    {STATUS_CONTAINERS, &keep_actual},
    {STATUS_INITS,      &keep_actual}
};
static const struct kube_field_filter keep_status = {KUBE_INSIDE(status_inside)};
static const struct kube_nested_filter pod_inside[] = {
    {POD_META, &kube_keep_meta_shared},
    {POD_SPEC, &keep_spec            }
};
const struct kube_field_filter kube_keep_pod = {KUBE_INSIDE(pod_inside)};
static const struct kube_nested_filter resized_inside[] = {
    {POD_META,   &kube_keep_meta_shared},
    {POD_SPEC,   &keep_spec            },
    {POD_STATUS, &keep_status          }
};
const struct kube_field_filter kube_keep_pod_resized = {KUBE_INSIDE(resized_inside)};

#undef F

/* ---- containers ------------------------------------------------------------------------------------------------- */

static struct kube_amounts requests_read(struct kube_decoder *in, const struct proto_field *f)
{
    struct kube_amounts requests = {0};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == RESOURCES_REQUESTS)
            kube_amount(in, &x, &requests);
    in->bad |= r.bad;
    return requests;
}

static enum berth_protocol protocol_of(struct proto_text word)
{
    return proto_is(word, "UDP") ? BERTH_UDP : proto_is(word, "SCTP") ? BERTH_SCTP : BERTH_TCP;
}

static void port_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct kube_port port = {.address = ""};
    int64_t number = 0;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case 2: number = proto_int(&x); break;
        case 4: port.protocol = protocol_of(proto_text(&x)); break;
        case 5: port.address = proto_is(proto_text(&x), "0.0.0.0") ? "" : kube_text(in, &x); break;
        default: break;
        }
    in->bad |= r.bad || number < 0 || number > UINT16_MAX;
    port.port = (uint16_t)number;
    for (size_t i = 0; i < pod->ports.len;
         i++) { /* a port requested twice is held once, at all addresses if one request is */
        struct kube_port *other = &pod->ports.at[i];
        bool same = strcmp(other->address, port.address) == 0;
        if (other->protocol != port.protocol || other->port != port.port || (!same && *other->address && *port.address))
            continue;
        other->address = same ? other->address : "";
        return;
    }
    if (number > 0)
        kube_push(in->arena, &pod->ports, port);
}

/* Adds a tag if there is none, as nodes name images. */
void kube_pod_image_add(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    const char *name = kube_text(in, f);
    const char *colon = strrchr(name, ':'), *slash = strrchr(name, '/');
    if (!*name)
        return;
    if (!colon || (slash && colon < slash))
        name = arena_fmt(in->arena, "%s:latest", name);
    for (size_t i = 0; i < pod->images.len; i++)
        if (strcmp(pod->images.at[i], name) == 0)
            return;
    kube_push(in->arena, &pod->images, name);
}

/* Reports whether an init container is a sidecar (restartPolicy Always). */
static bool is_sidecar(struct proto_reader r)
{
    struct proto_field x;
    bool always = false;
    while (proto_next(&r, &x))
        if (x.number == CONTAINER_RESTART)
            always = proto_is(proto_text(&x), "Always");
    return always;
}

static struct kube_container container_read(struct kube_decoder *in, const struct proto_field *f, bool init,
                                            struct kube_pod *pod)
{
    struct kube_container c = {.name = "", .sidecar = init && is_sidecar(proto_sub(f))};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case CONTAINER_NAME: c.name = kube_text(in, &x); break;
        case CONTAINER_IMAGE: kube_pod_image_add(in, &x, pod); break;
        case CONTAINER_PORTS:
            if (!init || c.sidecar) /* a plain init container holds no port */
                port_read(in, &x, pod);
            break;
        case CONTAINER_RESOURCES: c.requests = requests_read(in, &x); break;
        default: break;
        }
    in->bad |= r.bad;
    return c;
}

static void actual_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct kube_actual_resources a = {.name = ""};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case ACTUAL_NAME: a.name = kube_text(in, &x); break;
        case ACTUAL_ALLOCATED: kube_amount(in, &x, &a.allocated); break;
        case ACTUAL_RESOURCES: a.actuated = requests_read(in, &x); break;
        default: break;
        }
    in->bad |= r.bad;
    if (a.allocated.len || a.actuated.len)
        kube_push(in->arena, &pod->actuals, a);
}

/* ---- affinity, spread and tolerations --------------------------------------------------------------------------- */

static void near_read(struct kube_decoder *in, const struct proto_field *f, struct kube_affinity_term near,
                      struct kube_pod *pod)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    near.topology = "";
    while (proto_next(&r, &x))
        switch (x.number) {
        case 1: near.select = kube_selector_read(in, &x); break;
        case 2: kube_push(in->arena, &near.namespaces, kube_text(in, &x)); break;
        case 3: near.topology = kube_text(in, &x); break;
        case 4: near.namespace_select = kube_selector_read(in, &x); break;
        default: break; /* the API server has merged matchLabelKeys into the selector */
        }
    in->bad |= r.bad;
    kube_push(in->arena, &pod->near, near);
}

/* Parses the common part of WeightedPodAffinityTerm and PreferredSchedulingTerm: a weight and a term. */
static struct proto_field weighted_read(struct kube_decoder *in, const struct proto_field *f, int32_t *ret_weight)
{
    struct proto_field term = {0};
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    int64_t weight = 0;
    while (proto_next(&r, &x)) {
        if (x.number == 1)
            weight = proto_int(&x);
        else if (x.number == 2)
            term = x;
    }
    in->bad |= r.bad || weight < 0 || weight > BERTH_WEIGHT_MAX;
    *ret_weight = (int32_t)weight;
    return term;
}

static void nears_read(struct kube_decoder *in, const struct proto_field *f, bool apart, struct kube_pod *pod)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        struct kube_affinity_term near = {.apart = apart};
        if (x.number == 1) {
            near_read(in, &x, near, pod);
        } else if (x.number == 2) {
            struct proto_field term = weighted_read(in, &x, &near.weight);
            if (near.weight)
                near_read(in, &term, near, pod);
        }
    }
    in->bad |= r.bad;
}

static void node_affinity_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == 1) {
            pod->has_affinity = true;
            kube_terms_read(in, &x, &pod->affinity);
        } else if (x.number == 2) {
            int32_t weight;
            struct proto_field term = weighted_read(in, &x, &weight);
            if (weight)
                kube_term_read(in, &term, weight, &pod->prefer);
        }
    }
    in->bad |= r.bad;
}

static void affinity_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x)) {
        if (x.number == 1)
            node_affinity_read(in, &x, pod);
        else if (x.number == 2 || x.number == 3)
            nears_read(in, &x, x.number == 3, pod);
    }
    in->bad |= r.bad;
}

static void toleration_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct berth_toleration t = {.key = "", .value = ""};
    bool equal = true;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case 1: t.key = kube_text(in, &x); break;
        case 2:
            t.exists = proto_is(proto_text(&x), "Exists");
            equal = x.len == 0 || proto_is(proto_text(&x), "Equal");
            break;
        case 3: t.value = kube_text(in, &x); break;
        case 4: t.effect = kube_effect(&x); break;
        default: break;
        }
    in->bad |= r.bad;
    if (t.exists)
        t.value = "";
    if (t.exists || (equal && *t.key)) /* other operators need a feature gate and tolerate nothing here */
        kube_push(in->arena, &pod->tolerations, t);
}

static void spread_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct kube_spread s = {.topology = "", .max_skew = 1};
    int64_t skew = 1, domains = 0;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case 1: skew = proto_int(&x); break;
        case 2: s.topology = kube_text(in, &x); break;
        case 3: s.soft = proto_is(proto_text(&x), "ScheduleAnyway"); break;
        case 4: s.select = kube_selector_read(in, &x); break;
        case 5: domains = proto_int(&x); break;
        case 6: s.any_affinity = proto_is(proto_text(&x), "Ignore"); break;
        case 7: s.honor_taints = proto_is(proto_text(&x), "Honor"); break;
        case 8: kube_push(in->arena, &s.keys, kube_text(in, &x)); break;
        default: break;
        }
    in->bad |= r.bad || skew < 1 || skew > INT32_MAX || domains < 0 || domains > INT32_MAX;
    s.max_skew = (uint32_t)skew;
    s.min_domains = (uint32_t)domains;
    kube_push(in->arena, &pod->spread, s);
}

static const char *first_text(struct kube_decoder *in, const struct proto_field *f)
{
    const char *text = "";
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == 1)
            text = kube_text(in, &x);
    in->bad |= r.bad;
    return text;
}

/* ---- the whole pod ---------------------------------------------------------------------------------------------- */

static void spec_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case SPEC_VOLUMES: kube_pod_volume_read(in, &x, pod); break;
        case SPEC_CONTAINERS: kube_push(in->arena, &pod->containers, container_read(in, &x, false, pod)); break;
        case SPEC_INITS: kube_push(in->arena, &pod->inits, container_read(in, &x, true, pod)); break;
        case SPEC_NODE_SELECTOR: kube_label(in, &x, &pod->node_selector); break;
        case SPEC_AFFINITY: affinity_read(in, &x, pod); break;
        case SPEC_SCHEDULER: pod->scheduler = kube_text(in, &x); break;
        case SPEC_TOLERATIONS: toleration_read(in, &x, pod); break;
        case SPEC_PRIORITY: pod->priority = (int32_t)proto_int(&x); break;
        case SPEC_PREEMPTION: pod->never_preempts = proto_is(proto_text(&x), "Never"); break;
        case SPEC_OVERHEAD: kube_amount(in, &x, &pod->overhead); break;
        case SPEC_SPREAD: spread_read(in, &x, pod); break;
        case SPEC_GATES: pod->gated = true; break;
        case SPEC_DEVICES: pod->devices = true; break;
        case SPEC_RESOURCES: pod->pod_level = requests_read(in, &x); break;
        case SPEC_GROUP: pod->group = first_text(in, &x); break;
        default: break;
        }
    in->bad |= r.bad;
}

static void status_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod)
{
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        if (x.number == STATUS_CONTAINERS || x.number == STATUS_INITS)
            actual_read(in, &x, pod);
    in->bad |= r.bad;
}

/* Parses the condition PodScheduled: since when it is True, or the message why it is False. */
static void scheduled_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod_facts *facts)
{
    struct proto_text type = {0}, status = {0}, message = {0};
    int64_t since_ns = 0;
    struct proto_reader r = proto_sub(f);
    struct proto_field x;
    while (proto_next(&r, &x))
        switch (x.number) {
        case CONDITION_TYPE: type = proto_text(&x); break;
        case CONDITION_STATUS: status = proto_text(&x); break;
        case CONDITION_SINCE: since_ns = kube_time_ns(in, &x); break;
        case CONDITION_MESSAGE: message = proto_text(&x); break;
        default: break;
        }
    if (!proto_is(type, "PodScheduled"))
        return;
    if (proto_is(status, "False"))
        facts->refusal = message;
    else if (proto_is(status, "True"))
        facts->bound_ns = since_ns;
}

static bool has_resources(struct proto_reader container)
{
    struct proto_field x;
    while (proto_next(&container, &x))
        if (x.number == ACTUAL_RESOURCES)
            return true;
    return false;
}

static void facts_of_status(struct kube_decoder *in, struct kube_pod_facts *facts, const struct proto_field *x)
{
    switch (x->number) {
    case STATUS_PHASE: facts->ended = proto_is(proto_text(x), "Succeeded") || proto_is(proto_text(x), "Failed"); break;
    case STATUS_CONDITIONS: scheduled_read(in, x, facts); break;
    case STATUS_NOMINATED: facts->nominated = proto_text(x); break;
    case STATUS_CONTAINERS:
    case STATUS_INITS: facts->resources |= has_resources(proto_sub(x)); break;
    default: break;
    }
}

bool kube_pod_facts_read(struct proto_reader object, struct kube_pod_facts *ret)
{
    struct kube_pod_facts facts = {0};
    struct kube_decoder in = {0};
    struct proto_field f, x;
    while (proto_next(&object, &f)) {
        struct proto_reader r = f.number <= POD_STATUS ? proto_sub(&f) : proto_reader(NULL, 0);
        while (proto_next(&r, &x)) {
            if (f.number == POD_META)
                kube_meta_times(&in, &x, &facts.created_ns, &facts.deleted_ns);
            else if (f.number == POD_SPEC && x.number == SPEC_NODE)
                facts.node = proto_text(&x);
            else if (f.number == POD_STATUS)
                facts_of_status(&in, &facts, &x);
        }
        in.bad |= r.bad;
    }
    if (object.bad || in.bad)
        return false;
    *ret = facts;
    return true;
}

bool kube_pod_read(struct arena *arena, struct proto_reader object, struct kube_pod *ret)
{
    struct kube_decoder in = {.arena = arena};
    struct kube_pod pod = {.meta = KUBE_META_NONE, .scheduler = "", .group = ""};
    struct proto_field f;
    while (proto_next(&object, &f))
        switch (f.number) {
        case POD_META: pod.meta = kube_meta_read(&in, &f); break;
        case POD_SPEC: spec_read(&in, &f, &pod); break;
        case POD_STATUS: status_read(&in, &f, &pod); break;
        default: break;
        }
    if (object.bad || in.bad)
        return false;
    const char *label = kube_labels_find(&pod.meta.labels, "scheduling.x-k8s.io/pod-group");
    if (!*pod.group && label) {
        pod.group = label;
        pod.group_by_label = true;
    }
    const char *min = kube_labels_find(&pod.meta.labels, "pod-group.scheduling.sigs.k8s.io/min-available");
    min = min ? min : kube_labels_find(&pod.meta.notes, "pod-group.scheduling.sigs.k8s.io/min-available");
    int64_t number;
    if (pod.group_by_label && min && str_parse_i64(min, &number) && number > 0 && number <= BERTH_REPLICAS_MAX)
        pod.group_min = (uint32_t)number;
    pod.requests = kube_pod_requests(arena, &pod);
    *ret = pod;
    return true;
}
