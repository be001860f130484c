/* clock.c - reads clock_gettime and formats metav1.MicroTime. */
#include "kube/client/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static int64_t clock_of(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

int64_t kube_wall_ns(void)
{
    return clock_of(CLOCK_REALTIME);
}

int64_t kube_clock_ns(void)
{
    return clock_of(CLOCK_MONOTONIC);
}

const char *kube_micro_time(int64_t wall_ns, char buf[static TIMESTAMP_MAX])
{
    int64_t fraction = wall_ns % SECOND_NS;
    (void)timestamp_text(wall_ns - fraction, buf);
    size_t len = strlen(buf) - 1; /* without the Z */
    (void)snprintf(buf + len, TIMESTAMP_MAX - len, ".%06dZ", (int)(fraction / 1000));
    return buf;
}

int64_t kube_pause_ns(uint32_t failures_before)
{
    enum { DOUBLINGS_MAX = 6 }; /* then the pause exceeds the maximum */
    int64_t pause_ns = INT64_C(1000000000) << (failures_before < DOUBLINGS_MAX ? failures_before : DOUBLINGS_MAX);
    return pause_ns < KUBE_PAUSE_NS_MAX ? pause_ns : KUBE_PAUSE_NS_MAX;
}
