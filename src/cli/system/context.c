#include "cli/system/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/lib/suggest.h"
#include "wire/text/document.h"
#include "wire/text/yaml_write.h"

enum { TOKEN_FILE_MAX = 4096 };

static const struct {
    const char *key;
    size_t at;
} context_keys[] = {
    {"server",     offsetof(struct context, server)    },
    {"token",      offsetof(struct context, token)     },
    {"token_file", offsetof(struct context, token_file)},
    {"ca",         offsetof(struct context, ca)        },
    {"pin",        offsetof(struct context, pin)       },
};
enum { CONTEXT_KEYS = sizeof context_keys / sizeof context_keys[0] };

static char **context_field(const struct context *c, size_t key)
{
    return (char **)((char *)c + context_keys[key].at);
}

/* Returns a variable; NULL if it is empty or not set. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value && *value ? value : NULL;
}

void context_env_read(struct context_env *ret)
{
    *ret = (struct context_env){
        .server = variable("BERTH_SERVER"),
        .token = variable("BERTH_TOKEN"),
        .token_file = variable("BERTH_TOKEN_FILE"),
        .context = variable("BERTH_CONTEXT"),
        .config = variable("BERTH_CONFIG"),
        .xdg_config_home = variable("XDG_CONFIG_HOME"),
        .home = variable("HOME"),
    };
}

int contexts_path(const struct context_env *env, struct str *to, struct berth_err *err)
{
    if (env->config)
        str_add(to, env->config);
    else if (env->xdg_config_home)
        str_addf(to, "%s/berth/config.yaml", env->xdg_config_home);
    else if (env->home)
        str_addf(to, "%s/.config/berth/config.yaml", env->home);
    else
        return err_set(err, ENOENT, "no file for contexts: set HOME or BERTH_CONFIG");
    return 0;
}

void context_done(struct context *c)
{
    mem_free(take_ptr(&c->name));
    for (size_t i = 0; i < CONTEXT_KEYS; i++)
        mem_free(take_ptr(context_field(c, i)));
}

static void context_cleanup(struct context *c)
{
    context_done(c);
}

void contexts_done(struct contexts *c)
{
    for (size_t i = 0; i < c->len; i++)
        context_done(&c->at[i]);
    mem_free(c->current);
    vec_done(c);
}

struct context *contexts_find(const struct contexts *c, const char *name)
{
    for (size_t i = 0; i < c->len; i++)
        if (strcmp(c->at[i].name, name) == 0)
            return &c->at[i];
    return NULL;
}

void contexts_put(struct contexts *c, struct context *context)
{
    size_t i = 0;

    contexts_remove(c, context->name);
    while (i < c->len && strcmp(c->at[i].name, context->name) < 0)
        i++;
    vec_resize(c, c->len + 1);
    memmove(c->at + i + 1, c->at + i, (c->len - 1 - i) * sizeof *c->at);
    c->at[i] = *context;
    *context = (struct context){0};
}

void contexts_remove(struct contexts *c, const char *name)
{
    struct context *found = contexts_find(c, name);

    if (!found)
        return;
    context_done(found);
    memmove(found, found + 1, (size_t)(c->at + c->len - (found + 1)) * sizeof *found);
    c->len--;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

static int context_key_set(struct context *c, const char *key, const json_t *value, struct berth_err *err)
{
    struct suggestions near;

    suggest_init(&near, key);
    for (size_t i = 0; i < CONTEXT_KEYS; i++) {
        suggest_offer(&near, context_keys[i].key);
        if (strcmp(key, context_keys[i].key) != 0)
            continue;
        if (!json_is_string(value))
            return err_set(err, EINVAL, "contexts: %s: %s: expected text", c->name, key);
        *context_field(c, i) = mem_strdup(json_string_value(value));
        return 0;
    }
    if (near.len)
        return err_set(err, EINVAL, "contexts: %s: unknown key \"%s\"; did you mean \"%s\"?", c->name, key, near.at[0]);
    return err_set(err, EINVAL, "contexts: %s: unknown key \"%s\"", c->name, key);
}

static int context_read(const char *name, json_t *doc, struct contexts *to, struct berth_err *err)
{
    CLEANUP(context) struct context c = {.name = mem_strdup(name)};
    const char *key;
    json_t *value;

    if (!json_is_object(doc))
        return err_set(err, EINVAL, "contexts: %s: expected keys such as server and token_file", name);
    json_object_foreach(doc, key, value)
    {
        int rc = context_key_set(&c, key, value, err);
        if (rc != 0)
            return rc;
    }
    contexts_put(to, &c);
    return 0;
}

static int contexts_fill(json_t *doc, struct contexts *to, struct berth_err *err)
{
    const char *key, *name;
    json_t *value, *context;

    if (!json_is_object(doc))
        return err_set(err, EINVAL, "expected the keys current and contexts");
    json_object_foreach(doc, key, value)
    {
        if (json_is_null(value))
            continue;
        if (strcmp(key, "current") == 0) {
            if (!json_is_string(value))
                return err_set(err, EINVAL, "current: expected the name of a context");
            to->current = mem_strdup(json_string_value(value));
            continue;
        }
        if (strcmp(key, "contexts") != 0 || !json_is_object(value))
            return err_set(err, EINVAL, "unknown key \"%s\"; keys are current and contexts", key);
        json_object_foreach(value, name, context)
        {
            int rc = context_read(name, context, to, err);
            if (rc != 0)
                return rc;
        }
    }
    return 0;
}

int contexts_read(const char *path, struct contexts *ret, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = NULL;

    *ret = (struct contexts){0};
    int rc = document_read(path, &doc, err);
    if (rc == -ENOENT)
        return 0;
    if (rc != 0)
        return rc;
    rc = contexts_fill(doc, ret, err);
    if (rc != 0) {
        contexts_done(ret);
        return err_prefix(err, "%s", path);
    }
    return 0;
}

static json_t *contexts_tree(const struct contexts *c)
{
    json_t *doc = json_object(), *all = json_object();

    if (c->current)
        json_object_set_new(doc, "current", json_string(c->current));
    json_object_set_new(doc, "contexts", all);
    for (size_t i = 0; i < c->len; i++) {
        json_t *one = json_object();
        for (size_t k = 0; k < CONTEXT_KEYS; k++) {
            if (*context_field(&c->at[i], k))
                json_object_set_new(one, context_keys[k].key, json_string(*context_field(&c->at[i], k)));
        }
        json_object_set_new(all, c->at[i].name, one);
    }
    return doc;
}

/* Creates the folders above the file. */
static int folders_make(const char *path, struct berth_err *err)
{
    CLEANUP(mem) char *folder = mem_strdup(path);

    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return err_set(err, errno, "cannot create the folder %s: %s", folder, strerror(errno));
        *slash = '/';
    }
    return 0;
}

/* Writes a temporary file and renames it, so that a reader sees either the old or the new file. */
static int file_replace(const char *path, const struct str *text, struct berth_err *err)
{
    CLEANUP(str) struct str beside = {0};

    str_addf(&beside, "%s.XXXXXX", path);
    int fd = mkostemp(beside.at, O_CLOEXEC); /* 0600 */
    if (fd < 0)
        return err_set(err, errno, "cannot create a temporary file next to %s: %s", path, strerror(errno));
    bool ok = write(fd, text->at, text->len) == (ssize_t)text->len && fsync(fd) == 0;
    int code = ok ? 0 : errno ? errno : EIO;
    if (close(fd) != 0 && ok) {
        ok = false;
        code = errno;
    }
    if (ok && rename(beside.at, path) == 0)
        return 0;
    if (ok)
        code = errno;
    (void)unlink(beside.at);
    return err_set(err, code, "cannot write %s: %s", path, strerror(code));
}

int contexts_write(const char *path, const struct contexts *contexts, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = contexts_tree(contexts);
    CLEANUP(str) struct str text = {0};
    int rc = folders_make(path, err);

    if (rc != 0)
        return rc;
    str_add(&text, "# Contexts of 'berth'; managed by 'berth context'.\n");
    yaml_write(&text, doc);
    return file_replace(path, &text, err);
}

/* ---- choosing the connection ------------------------------------------------------------------------------------ */

/* Returns whether a token can be sent in a header: one word of visible ASCII. */
static bool token_valid(const char *text)
{
    const char *p = text;

    while (*p > ' ' && *p < 0x7f)
        p++;
    return p > text && *p == '\0';
}

int token_file_read(const char *path, char **ret, bool *ret_exposed, struct berth_err *err)
{
    char text[TOKEN_FILE_MAX + 1];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return err_set(err, errno, "cannot read the token file %s: %s", path, strerror(errno));
    ssize_t n = read(fd, text, sizeof text);
    int code = n < 0 ? errno : fstat(fd, &st) != 0 ? errno : 0;
    (void)close(fd);
    if (code)
        return err_set(err, code, "cannot read the token file %s: %s", path, strerror(code));
    size_t from = 0, to = (size_t)n;
    while (to > 0 && strchr(" \t\r\n", text[to - 1]) && text[to - 1])
        to--;
    while (from < to && strchr(" \t", text[from]))
        from++;
    if (from == to)
        return err_set(err, EINVAL, "the token file %s is empty", path);
    text[to < TOKEN_FILE_MAX ? to : TOKEN_FILE_MAX] = '\0';
    if (to > TOKEN_FILE_MAX || strlen(text) != to || !token_valid(text + from))
        return err_set(err, EINVAL, "%s contains no token; expected one line like berth_...", path);
    *ret = mem_strdup(text + from);
    *ret_exposed = (st.st_mode & 077) != 0;
    return 0;
}

static int context_pick(const struct connect_values *values, const struct context_env *env,
                        const struct contexts *contexts, const struct context **ret, struct berth_err *err)
{
    const char *name = values->context ? values->context : env->context ? env->context : contexts->current;
    struct suggestions near;

    *ret = name ? contexts_find(contexts, name) : NULL;
    if (!name || *ret)
        return 0;
    suggest_init(&near, name);
    for (size_t i = 0; i < contexts->len; i++)
        suggest_offer(&near, contexts->at[i].name);
    if (near.len)
        return err_set(err, ENOENT, "no context '%s'; did you mean '%s'?", name, near.at[0]);
    return err_set(err, ENOENT, "no context '%s'; 'berth context ls' lists the contexts", name);
}

/* Returns whether both URLs name the same server, with or without a trailing slash. */
static bool same_server(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);

    while (a_len && a[a_len - 1] == '/')
        a_len--;
    while (b_len && b[b_len - 1] == '/')
        b_len--;
    return a_len == b_len && strncmp(a, b, a_len) == 0;
}

static const char *first_of(const char *a, const char *b, const char *c)
{
    return a ? a : b ? b : c;
}

int connection_choose(const struct connect_values *values, const struct context_env *env,
                      const struct contexts *contexts, struct connection *ret, struct berth_err *err)
{
    const struct context *context;
    struct connection c = {0};

    int rc = context_pick(values, env, contexts, &context, err);
    if (rc != 0)
        return rc;
    c.server = first_of(values->server, env->server, context ? context->server : NULL);
    if (!c.server)
        c.server = SERVER_DEFAULT;
    if (context && !same_server(c.server, context->server ? context->server : SERVER_DEFAULT))
        context = NULL; /* the context's secrets are for another server */
    c.context = context ? context->name : NULL;
    c.ca = first_of(values->ca, context ? context->ca : NULL, NULL);
    c.pin = first_of(values->pin, context ? context->pin : NULL, NULL);
    if (values->token_file) {
        c.token_file = values->token_file;
    } else if (env->token) {
        c.token = mem_strdup(env->token);
    } else if (env->token_file) {
        c.token_file = env->token_file;
    } else if (context && context->token) {
        c.token = mem_strdup(context->token);
    } else if (context) {
        c.token_file = context->token_file;
    }
    if (c.token_file)
        rc = token_file_read(c.token_file, &c.token, &c.exposed, err);
    else if (c.token && !token_valid(c.token))
        rc = err_set(err, EINVAL, "%s contains no token; expected one word like berth_...",
                     env->token ? "BERTH_TOKEN" : "the context");
    if (rc == 0)
        *ret = c;
    else
        connection_done(&c);
    return rc;
}

void connection_done(struct connection *c)
{
    if (c->token)
        explicit_bzero(c->token, strlen(c->token));
    mem_free(take_ptr(&c->token));
}
