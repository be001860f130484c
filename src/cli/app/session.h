/* session.h - commands that run beside an instance, from this side: opened, heard, fed. And how pods are named.
 *
 * The daemon carries the bytes (docs/node-config.md, "Errands"). Whoever listens blocks; whoever feeds it meanwhile is
 * another thread with a connection of its own (api_twin). Functions return an enum exit_code; what failed has been told.
 */
#pragma once

#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/show/collection.h"

/* "APP", "JOB", "APP/ORDINAL", "job/17/0", "instance/12", "12": a job if there is one, else an instance. */
struct pod_name {
    char kind[16]; /* "app", "job", "vm", "instance" */
    char *id;
    bool has_ordinal;
    uint32_t ordinal;
};
static inline void pod_name_cleanup(struct pod_name *n)
{
    mem_free(n->id);
}
/* Asks the server what a number is. */
int pod_name_read(struct api *a, const char *text, struct pod_name *ret);

/* One pod of a workload. */
struct pod {
    char label[ID_TEXT_MAX]; /* "photos.alice/0" */
    char instance[24];
    uint32_t ordinal;
    char state[24];
};
struct pods {
    struct pod *at;
    size_t len, cap;
};
static inline void pods_cleanup(struct pods *p)
{
    mem_free(p->at);
}
/* What the name means, sorted by ordinal; the newest of each, those that run before others. May be none. */
int pods_list(struct api *a, const struct pod_name *name, struct pods *ret);
/* The one that runs; with `any` the first of several, else that is refused. */
int pod_running(struct api *a, const char *text, bool any, struct pod *ret);

/* The same server for another thread. What it is a twin of must outlive it. */
int api_twin(const struct api *a, struct api *ret);

struct remote {
    char path[64]; /* "/v1/calls/ID" */
};
/* POST /v1/instances/ID/exec. */
int remote_open(struct api *a, const struct pod *pod, const json_t *body, struct remote *ret);

struct remote_ear {
    void *ctx;
    /* Each returns false to hang up. */
    bool (*out)(void *ctx, const char *at, size_t len);
    bool (*err)(void *ctx, const char *at, size_t len);
};
/* Until its end; *ret_exit is the command's own code. */
int remote_hear(struct api *a, const struct remote *e, const struct remote_ear *ear, int *ret_exit);
/* Waits until it is taken. EXIT_NOT_FOUND, not told: it has ended. */
int remote_feed(struct api *a, const struct remote *e, const void *at, size_t len, bool eof);

/* A simple command to its end: its output is thrown away. */
int remote_run(struct api *a, const struct pod *pod, const char *const *command, int *ret_exit);
/* A list of words as JSON; a new reference. NULL, told: one of them is not UTF-8. */
json_t *words_json(const struct cli *cli, const char *const *words, size_t len);
