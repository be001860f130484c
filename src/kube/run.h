/* run.h - berth-kube as a whole: watches, projection, lease, scheduler, put together and run until a signal. */
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "kube/options.h"

int kube_run(const struct kube_options *options, FILE *out, const struct log *log, struct berth_err *err);
