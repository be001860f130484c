/* mail.h - sends one mail by SMTP and waits until the server has accepted it. Wraps libcurl. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct mail {
    const char *server;    /* "smtp://mail.example.org:25", or smtps:// */
    const char *from, *to; /* plain addresses, without control characters */
    const char *text;      /* header and body, with CRLF line ends */
    int64_t timeout_ns;
};

/* Returns 0, -EINVAL for an invalid server address, or a negative errno for a failure of the transfer. */
int mail_send(const struct mail *m, struct berth_err *err);
