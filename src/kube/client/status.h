/* status.h - error answers of the API server (Status objects) as an error code and a message. */
#pragma once

#include <stddef.h>

#include "base/err.h"

/* Converts an HTTP status and a body (a Status in JSON or protobuf, or anything else) to a code as in struct
 * kube_answer (kube/client/api.h), with a message in *err if it is not 0. With status 0 the Status' own code counts, as
 * for errors in a watch. */
int kube_status_code(int status, const char *body, size_t len, struct berth_err *err);
