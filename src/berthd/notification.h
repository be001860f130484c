/* notification.h - delivers notifications about jobs: by HTTP, by a mail program, or by SMTP. See
 * control/job/notification.h.
 */
#pragma once

#include "control/job/notification.h"

/* Blocks for some seconds at most, on any thread. `detail` says what went wrong and is for the log. `err` has the same
 * text for all errors that could reveal something about the network: names, addresses, ports. */
int notification_send(const struct notification_delivery *p, struct berth_err *detail, struct berth_err *err);
