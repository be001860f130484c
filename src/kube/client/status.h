/* status.h - what the API server answers when it will not: a Status object, as a code and a sentence. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* What an HTTP status and a body (a Status in JSON or protobuf, or anything) mean: the code as in struct kube_answer
 * (kube/client/api.h), and a sentence in *err when it is not 0. With status 0 the Status' own code counts: so an error looks in
 * a watch. */
int kube_status_code(int status, const char *body, size_t len, struct berth_err *err);
