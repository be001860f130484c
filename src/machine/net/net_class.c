/* net_class.c - an HTB qdisc with a class for each instance, configured by rtnetlink. */
#include "machine/net/net_class.h"

#include <assert.h>
#include <errno.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/launch/state_file.h"

enum {
    QUEUE = 0xbe0000, /* handle of the qdisc, be: */
    ALL = QUEUE | 1,  /* parent of all other classes */
    REST = QUEUE | 2, /* default class, for unclassified packets */
    MESSAGE_MAX = 1024,
    ANSWER_MAX = 16384,
    PACKET_MAX = 1600,
    QUANTUM_MIN = 65536, /* size of a packet before segmentation offload */
    QUANTUM_MAX = 32 * QUANTUM_MIN,
    RATE_MIN = 1000,
    TICK_SHIFT = 6, /* the kernel's ticks of 64 ns */
};
#define SECOND_NS INT64_C(1000000000)
#define RATE_MAX (INT64_C(100) * 125000000) /* 100 Gbit/s, if the capacity is unknown */
#define BURST_PER_S 100                     /* a burst is the amount sent in 1/100 s */

struct traffic_class {
    uint32_t handle;
    int64_t weight, bound;
};

struct net_classes {
    char device[NET_DEVICE_MAX];
    int ifindex, socket;
    uint32_t seq;
    int64_t capacity;
    bool queued; /* the qdisc exists and is ours */
    VEC(struct traffic_class) at;
};

/* ---- netlink ---------------------------------------------------------------------------------------------------- */

struct tc_message {
    struct nlmsghdr head;
    struct tcmsg tc;
    char rest[MESSAGE_MAX];
};

static struct tc_message message(const struct net_classes *c, uint16_t type, uint16_t flags, uint32_t parent,
                                 uint32_t handle)
{
    return (struct tc_message){
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct tcmsg)),
                 .nlmsg_type = type,
                 .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags)                               },
        .tc = { .tcm_family = AF_UNSPEC,                      .tcm_ifindex = c->ifindex, .tcm_parent = parent, .tcm_handle = handle},
    };
}

static struct rtattr *put(struct tc_message *m, uint16_t type, const void *data, size_t len)
{
    struct rtattr *a = (struct rtattr *)(void *)((char *)m + NLMSG_ALIGN(m->head.nlmsg_len));
    assert(NLMSG_ALIGN(m->head.nlmsg_len) + RTA_SPACE(len) <= sizeof *m);
    a->rta_type = type;
    a->rta_len = (uint16_t)RTA_LENGTH(len);
    if (len)
        memcpy(RTA_DATA(a), data, len);
    m->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(m->head.nlmsg_len) + RTA_ALIGN(a->rta_len));
    return a;
}

/* Ends a nested attribute: attributes added since it was put belong to it. */
static void nest_end(const struct tc_message *m, struct rtattr *nest)
{
    nest->rta_len = (uint16_t)((const char *)m + m->head.nlmsg_len - (const char *)nest);
}

/* Sends a request and receives its answers: calls `each` for every message of a list. Returns 0 or the kernel's
 * -errno. */
static int netlink_request(struct net_classes *c, struct tc_message *m,
                           void (*each)(void *ctx, const struct nlmsghdr *h), void *ctx)
{
    char buf[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
    m->head.nlmsg_seq = ++c->seq;
    if (send(c->socket, m, m->head.nlmsg_len, 0) < 0)
        return -errno;
    for (;;) {
        ssize_t len = recv(c->socket, buf, sizeof buf, 0);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0)
            return -errno;
        unsigned left = (unsigned)len;
        for (const struct nlmsghdr *h = (const void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            if (h->nlmsg_seq != c->seq)
                continue;
            if (h->nlmsg_type == NLMSG_ERROR)
                return ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
            if (h->nlmsg_type == NLMSG_DONE)
                return 0;
            if (each)
                each(ctx, h);
        }
    }
}

/* ---- qdisc ------------------------------------------------------------------------------------------------------ */

struct root_qdisc {
    int ifindex;
    uint32_t handle;
    bool is_htb;
};

static void root_qdisc_parse(void *ctx, const struct nlmsghdr *h)
{
    struct root_qdisc *root = ctx;
    const struct tcmsg *tc = NLMSG_DATA(h);
    if (h->nlmsg_type != RTM_NEWQDISC || tc->tcm_ifindex != root->ifindex || tc->tcm_parent != TC_H_ROOT)
        return;
    root->handle = tc->tcm_handle;
    unsigned left = (unsigned)(h->nlmsg_len - NLMSG_LENGTH(sizeof *tc));
    for (const struct rtattr *a = TCA_RTA(tc); RTA_OK(a, left); a = RTA_NEXT(a, left))
        if (a->rta_type == TCA_KIND)
            root->is_htb = strcmp(RTA_DATA(a), "htb") == 0;
}

static int root_qdisc_get(struct net_classes *c, struct root_qdisc *ret)
{
    struct tc_message dump = message(c, RTM_GETQDISC, NLM_F_DUMP, 0, 0);
    *ret = (struct root_qdisc){.ifindex = c->ifindex};
    return netlink_request(c, &dump, root_qdisc_parse, ret);
}

bool net_classes_hold(struct net_classes *c)
{
    struct root_qdisc root;
    if (if_nametoindex(c->device) != (unsigned)c->ifindex)
        return false;
    return !c->queued || (root_qdisc_get(c, &root) == 0 && root.handle == QUEUE && root.is_htb);
}

static int class_send(struct net_classes *c, uint32_t handle, uint32_t parent, int64_t rate, int64_t ceil,
                      int64_t quantum)
{
    struct tc_message m = message(c, RTM_NEWTCLASS, NLM_F_CREATE, parent, handle);
    uint64_t rate64 = (uint64_t)rate, ceil64 = (uint64_t)ceil;
    int64_t burst = rate / BURST_PER_S > 4 * PACKET_MAX ? rate / BURST_PER_S : 4 * PACKET_MAX;
    int64_t ceil_burst = ceil / BURST_PER_S > 4 * PACKET_MAX ? ceil / BURST_PER_S : 4 * PACKET_MAX;
    struct tc_htb_opt options = {
        .rate = {.rate = rate > UINT32_MAX ? UINT32_MAX : (uint32_t)rate, .linklayer = TC_LINKLAYER_ETHERNET},
        .ceil = {.rate = ceil > UINT32_MAX ? UINT32_MAX : (uint32_t)ceil, .linklayer = TC_LINKLAYER_ETHERNET},
        .buffer = (uint32_t)(burst * (SECOND_NS >> TICK_SHIFT) / rate),
        .cbuffer = (uint32_t)(ceil_burst * (SECOND_NS >> TICK_SHIFT) / ceil),
        .quantum = (uint32_t)quantum,
    };
    put(&m, TCA_KIND, "htb", sizeof "htb");
    struct rtattr *nest = put(&m, TCA_OPTIONS, NULL, 0);
    put(&m, TCA_HTB_PARMS, &options, sizeof options);
    put(&m, TCA_HTB_RATE64, &rate64, sizeof rate64);
    put(&m, TCA_HTB_CEIL64, &ceil64, sizeof ceil64);
    nest_end(&m, nest);
    return netlink_request(c, &m, NULL, NULL);
}

/* Adds fq_codel, so that the flows of a class do not block each other. A kernel without it keeps a FIFO there. */
static void leaf_send(struct net_classes *c, uint32_t handle)
{
    struct tc_message m = message(c, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, handle, 0);
    put(&m, TCA_KIND, "fq_codel", sizeof "fq_codel");
    (void)netlink_request(c, &m, NULL, NULL);
}

static void queue_remove(struct net_classes *c)
{
    struct tc_message m = message(c, RTM_DELQDISC, 0, TC_H_ROOT, QUEUE);
    if (c->queued)
        (void)netlink_request(c, &m, NULL, NULL);
    c->queued = false;
}

static int queue_make(struct net_classes *c)
{
    struct tc_message m = message(c, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, TC_H_ROOT, QUEUE);
    struct tc_htb_glob options = {.version = 3, .rate2quantum = 10, .defcls = c->capacity ? REST & 0xffff : 0};
    put(&m, TCA_KIND, "htb", sizeof "htb");
    struct rtattr *nest = put(&m, TCA_OPTIONS, NULL, 0);
    put(&m, TCA_HTB_INIT, &options, sizeof options);
    nest_end(&m, nest);
    return netlink_request(c, &m, NULL, NULL);
}

/* Finds the qdisc of an earlier agent, or creates it. The kernel's default qdisc has handle 0. */
static int queue_ensure(struct net_classes *c)
{
    struct root_qdisc root;
    if (c->queued)
        return 0;
    int rc = root_qdisc_get(c, &root);
    if (rc < 0)
        return rc;
    if (root.handle && (root.handle != QUEUE || !root.is_htb))
        return -EBUSY;
    int64_t all = c->capacity ? c->capacity : RATE_MAX;
    if (!root.handle)
        rc = queue_make(c);
    if (rc < 0)
        return rc;
    c->queued = true;
    rc = class_send(c, ALL, QUEUE, all, all, QUANTUM_MAX);
    if (rc == 0 && c->capacity)
        rc = class_send(c, REST, ALL, all, all, QUANTUM_MAX);
    if (rc == 0 && c->capacity)
        leaf_send(c, REST);
    if (rc < 0)
        queue_remove(c);
    return rc;
}

/* ---- shares ----------------------------------------------------------------------------------------------------- */

static int64_t weight_of(const struct traffic_class *k)
{
    return k->weight ? k->weight : NET_WEIGHT_DEFAULT;
}

static int64_t within(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static int share_send(struct net_classes *c, uint32_t handle, int64_t weight, int64_t bound, int64_t sum,
                      int64_t smallest)
{
    int64_t all = c->capacity ? c->capacity : RATE_MAX, ceil = bound && bound < all ? bound : all;
    int64_t rate = c->capacity ? (int64_t)((__int128)all * weight / sum) : ceil;
    ceil = within(ceil, RATE_MIN, RATE_MAX);
    return class_send(c, handle, ALL, within(rate, RATE_MIN, ceil), ceil,
                      within(weight * QUANTUM_MIN / smallest, QUANTUM_MIN, QUANTUM_MAX));
}

/* Sends all classes: each is guaranteed its share, and unused bandwidth is shared out in the same proportions. */
static int shares_send(struct net_classes *c)
{
    int64_t sum = NET_WEIGHT_DEFAULT, smallest = NET_WEIGHT_DEFAULT;
    for (size_t i = 0; i < c->at.len; i++) {
        int64_t weight = weight_of(&c->at.at[i]);
        sum += weight;
        smallest = weight < smallest ? weight : smallest;
    }
    int rc = c->capacity ? share_send(c, REST, NET_WEIGHT_DEFAULT, 0, sum, smallest) : 0;
    for (size_t i = 0; rc == 0 && i < c->at.len; i++)
        rc = share_send(c, c->at.at[i].handle, weight_of(&c->at.at[i]), c->at.at[i].bound, sum, smallest);
    return rc;
}

/* ---- classes ---------------------------------------------------------------------------------------------------- */

static struct traffic_class *class_find(struct net_classes *c, uint32_t handle)
{
    for (size_t i = 0; handle && i < c->at.len; i++)
        if (c->at.at[i].handle == handle)
            return &c->at.at[i];
    return NULL;
}

static void class_delete(struct net_classes *c, uint32_t handle)
{
    struct tc_message m = message(c, RTM_DELTCLASS, 0, ALL, handle);
    (void)netlink_request(c, &m, NULL, NULL);
    for (size_t i = 0; i < c->at.len; i++)
        if (c->at.at[i].handle == handle)
            c->at.at[i--] = c->at.at[--c->at.len];
}

int net_class_put(struct net_classes *c, uint32_t handle, int64_t weight, int64_t bound, struct berth_err *err)
{
    struct traffic_class *known = class_find(c, handle), before = {0};
    const struct traffic_class fresh = {handle, weight, bound};
    assert((handle & 0xffff0000) == QUEUE && handle >= NET_CLASS_FIRST);
    if (weight && !c->capacity)
        return err_set(err, EOPNOTSUPP, "the capacity of the network is unknown; set it with --bandwidth of the agent");
    if (!known && c->at.len >= NET_CLASSES_MAX)
        return err_set(err, ENOSPC, "this node already has %d network limits", NET_CLASSES_MAX);
    int rc = queue_ensure(c);
    if (rc < 0)
        return err_set(err, -rc, "cannot use the queueing discipline of the network device: %s",
                       rc == -EBUSY ? "another program has set one" : strerror(-rc));
    if (known) {
        before = *known;
        *known = fresh;
    } else {
        vec_push(&c->at, fresh);
    }
    rc = shares_send(c);
    if (rc == 0 && !known) /* vectors: known is NULL if a class was pushed */
        leaf_send(c, handle);
    if (rc == 0)
        return 0;
    if (known)
        *class_find(c, handle) = before;
    else
        net_class_drop(c, handle);
    return err_set(err, -rc, "cannot set the limit on the network device: %s", strerror(-rc));
}

void net_class_drop(struct net_classes *c, uint32_t handle)
{
    bool ours = (handle & 0xffff0000) == QUEUE && handle >= NET_CLASS_FIRST;
    if (!ours || (!c->queued && queue_ensure(c) < 0))
        return;
    class_delete(c, handle);
    if (c->at.len)
        (void)shares_send(c);
    else
        queue_remove(c);
}

int net_classes_open(const char *device, int64_t capacity, struct net_classes **ret, struct berth_err *err)
{
    unsigned ifindex = if_nametoindex(device);
    if (!ifindex)
        return err_set(err, ENODEV, "this machine has no network device '%s'", device);
    CLEANUP(close_fd) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return err_set(err, errno, "cannot open a netlink socket: %s", strerror(errno));
    struct net_classes *c = mem_zalloc(sizeof *c);
    *c = (struct net_classes){
        .ifindex = (int)ifindex, .socket = take_fd(&fd), .capacity = capacity > RATE_MAX ? RATE_MAX : capacity};
    (void)snprintf(c->device, sizeof c->device, "%s", device);
    *ret = c;
    return 0;
}

void net_classes_close(struct net_classes *c)
{
    if (!c)
        return;
    close_fd_cleanup(&c->socket);
    vec_done(&c->at);
    mem_free(c);
}

void net_classes_end(struct net_classes *c)
{
    queue_remove(c);
    net_classes_close(c);
}

const char *net_classes_device(const struct net_classes *c)
{
    return c->device;
}

/* ---- uplink ----------------------------------------------------------------------------------------------------- */

/* Finds the default route with the lowest metric. Lines look like "eth0 00000000 0102A8C0 0003 ..."; destination and
 * mask 0 are a default route. */
const char *net_uplink(char ret[static NET_DEVICE_MAX])
{
    FILE *f = fopen("/proc/net/route", "re");
    char line[256], name[NET_DEVICE_MAX];
    unsigned destination, mask, best = UINT32_MAX, metric;
    *ret = '\0';
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%15s %x %*s %*s %*s %*s %u %x", name, &destination, &metric, &mask) == 4 && !destination &&
            !mask && metric < best) {
            best = metric;
            memcpy(ret, name, sizeof name);
        }
    if (f)
        (void)fclose(f);
    return ret;
}

int64_t net_speed(const char *device)
{
    char path[64], text[32] = "";
    (void)snprintf(path, sizeof path, "/sys/class/net/%.15s/speed", device);
    FILE *f = fopen(path, "re");
    int64_t megabits = f && fgets(text, sizeof text, f) ? strtoll(text, NULL, 10) : 0;
    if (f)
        (void)fclose(f);
    return megabits > 0 ? megabits * 125000 : 0;
}
