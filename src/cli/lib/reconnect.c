#include "cli/lib/reconnect.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

#define SECOND_NS INT64_C(1000000000)
#define PAUSE_NS_MIN (SECOND_NS / 4)
#define PAUSE_NS_MAX (SECOND_NS * 5)

int64_t reconnect_pause_ns(struct reconnect *r, int64_t now_ns)
{
    int64_t pause_ns = PAUSE_NS_MIN;

    if (!r->since_ns)
        r->since_ns = now_ns;
    int64_t left_ns = r->since_ns + RECONNECT_S_MAX * SECOND_NS - now_ns;
    if (left_ns <= 0)
        return -1;
    for (unsigned i = 0; i < r->attempts && pause_ns < PAUSE_NS_MAX; i++)
        pause_ns *= 2;
    r->attempts++;
    pause_ns = pause_ns < PAUSE_NS_MAX ? pause_ns : PAUSE_NS_MAX;
    return pause_ns < left_ns ? pause_ns : left_ns;
}

static void notice_lost(struct reconnect_notice *n, const struct api *a, const char *what, const char *reason)
{
    pthread_mutex_lock(&n->lock);
    if (n->away++ == 0) {
        cli_warn(a->cli, "%s was interrupted; reconnecting", what);
        cli_hint(a->cli, "%s", reason);
    }
    pthread_mutex_unlock(&n->lock);
}

bool reconnect_wait(struct reconnect *r, const struct api *a, const char *what, struct api_error *trouble)
{
    if (!r->since_ns)
        notice_lost(r->notice, a, what, trouble->err.text);
    int64_t pause_ns = reconnect_pause_ns(r, cli_clock_ns());
    if (pause_ns < 0) {
        CLEANUP(str) struct str last = {0};
        str_add(&last, trouble->err.text);
        *trouble = (struct api_error){.code = EXIT_UNREACHABLE};
        err_set(&trouble->err, ETIMEDOUT, "gave up: the server could not be reached for %d minutes: %s",
                RECONNECT_S_MAX / 60, str_text(&last));
        return false;
    }
    struct timespec left = {.tv_sec = pause_ns / SECOND_NS, .tv_nsec = pause_ns % SECOND_NS};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
    return true;
}

void reconnect_done(struct reconnect *r)
{
    if (!r->since_ns)
        return;
    pthread_mutex_lock(&r->notice->lock);
    r->notice->away--;
    pthread_mutex_unlock(&r->notice->lock);
    r->since_ns = 0;
    r->attempts = 0;
}
