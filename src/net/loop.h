/* loop.h - an event loop: one thread, one epoll, with file descriptors, timers, signals, and messages from other
 * threads.
 *
 * All callbacks run on the thread that runs the loop. Time is the monotonic clock in nanoseconds, read once per round.
 * The loop knows nothing of HTTP (see net/http/http.h) or of clusters.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct loop;
struct loop_source; /* a file descriptor, a timer or a signal */

int loop_new(struct loop **ret, struct berth_err *err);
void loop_free(struct loop *l); /* also frees the remaining sources; accepts NULL */

/* Runs rounds until loop_stop is called. */
int loop_run(struct loop *l, struct berth_err *err);
/* Runs one round: waits at most timeout_ns (negative: no limit) for an event. */
int loop_once(struct loop *l, int64_t timeout_ns, struct berth_err *err);
void loop_stop(struct loop *l);
/* Returns the time of the current round on the monotonic clock. */
int64_t loop_now_ns(const struct loop *l);

typedef void loop_ready(void *ctx, uint32_t events); /* events: EPOLLIN and similar flags */
typedef void loop_call(void *ctx);

/* Calls `ready` when the descriptor has events; level-triggered. The caller keeps ownership of the descriptor. */
int loop_watch_fd(struct loop *l, int fd, uint32_t events, loop_ready *ready, void *ctx, struct loop_source **ret,
                  struct berth_err *err);
void loop_set_events(struct loop_source *s, uint32_t events);

/* Creates a timer, which calls once at the time given to loop_timer_set. To repeat, set the timer again. INT64_MAX
 * disables the timer. */
struct loop_source *loop_timer_new(struct loop *l, loop_call *call, void *ctx);
void loop_timer_set(struct loop_source *s, int64_t at_ns);

/* Calls `call` when the process receives this signal, and blocks the signal's normal delivery. Must be called before
 * any thread starts. */
int loop_signal(struct loop *l, int signo, loop_call *call, void *ctx, struct loop_source **ret, struct berth_err *err);

/* Handles the signals of a service for the lifetime of the loop: SIGTERM and SIGINT call `stop`, SIGHUP calls
 * `hangup_received`. */
int loop_service_signals(struct loop *l, loop_call *stop, loop_call *hang_up, void *ctx, struct berth_err *err);

/* Frees a source. May be called from the source's own callback; accepts NULL. */
void loop_source_free(struct loop_source *s);

/* Schedules `call` on the loop's thread. May be called from any thread. Calls run in the order in which they were
 * posted. */
void loop_post(struct loop *l, loop_call *call, void *ctx);

/* A worker thread for tasks that would block the loop. The worker runs tasks one at a time and in order: `work` on the
 * worker thread, then `after` on the loop's thread. */
struct worker;
struct worker *worker_new(struct loop *l);
void worker_run(struct worker *w, loop_call *work, loop_call *after, void *ctx);
/* Detaches the worker without waiting, for a process that is about to exit while a blocking call does not return. The
 * thread and the worker are never freed. */
void worker_detach(struct worker *w);
void worker_free(struct worker *w); /* waits for the running task; `after` of unfinished tasks is not called */
