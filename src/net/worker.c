/* worker.c - a worker thread for an event loop.
 *
 * Finished tasks wait in the worker's own list with an eventfd in the loop, not in loop_post, so that no callback
 * remains after the worker is freed.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/loop.h"

struct worker_job {
    struct worker_job *next;
    loop_call *work, *after;
    void *ctx;
};
struct worker_jobs {
    struct worker_job *first, **end; /* end: where the next job is linked */
};

struct worker {
    struct loop_source *source;
    int done_fd;
    pthread_t thread;
    pthread_mutex_t lock; /* protects all fields below */
    pthread_cond_t more;
    struct worker_jobs todo, done;
    bool stop;
};

static void jobs_init(struct worker_jobs *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void jobs_push(struct worker_jobs *list, struct worker_job *job)
{
    job->next = NULL;
    *list->end = job;
    list->end = &job->next;
}

static struct worker_job *jobs_pop(struct worker_jobs *list)
{
    struct worker_job *job = list->first;
    if (job && !(list->first = job->next))
        list->end = &list->first;
    return job;
}

static void jobs_done(struct worker_jobs *list)
{
    for (struct worker_job *job; (job = jobs_pop(list));)
        mem_free(job);
}

/* Waits for the next job. Returns NULL when the worker must stop. */
static struct worker_job *job_take(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    while (!w->todo.first && !w->stop)
        (void)pthread_cond_wait(&w->more, &w->lock);
    struct worker_job *job = w->stop ? NULL : jobs_pop(&w->todo);
    (void)pthread_mutex_unlock(&w->lock);
    return job;
}

static void *thread_main(void *ctx)
{
    struct worker *w = ctx;
    for (struct worker_job *job; (job = job_take(w));) {
        const uint64_t one = 1;
        job->work(job->ctx);
        (void)pthread_mutex_lock(&w->lock);
        jobs_push(&w->done, job);
        (void)pthread_mutex_unlock(&w->lock);
        ssize_t written = write(w->done_fd, &one, sizeof one);
        assert(written == sizeof one || errno == EAGAIN);
    }
    return NULL;
}

/* Handles one finished job per call, because the `after` callback may free the worker. */
static void done_ready(void *ctx, uint32_t events)
{
    struct worker *w = ctx;
    uint64_t count;

    (void)events;
    (void)pthread_mutex_lock(&w->lock);
    CLEANUP(mem) struct worker_job *job = jobs_pop(&w->done);
    if (!w->done.first)
        (void)!read(w->done_fd, &count, sizeof count);
    (void)pthread_mutex_unlock(&w->lock);
    if (job && job->after)
        job->after(job->ctx);
}

/* Ends the process: without a descriptor or a thread the process cannot work, and callers cannot recover, as with
 * memory. */
static _Noreturn void worker_start_failed(int code)
{
    (void)fprintf(stderr, "berth: cannot start a worker thread: %s\n", strerror(code));
    _Exit(EXIT_FAILURE);
}

struct worker *worker_new(struct loop *l)
{
    struct worker *w = mem_zalloc(sizeof *w);
    struct berth_err err;
    sigset_t all, old;

    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->more, NULL);
    jobs_init(&w->todo);
    jobs_init(&w->done);
    w->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->done_fd < 0)
        worker_start_failed(errno);
    if (loop_watch_fd(l, w->done_fd, EPOLLIN, done_ready, w, &w->source, &err) < 0)
        worker_start_failed(err.code);
    /* The loop's thread handles all signals. */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    int rc = pthread_create(&w->thread, NULL, thread_main, w);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc)
        worker_start_failed(rc);
    return w;
}

void worker_run(struct worker *w, loop_call *work, loop_call *after, void *ctx)
{
    struct worker_job *job = mem_alloc(sizeof *job);
    *job = (struct worker_job){.work = work, .after = after, .ctx = ctx};
    (void)pthread_mutex_lock(&w->lock);
    jobs_push(&w->todo, job);
    (void)pthread_cond_signal(&w->more);
    (void)pthread_mutex_unlock(&w->lock);
}

static void worker_stop(struct worker *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->more);
    (void)pthread_mutex_unlock(&w->lock);
}

void worker_detach(struct worker *w)
{
    worker_stop(w);
    (void)pthread_detach(w->thread);
    loop_source_free(w->source);
}

void worker_free(struct worker *w)
{
    if (!w)
        return;
    worker_stop(w);
    (void)pthread_join(w->thread, NULL);
    loop_source_free(w->source);
    (void)close(w->done_fd);
    (void)pthread_cond_destroy(&w->more);
    (void)pthread_mutex_destroy(&w->lock);
    jobs_done(&w->todo);
    jobs_done(&w->done);
    mem_free(w);
}
