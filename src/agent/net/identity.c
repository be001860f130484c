#include "agent/net/identity.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/net/net_sandbox.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls.h"
#include "wire/text/document.h"

enum { CONTROLS_MAX = 16 };
#define LOOK_NS (INT64_C(3600) * 1000000000)

/* ---- files ------------------------------------------------------------------------------------------------------ */

static char *path_of(const char *state, const char *file)
{
    struct str path = {0};
    str_addf(&path, "%s/identity%s%s", state, file ? "/" : "", file ? file : "");
    return str_take(&path);
}

static int write_all(int fd, const char *text)
{
    for (size_t len = strlen(text), done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

/* Replaces the file atomically (temporary file, fsync, rename), with mode 0600. */
static int file_write(const char *path, const char *text, struct berth_err *err)
{
    CLEANUP(str) struct str temp = {0};
    str_addf(&temp, "%s.new", path);
    (void)unlink(temp.at);
    int fd = open(temp.at, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot write %s: %s", temp.at, strerror(errno));
    int rc = write_all(fd, text);
    (void)close(fd);
    if (rc == 0 && rename(temp.at, path) < 0)
        rc = -errno;
    return rc < 0 ? err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

static int stream_read(FILE *file, const char *name, char **ret, struct berth_err *err)
{
    char *text = mem_zalloc(IDENTITY_FILE_MAX + 1);
    size_t len = fread(text, 1, IDENTITY_FILE_MAX + 1, file);
    if (len > IDENTITY_FILE_MAX) {
        mem_free(text);
        return err_set(err, EFBIG, "%s is too large: certificates and tokens must be smaller than %d KiB", name,
                       IDENTITY_FILE_MAX / 1024);
    }
    *ret = text;
    return 0;
}

int identity_file_read(const char *path, char **ret, struct berth_err *err)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    int rc = stream_read(file, path, ret, err);
    (void)fclose(file);
    return rc;
}

static int dir_make(const char *path, struct berth_err *err)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot create %s: %s; run as root, or choose another folder with --state", path,
                       strerror(errno));
    return 0;
}

static int64_t time_ns(const struct timespec *t)
{
    return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Renews at the midpoint of the lifetime, counted from when the certificate was received: its notBefore is much
 * earlier, to tolerate clocks that are behind. */
void identity_until(struct node_identity *id, int64_t not_after_ns)
{
    id->renew_ns = id->got_ns < not_after_ns ? id->got_ns + (not_after_ns - id->got_ns) / 2 : not_after_ns;
}

int64_t identity_wait_ns(const struct node_identity *id, int64_t now_ns)
{
    int64_t wait_ns = id->renew_ns - now_ns;
    return wait_ns <= 0 ? 0 : wait_ns < LOOK_NS ? wait_ns : LOOK_NS;
}

static int read_controls(const json_t *list, struct node_identity *id, struct berth_err *err)
{
    size_t len = json_array_size(list);
    if (len == 0 || len > CONTROLS_MAX)
        return err_set(err, EINVAL, "control: expected 1 to %d addresses", CONTROLS_MAX);
    id->controls = mem_zarray(len, sizeof *id->controls);
    for (size_t i = 0; i < len; i++) {
        const char *url = json_string_value(json_array_get(list, i));
        if (!url)
            return err_set(err, EINVAL, "control[%zu]: expected an address such as https://10.0.0.1:3981", i);
        id->controls[id->controls_len++] = mem_strdup(url);
    }
    return 0;
}

int identity_read(const char *state, struct node_identity *ret, struct berth_err *err)
{
    CLEANUP(mem) char *path = path_of(state, "node.json");
    CLEANUP(json) json_t *doc = NULL;
    struct node_identity id = {.ca_path = path_of(state, "ca.pem"), .pem_path = path_of(state, "node.pem")};
    int rc = access(path, F_OK) == 0 ? document_read(path, &doc, err) : -ENOENT;
    const char *node = json_string_value(json_object_get(doc, "node"));
    if (rc == -ENOENT)
        rc = err_set(
            err, ENOENT,
            "this machine has not joined a cluster (%s does not exist); run 'berth node add NAME' where the daemon can "
            "be reached to get the join command",
            path);
    else if (rc == 0 && !node)
        rc = err_set(err, EINVAL, "%s: node: expected a name", path);
    if (rc == 0) {
        id.node = mem_strdup(node);
        id.epoch = (uint64_t)json_integer_value(json_object_get(doc, "epoch"));
        rc = read_controls(json_object_get(doc, "control"), &id, err);
    }
    struct stat kept = {0};
    if (rc == 0 && stat(id.pem_path, &kept) < 0)
        rc = err_set(err, errno, "cannot read %s: %s", id.pem_path, strerror(errno));
    id.got_ns = time_ns(&kept.st_mtim);
    if (rc < 0)
        identity_done(&id);
    else
        *ret = id;
    return rc;
}

void identity_done(struct node_identity *id)
{
    for (size_t i = 0; i < id->controls_len; i++)
        mem_free(id->controls[i]);
    mem_free(id->controls);
    mem_free(id->node);
    mem_free(id->ca_path);
    mem_free(id->pem_path);
    *id = (struct node_identity){0};
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

int identity_request(char **ret_key_pem, char **ret_request_pem, struct berth_err *err)
{
    return tls_request_make(ret_key_pem, ret_request_pem, err);
}

char *identity_pem(const char *certificate, const char *key_pem)
{
    struct str both = {0};
    str_addf(&both, "%s\n%s", certificate, key_pem);
    return str_take(&both);
}

int identity_renew(struct node_identity *id, const char *pem, struct berth_err *err)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    int rc = file_write(id->pem_path, pem, err);
    if (rc == 0)
        id->got_ns = time_ns(&now);
    return rc;
}

/* "a,b" as a list. */
static json_t *split(const char *texts)
{
    json_t *list = json_array();
    for (const char *at = texts; *at;) {
        size_t len = strcspn(at, ",");
        if (len)
            (void)json_array_append_new(list, json_stringn(at, len));
        at += len + (at[len] == ',');
    }
    return list;
}

/* Copies a token and overwrites the original: other users can read a process's arguments, and other processes of the
 * same user can read its environment. */
static char *token_take(const char *at)
{
    char *copy = mem_strdup(at);
    explicit_bzero((char *)at, strlen(at));
    return copy;
}

static int token_read(const struct agent_options *o, char **ret, struct berth_err *err)
{
    char *text = NULL;
    const char *variable = getenv(AGENT_TOKEN_VARIABLE);
    if (o->token) {
        (void)fprintf(stderr, "berth-agent: --token shows the invitation to every user of this machine; use "
                              "--token-file FILE, or --token-file - with the invitation on standard input\n");
        text = token_take(o->token);
    } else if (o->token_file) {
        bool from_stdin = strcmp(o->token_file, "-") == 0;
        int rc = from_stdin ? stream_read(stdin, "standard input", &text, err)
                            : identity_file_read(o->token_file, &text, err);
        if (rc < 0)
            return rc;
        assert(text);
    } else {
        text = token_take(variable ? variable : "");
    }
    text[strcspn(text, " \r\n")] = '\0';
    if (!*text) {
        mem_free(text);
        return err_set(err, EINVAL, "the invitation is empty; 'berth node add NAME' prints the whole join command");
    }
    *ret = text;
    return 0;
}

/* Sends the join request to one address. Returns 0, a negative errno, or the HTTP status (positive) of a refusal. */
static int send_join_request(const struct net_sandbox_user *user, const char *url, const char *pin, const char *body,
                             json_t **ret, struct berth_err *err)
{
    CLEANUP(str) struct str answer = {0};
    int status = net_sandbox_ask(user, url, pin, body, &answer, err);
    if (status < 0)
        return status;
    json_t *doc = json_loadb(str_text(&answer), answer.len, 0, NULL);
    const char *message = json_string_value(json_object_get(json_object_get(doc, "error"), "message"));
    if (status != 200 && status != 201) {
        (void)err_set(err, EACCES, "%s refused: %s", url, message ? message : "no reason given");
        json_decref(doc);
        return status;
    }
    if (!doc)
        return err_set(err, EPROTO, "the answer of %s is not JSON; is it a Berth daemon?", url);
    *ret = doc;
    return 0;
}

static void secret_cleanup(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    mem_free(*text);
}

static int identity_save_answer(const char *state, const json_t *answer, const json_t *controls, const char *key_pem,
                                char **ret_node, struct berth_err *err)
{
    const char *node = json_string_value(json_object_get(answer, "node"));
    const char *certificate = json_string_value(json_object_get(answer, "certificate"));
    const char *ca = json_string_value(json_object_get(answer, "ca"));
    CLEANUP(mem) char *node_path = path_of(state, "node.json"), *ca_path = path_of(state, "ca.pem");
    CLEANUP(mem) char *pem_path = path_of(state, "node.pem"), *dir = path_of(state, NULL);
    if (!node || !certificate || !ca)
        return err_set(err, EPROTO,
                       "the daemon's answer lacks the node's name or a certificate; are the versions of "
                       "berthd and berth-agent the same?");
    CLEANUP(secret) char *pem = identity_pem(certificate, key_pem);
    json_t *doc = json_pack("{s:s, s:O, s:I}", "node", node, "control", controls, "epoch",
                            json_integer_value(json_object_get(answer, "epoch")));
    char *text = json_dumps(doc, JSON_INDENT(2));
    json_decref(doc);
    int rc = dir_make(state, err);
    if (rc == 0)
        rc = dir_make(dir, err);
    if (rc == 0)
        rc = file_write(ca_path, ca, err);
    if (rc == 0)
        rc = file_write(pem_path, pem, err);
    if (rc == 0)
        rc = file_write(node_path, text, err); /* written last: its presence means that the other files are complete */
    free(text);
    if (rc == 0)
        *ret_node = mem_strdup(node);
    return rc;
}

int identity_join(const struct agent_options *options, const json_t *probed, char **ret_node, struct berth_err *err)
{
    CLEANUP(mem) char *node_path = path_of(options->state, "node.json");
    CLEANUP(json) json_t *controls = split(options->control);
    CLEANUP(json) json_t *answer = NULL;
    CLEANUP(secret) char *token = NULL, *key_pem = NULL;
    CLEANUP(mem) char *request_pem = NULL;
    if (access(node_path, F_OK) == 0 && !options->force)
        return err_set(
            err, EEXIST,
            "this machine has already joined (%s); start it with 'berth-agent', or use --force to join again",
            node_path);
    struct net_sandbox_user user;
    int rc = net_sandbox_user_find(options, &user, err);
    if (rc == 0)
        rc = dir_make(options->state, err); /* fails before the one-time token is used up */
    if (rc == 0)
        rc = token_read(options, &token, err);
    if (rc == 0)
        rc = identity_request(&key_pem, &request_pem, err);
    if (rc < 0)
        return rc;
    json_t *body = json_pack("{s:s, s:s, s:O}", "token", token, "request", request_pem, "probed", (json_t *)probed);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    rc = err_set(err, EINVAL, "--control: expected an address such as https://10.0.0.1:3981");
    for (size_t i = 0; rc < 0 && i < json_array_size(controls); i++)
        rc = send_join_request(&user, json_string_value(json_array_get(controls, i)), options->pin, text, &answer, err);
    explicit_bzero(text, strlen(text));
    free(text);
    if (rc > 0)
        return -EACCES;
    return rc < 0 ? rc : identity_save_answer(options->state, answer, controls, key_pem, ret_node, err);
}
