/* run.h - the berth-kube process: watches, cache, lease and scheduler, wired together and run until a signal. */
#pragma once

#include <stdio.h>

#include "base/log.h"
#include "kube/options.h"

int kube_run(const struct kube_options *options, FILE *out, const struct log *log, struct berth_err *err);
