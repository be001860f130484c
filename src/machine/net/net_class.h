/* net_class.h - bandwidth of sent traffic: classes of a network device's HTB qdisc, configured by netlink.
 *
 * A class has a weight, which determines its share under contention, and optionally a maximum rate. Unclassified
 * traffic shares with weight 100. The qdisc exists only while there are classes; a foreign qdisc on the device is left
 * alone. net_meter.h assigns packets to classes.
 *
 * Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct net_classes;

/* Changes nothing on the device yet. `capacity`: its send rate in bytes per second; 0: unknown, weights are then
 * rejected. -ENODEV: no such device. */
int net_classes_open(const char *device, int64_t capacity, struct net_classes **ret, struct berth_err *err);
void net_classes_close(struct net_classes *c); /* keeps the classes; NULL is fine */
/* Like net_classes_close, but removes the qdisc with all classes. */
void net_classes_end(struct net_classes *c);
const char *net_classes_device(const struct net_classes *c);

enum { NET_WEIGHT_DEFAULT = 100, NET_CLASSES_MAX = 4096, NET_CLASS_FIRST = 0xbe0003 };

/* Creates or changes a class, which also changes the shares of the others. `weight` 0: default, 100; `bound` in bytes
 * per second, 0: none. `handle` is chosen by the caller, from NET_CLASS_FIRST up, and may be that of a class from
 * before this process. -EOPNOTSUPP: the capacity is unknown; -EBUSY: foreign qdisc; -ENOSPC: too many classes. On
 * failure nothing has changed. */
int net_class_put(struct net_classes *c, uint32_t handle, int64_t weight, int64_t bound, struct berth_err *err);
/* Removes a class, and with the last one the qdisc. Success if there is no such class. */
void net_class_drop(struct net_classes *c, uint32_t handle);

/* Tells whether the configuration is still in force. False: the device is gone or was replaced, or the qdisc was
 * removed; the caller then opens a new object and configures it again. One kernel request. */
bool net_classes_hold(struct net_classes *c);

/* Return the device of the default route, "" if there is none; and a device's speed in bytes per second, 0 if
 * unknown. */
enum { NET_DEVICE_MAX = 16 };
const char *net_uplink(char ret[static NET_DEVICE_MAX]);
int64_t net_speed(const char *device);
