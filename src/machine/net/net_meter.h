/* net_meter.h - counts what a control group sends and receives, gives what it sends a class, and bounds what it receives.
 *
 * Two small programs that the kernel runs for every packet of the group's sockets (BPF, cgroup_skb), and one page of memory
 * that they share with the agent. They need a cgroup v2 hierarchy, which may be one without controllers beside v1. They stay
 * with the group when the agent ends, and go with it; net_meter_open finds them again, so that nothing is counted twice or
 * lost. Loopback does not count. Sockets that another made and handed over are that other's.
 *
 * Who may send how fast is not decided here: the class is a number that the queue of the device knows (net_class.h).
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct net_meter;

/* `group`: a folder of a cgroup v2 hierarchy. Takes the meter that is on it, or puts one there. -EOPNOTSUPP: this kernel cannot,
 * or the agent may not. */
int net_meter_open(const char *group, struct net_meter **ret, struct berth_err *err);
/* The meter that is on it; -ENOENT: there is none. */
int net_meter_find(const char *group, struct net_meter **ret);
void net_meter_close(struct net_meter *m); /* the programs stay with the group; NULL is fine */

/* Of what is sent from now on: the handle of a class (net_class.h); 0: none. */
void net_meter_class(struct net_meter *m, uint32_t handle);
uint32_t net_meter_class_now(const struct net_meter *m);
/* Received at most, in bytes a second: what comes faster is dropped, and TCP slows down. 0: no bound. */
void net_meter_bound(struct net_meter *m, int64_t bytes_per_s);

/* Bytes since the meter was put there. */
struct net_counts {
    int64_t in, out;
};
struct net_counts net_meter_counts(const struct net_meter *m);

/* Where a period of counting began, kept beside the counts for whoever comes after this agent; zeroes at first. */
struct net_base {
    int64_t bytes, since_ns;
};
void net_meter_rebase(struct net_meter *m, struct net_base base);
struct net_base net_meter_base(const struct net_meter *m);
