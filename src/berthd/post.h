/* post.h - sends what people are told of their jobs: by HTTP, by a program for mail, or by SMTP. See control/notice.h. */
#pragma once

#include "control/notice.h"

/* For struct control_post; blocks for some seconds at most, on any thread. */
int post_send(void *ctx, const struct notice_post *p, struct berth_err *err);
