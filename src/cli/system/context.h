/* context.h - which server, and who asks: from options, the environment, and a file of named contexts.
 *
 * The nearest wins: an option, then BERTH_SERVER, BERTH_TOKEN, BERTH_TOKEN_FILE and BERTH_CONTEXT, then the file, then
 * http://127.0.0.1:3980 without a token. What a context says of its own server (token, certificate) is never used for
 * another one, so that a token goes nowhere by accident. Nothing here talks to a server; see api.h.
 *
 * The file ($BERTH_CONFIG, or berth/config.yaml in $XDG_CONFIG_HOME or ~/.config) is YAML:
 *
 *     current: lab
 *     contexts:
 *       lab: {server: https://lab:3980, token_file: /home/alice/lab.token, pin: sha256//...}
 *
 * To add a key: a field of struct context and a row in context.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"

#define SERVER_DEFAULT "http://127.0.0.1:3980"

/* What the options of the command line say; NULL: not given. */
struct connect_values {
    const char *server, *token_file, *ca, *pin, *context;
};

/* What the environment says; NULL: not set. */
struct context_env {
    const char *server, *token, *token_file, *context;
    const char *config, *xdg_config_home, *home;
};
void context_env_read(struct context_env *ret);

struct context {
    char *name;
    char *server, *token, *token_file, *ca, *pin; /* NULL: not said */
};

struct contexts {
    struct context *at; /* sorted by name */
    size_t len, cap;
    char *current; /* NULL: none */
};

/* Appends where the file is. -ENOENT when the environment does not say. */
int contexts_path(const struct context_env *env, struct str *to, struct berth_err *err);
/* A file that is not there has no contexts. On failure *ret is empty. */
int contexts_read(const char *path, struct contexts *ret, struct berth_err *err);
/* Replaces the file as a whole; only its owner may read it. Makes the folder. */
int contexts_write(const char *path, const struct contexts *contexts, struct berth_err *err);
void contexts_done(struct contexts *c);
/* NULL: none of that name. */
struct context *contexts_find(const struct contexts *c, const char *name);
/* Adds or replaces. Takes the texts over; *context is empty afterwards. */
void contexts_put(struct contexts *c, struct context *context);
void contexts_remove(struct contexts *c, const char *name);
void context_done(struct context *c);

/* The outcome. Texts live as long as what it was chosen from, but the token is owned. */
struct connection {
    const char *server, *ca, *pin;
    const char *token_file; /* NULL: the token has another source, or there is none */
    const char *context;    /* whose secrets are used; NULL: none */
    char *token;            /* NULL: none */
    bool exposed;           /* others may read the token's file */
};
/* Reads the token's file. -ENOENT for a context that is not there; -EINVAL for a token that cannot be one. */
int connection_choose(const struct connect_values *values, const struct context_env *env,
                      const struct contexts *contexts, struct connection *ret, struct berth_err *err);
void connection_done(struct connection *c);

/* The text of a file without blanks around it. To be freed; *ret_exposed: others may read the file. */
int token_file_read(const char *path, char **ret, bool *ret_exposed, struct berth_err *err);
