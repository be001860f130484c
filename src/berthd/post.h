/* post.h - sends what people are told of their jobs: by HTTP, by a program for mail, or by SMTP. See
 * control/job/notification.h. */
#pragma once

#include "control/job/notification.h"

/* Blocks for some seconds at most, on any thread. `detail` says what went wrong and is for the log; `err` has one
 * text for everything that could tell its reader about the network: names, addresses, ports. */
int post_send(const struct notice_post *p, struct berth_err *detail, struct berth_err *err);
