/* context.h - chooses the server and the credentials from options, the environment, and a file of named contexts.
 *
 * The order of precedence: an option, then BERTH_SERVER, BERTH_TOKEN, BERTH_TOKEN_FILE and BERTH_CONTEXT, then the
 * file, then http://127.0.0.1:3980 without a token. The token and certificate of a context are only used for the
 * context's own server, so that a token is never sent to another server by accident. This module never connects to a
 * server; see cli/lib/api.h.
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

/* Values of the command line options; NULL: not given. */
struct connect_values {
    const char *server, *token_file, *ca, *pin, *context;
};

/* Values of environment variables; NULL: not set. */
struct context_env {
    const char *server, *token, *token_file, *context;
    const char *config, *xdg_config_home, *home;
};
void context_env_read(struct context_env *ret);

struct context {
    char *name;
    char *server, *token, *token_file, *ca, *pin; /* NULL: not set */
};

struct contexts {
    struct context *at; /* sorted by name */
    size_t len, cap;
    char *current; /* NULL: none */
};

/* Appends the path of the file. Returns -ENOENT if the environment does not determine it. */
int contexts_path(const struct context_env *env, struct str *to, struct berth_err *err);
/* Reads the file; a missing file has no contexts. On failure *ret is empty. */
int contexts_read(const char *path, struct contexts *ret, struct berth_err *err);
/* Replaces the whole file, readable only by its owner. Creates the folder. */
int contexts_write(const char *path, const struct contexts *contexts, struct berth_err *err);
void contexts_done(struct contexts *c);
/* Returns NULL if there is no context of that name. */
struct context *contexts_find(const struct contexts *c, const char *name);
/* Adds or replaces a context. Takes ownership of the strings; *context is empty afterwards. */
void contexts_put(struct contexts *c, struct context *context);
void contexts_remove(struct contexts *c, const char *name);
void context_done(struct context *c);

/* The chosen connection. The strings are borrowed from the sources of the choice; only the token is owned. */
struct connection {
    const char *server, *ca, *pin;
    const char *token_file; /* NULL: the token has another source, or there is none */
    const char *context;    /* context of the credentials; NULL: none */
    char *token;            /* NULL: none */
    bool exposed;           /* other users may read the token's file */
};
/* Chooses the connection and reads the token's file. Returns -ENOENT for an unknown context; -EINVAL for a malformed
 * token. */
int connection_choose(const struct connect_values *values, const struct context_env *env,
                      const struct contexts *contexts, struct connection *ret, struct berth_err *err);
void connection_done(struct connection *c);

/* Reads a file and trims blanks. The caller frees *ret; *ret_exposed: other users may read the file. */
int token_file_read(const char *path, char **ret, bool *ret_exposed, struct berth_err *err);
