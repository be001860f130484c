/* net_class.h - who may send how fast: classes of the queue of a network device (HTB), made by netlink.
 *
 * A class has a weight, by which what is fought over is shared out, and may have a bound of its own that it never goes above.
 * What is not in a class shares as if it had the weight 100. The queue is there only while there are classes; one that
 * somebody else has put on the device is left alone. Which packets are of which class is not known here (net_meter.h).
 *
 * Not for several threads at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct net_classes;

/* Touches nothing yet. `capacity`: what the device sends in bytes a second; 0: not known, then weights are refused. -ENODEV: no
 * such device. */
int net_classes_open(const char *device, int64_t capacity, struct net_classes **ret, struct berth_err *err);
void net_classes_close(struct net_classes *c); /* leaves the classes; NULL is fine */
/* The same, and takes the queue away with all classes. */
void net_classes_end(struct net_classes *c);
const char *net_classes_device(const struct net_classes *c);

enum { NET_WEIGHT_DEFAULT = 100, NET_CLASSES_MAX = 4096, NET_CLASS_FIRST = 0xbe0003 };

/* Makes a class, or changes it, and with it the shares of the others. `weight` 0: none, as 100; `bound` in bytes a second, 0: none.
 * `handle` is the caller's number for it, from NET_CLASS_FIRST on, also of one that was made before this process was. -EOPNOTSUPP: the
 * capacity is not known; -EBUSY: the queue is somebody else's; -ENOSPC: too many. On failure there is no such class, or it is as it
 * was. */
int net_class_put(struct net_classes *c, uint32_t handle, int64_t weight, int64_t bound, struct berth_err *err);
/* No class of this number is fine. With the last one the queue goes. */
void net_class_drop(struct net_classes *c, uint32_t handle);

/* Is what was put still in force? False: the device has gone, or is another one of that name, or somebody has taken the queue away. Then all is to be
 * put anew, in other net_classes. One question to the kernel. */
bool net_classes_hold(struct net_classes *c);

/* The device of the default route, "" if there is none, and its speed in bytes a second, 0 if it does not tell. */
enum { NET_DEVICE_MAX = 16 };
const char *net_uplink(char ret[static NET_DEVICE_MAX]);
int64_t net_speed(const char *device);
