/* session.h - sessions: commands that run beside an instance, opened, read and written by a client; and names of pods.
 *
 * The daemon relays the bytes (docs/node-config.md, "Sessions"). Reading the output blocks its thread; another thread
 * with its own connection (api_clone) writes the input. The functions return an enum exit_code and print errors.
 */
#pragma once

#include "base/mem.h"
#include "cli/lib/api.h"
#include "cli/show/collection.h"

/* "APP", "JOB", "APP/ORDINAL", "job/17/0", "instance/12", "12": a job if one has this number, otherwise an instance. */
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
/* Parses a pod name; asks the server what a plain number means. */
int pod_name_read(struct api *a, const char *text, struct pod_name *ret);

/* One pod of a workload. */
struct listed_pod {
    char label[ID_TEXT_MAX]; /* "photos.alice/0" */
    char instance[24];
    uint32_t ordinal;
    char state[24];
};
struct listed_pods {
    struct listed_pod *at;
    size_t len, cap;
};
static inline void pods_cleanup(struct listed_pods *p)
{
    mem_free(p->at);
}
/* Lists the pods of a name, sorted by ordinal. For each ordinal a running instance is preferred, then the newest. The
 * list may be empty. */
int pods_list(struct api *a, const struct pod_name *name, struct listed_pods *ret);
/* Finds the running pod of a name. If several run: with `any` the first one, otherwise an error. */
int pod_running(struct api *a, const char *text, bool any, struct listed_pod *ret);

/* Opens a second connection to the same server, for another thread. `a` must outlive *ret. */
int api_clone(const struct api *a, struct api *ret);

struct pod_session {
    char path[64]; /* "/v1/calls/ID" */
};
/* Opens a session by POST /v1/instances/ID/exec. */
int pod_session_open(struct api *a, const struct listed_pod *pod, const json_t *body, struct pod_session *ret);

struct pod_session_output {
    void *ctx;
    /* Both return false to end the session. */
    bool (*out)(void *ctx, const char *at, size_t len);
    bool (*err)(void *ctx, const char *at, size_t len);
};
/* Passes the output on until the command ends; *ret_exit is the command's exit code. */
int pod_session_read(struct api *a, const struct pod_session *e, const struct pod_session_output *ear, int *ret_exit);
/* Sends input and waits until the agent has accepted it. Returns EXIT_NOT_FOUND, without a message, if the command has
 * ended. */
int pod_session_write(struct api *a, const struct pod_session *e, const void *at, size_t len, bool eof);

/* Runs a command to its end and discards its output. */
int pod_session_run(struct api *a, const struct listed_pod *pod, const char *const *command, int *ret_exit);
/* Returns a JSON array of words, a new reference; prints an error and returns NULL if a word is not UTF-8. */
json_t *words_json(const struct cli *cli, const char *const *words, size_t len);
