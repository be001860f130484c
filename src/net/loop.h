/* loop.h - one thread, one epoll: descriptors, timers, signals, and word from other threads.
 *
 * Everything calls back on the thread that runs the loop. Time is the monotonic clock in nanoseconds, read once per
 * round. Nothing of HTTP here (net/http/http.h), nothing of the domain.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct loop_source; /* a descriptor, a timer or a signal */

int loop_new(struct loop **ret, struct berth_err *err);
void loop_free(struct loop *l); /* sources that are left are freed too; NULL is fine */

/* Rounds until loop_stop. */
int loop_run(struct loop *l, struct berth_err *err);
/* One round: waits at most timeout_ns (negative: for ever) for something to do. */
int loop_once(struct loop *l, int64_t timeout_ns, struct berth_err *err);
void loop_stop(struct loop *l);
/* Of this round, on the monotonic clock. */
int64_t loop_now_ns(const struct loop *l);

typedef void loop_ready(void *ctx, uint32_t events); /* EPOLLIN and its kin */
typedef void loop_call(void *ctx);

/* The descriptor stays the caller's; level-triggered. */
int loop_watch_fd(struct loop *l, int fd, uint32_t events, loop_ready *ready, void *ctx, struct loop_source **ret,
                  struct berth_err *err);
void loop_set_events(struct loop_source *s, uint32_t events);

/* Calls once at the time given by loop_timer_set; set again to call again. INT64_MAX: not at all. */
struct loop_source *loop_timer_new(struct loop *l, loop_call *call, void *ctx);
void loop_timer_set(struct loop_source *s, int64_t at_ns);

/* Calls when the process gets this signal, which is blocked for other uses. Before any thread is started. */
int loop_signal(struct loop *l, int signo, loop_call *call, void *ctx, struct loop_source **ret, struct berth_err *err);

/* What a service hears: SIGTERM and SIGINT call `stop`, SIGHUP `hang_up`, for as long as the loop lives. */
int loop_service_signals(struct loop *l, loop_call *stop, loop_call *hang_up, void *ctx, struct berth_err *err);

/* May be freed from its own callback; NULL is fine. */
void loop_source_free(struct loop_source *s);

/* From any thread: `call` will run on the loop's thread. In order of posting. */
void loop_post(struct loop *l, loop_call *call, void *ctx);

/* Work that would hold up the loop runs on a thread beside it, one at a time and in order: `work` there, then `after`
 * here. */
struct worker;
struct worker *worker_new(struct loop *l);
void worker_run(struct worker *w, loop_call *work, loop_call *after, void *ctx);
/* The same without waiting, for a process that is about to end while a call of somebody else's does not return: thread and worker
 * stay behind. */
void worker_leave(struct worker *w);
void worker_free(struct worker *w); /* waits for what runs; `after` of unfinished work is not called */
