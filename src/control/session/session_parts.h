/* session_parts.h - the inside of a relay; for relay*.c only. */
#pragma once

#include "base/vec.h"
#include "control/control.h"
#include "control/session/session.h"
#include "control/watch/watch.h"

enum { ERRAND_ID_LEN = 16 };

enum errand_verb { ERRAND_LOGS, ERRAND_EXEC, ERRAND_SIGNAL };

/* A node's agent, as long as it is here or somebody waits for it. */
struct agent {
    struct relay *relay;
    char *node;
    uint64_t epoch;
    struct stream *stream; /* NULL: it is away */
    bool up;               /* the stream has begun */
    int64_t away_ns;       /* steady: since when */
    size_t errands;
};

struct errand {
    struct relay *relay;
    struct errand *next, **link;
    char id[ERRAND_ID_LEN + 1];
    enum errand_verb verb;
    char *user; /* who opened it */
    struct agent *agent;
    struct stream *stream; /* of who listens; NULL: nobody yet */
    struct call *asked;    /* waits for the agent's first word (a log) or its last (a signal) */
    struct call *brought;  /* by the agent: output that waits for room */
    struct call *input;    /* for the agent: waits for room */
    bool lines, headed;    /* a log goes as lines of JSON; the first line, with the instance, was sent */
    uint64_t instance;     /* whose log that is; 0: an OpTask's */
    bool eof;              /* no more input will be sent */
    bool resized;          /* to be told */
    uint32_t rows, columns;
    const char *why;  /* it must end; NULL: it goes on */
    bool again;       /* the reader of a log may ask for the rest at once */
    int64_t since_ns; /* steady: when it was opened */
};

struct relay {
    struct control *control;
    VEC(struct agent *) agents; /* by node */
    struct errand *errands;
    size_t len;
    bool stopping;
};

/* ---- session.c ---- */

int64_t relay_now_ns(const struct relay *r);
/* relay_pump is wanted soon. */
void relay_wake(struct relay *r);
/* NULL: no such agent is here. */
struct agent *agent_find(const struct relay *r, const char *node);
/* Makes it if need be. */
struct agent *agent_of(struct relay *r, const char *node);
/* NULL: no such errand. */
struct errand *errand_find(const struct relay *r, const char *id);
/* Is there room for one more of this user's, and does the node's agent hear? -EDQUOT, -ENOSPC with c->err. */
int errand_check(struct call *c, const char *user, const char *node);
/* The same, and then tells the agent: `line` is a JSON object without "call", to which it is added. `asked`: the call
 * that waits for it; NULL: none. */
int errand_open(struct call *c, enum errand_verb verb, const char *id, const char *user, const char *node,
                const json_t *line, struct errand **ret);
/* Tells the agent and whoever waits, and is gone. `why` NULL: the one who opened it has said so. */
void errand_close(struct errand *e, const char *why);
/* It has ended as it should: nobody needs to be told any more. */
void errand_free(struct errand *e);
/* Sends a line about it to its agent, which must have room. */
void errand_tell(struct errand *e, json_t *line);
/* Sends what a person's request brings on to the agent, and fills its answer. False: there is no room now. */
bool errand_input(struct errand *e, struct call *c);
/* Sends what waits for the agent, as far as there is room. */
void errand_feed(struct errand *e);
/* Can what the agent brings go on to whoever listens? */
bool errand_room(const struct errand *e);
/* Then it does, and the request's answer is filled. -EINVAL with its err. The errand may be gone afterwards. */
int errand_take(struct errand *e, struct call *brought);
/* Answers the one who waits for it. */
void errand_answer(struct errand *e, int rc);
/* New ids are guessed by nobody. */
void errand_id_make(const struct control *control, char ret[static ERRAND_ID_LEN + 1]);

extern const struct stream_feed agent_feed, lines_feed, text_feed;
