/* mail.h - hands one mail to a server by SMTP, and waits until it has taken it. Fronts libcurl. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct mail {
    const char *server;    /* "smtp://mail.example.org:25", or smtps:// */
    const char *from, *to; /* addresses alone, without control characters */
    const char *text;      /* head and body, lines ended by CRLF */
    int64_t timeout_ns;
};

/* -EINVAL for an address of a server that is none; else what went wrong with it. */
int mail_send(const struct mail *m, struct berth_err *err);
