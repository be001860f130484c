/* clock.h - the system clocks, and times in the formats of the API server. */
#pragma once

#include <stdint.h>

#include "wire/doc/api.h"

int64_t kube_wall_ns(void);  /* since 1970 */
int64_t kube_clock_ns(void); /* monotonic like the loop's clock, but read now */

/* Returns the pause before a retry: one second after the first failure, doubling after each further one. */
#define KUBE_PAUSE_NS_MAX (INT64_C(60) * 1000000000)
int64_t kube_pause_ns(uint32_t failures_before);

/* metav1.MicroTime: "2026-03-01T12:00:00.250000Z", always six digits. */
const char *kube_micro_time(int64_t wall_ns, char buf[static TIMESTAMP_MAX]);
