/* exec.c - parses the exec section of a kubeconfig, runs the program and parses its output. */
#include "kube/client/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/client/clock.h"
#include "kube/client/config.h"
#include "wire/text/document.h"
#include "wire/text/moment.h"

#define GROUP "client.authentication.k8s.io/"
#define RUN_TIMEOUT_NS (INT64_C(60) * 1000000000)
#define NS_PER_MS INT64_C(1000000)
enum { ARGS_MAX = 256, OUTPUT_BYTES_MAX = 1 << 20 };

typedef VEC(char *) texts;

struct kube_exec {
    char *version; /* requested apiVersion */
    char *command;
    char *hint; /* installHint; "" */
    texts argv; /* starts with the command, ends with NULL */
    texts env;  /* "NAME=value", added to our environment */
};

static void texts_done(texts *t)
{
    for (size_t i = 0; i < t->len; i++)
        mem_free(t->at[i]);
    vec_done(t);
}

void kube_exec_free(struct kube_exec *e)
{
    if (!e)
        return;
    texts_done(&e->argv);
    texts_done(&e->env);
    mem_free(e->version);
    mem_free(e->command);
    mem_free(e->hint);
    mem_free(e);
}

static void kube_exec_cleanup(struct kube_exec **e)
{
    kube_exec_free(*e);
}

/* ---- the exec section ------------------------------------------------------------------------------------------- */

static const char *text_at(const json_t *in, const char *key)
{
    const char *text = json_string_value(json_object_get(in, key));
    return text ? text : "";
}

static int args_read(const json_t *exec, struct kube_exec *e, struct berth_err *err)
{
    const json_t *args = json_object_get(exec, "args"), *one;
    size_t i;
    vec_push(&e->argv, mem_strdup(e->command));
    json_array_foreach(args, i, one)
    {
        if (!json_is_string(one) || i >= ARGS_MAX)
            return err_set(err, EINVAL, "exec.args: must be a list of at most %d strings", ARGS_MAX);
        vec_push(&e->argv, mem_strdup(json_string_value(one)));
    }
    vec_push(&e->argv, NULL);
    return 0;
}

static int env_read(const json_t *exec, struct kube_exec *e, struct berth_err *err)
{
    const json_t *env = json_object_get(exec, "env"), *one;
    size_t i;
    json_array_foreach(env, i, one)
    {
        CLEANUP(str) struct str text = {0};
        const char *name = text_at(one, "name");
        if (!*name || strchr(name, '=') || i >= ARGS_MAX)
            return err_set(err, EINVAL, "exec.env: must be a list of at most %d names with values", ARGS_MAX);
        str_addf(&text, "%s=%s", name, text_at(one, "value"));
        vec_push(&e->env, str_take(&text));
    }
    return 0;
}

/* Builds the cluster info for the plugin; `config` is the plugin's own extension. */
static json_t *cluster_info(const json_t *cluster)
{
    static const char *const keys[] = {"server", "tls-server-name", "certificate-authority-data"};
    json_t *info = json_object(), *one;
    size_t i;
    for (i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(cluster, keys[i]))
            (void)json_object_set(info, keys[i], json_object_get(cluster, keys[i]));
    json_array_foreach(json_object_get(cluster, "extensions"), i, one)
    {
        if (strcmp(text_at(one, "name"), GROUP "exec") == 0)
            (void)json_object_set(info, "config", json_object_get(one, "extension"));
    }
    return info;
}

static void info_add(const json_t *exec, const json_t *cluster, struct kube_exec *e)
{
    CLEANUP(json)
    json_t *info =
        json_pack("{s:s, s:s, s:{s:b}}", "apiVersion", e->version, "kind", "ExecCredential", "spec", "interactive", 0);
    CLEANUP(str) struct str text = {0};
    if (json_is_true(json_object_get(exec, "provideClusterInfo")))
        (void)json_object_set_new(json_object_get(info, "spec"), "cluster", cluster_info(cluster));
    char *dump = json_dumps(info, JSON_COMPACT);
    str_addf(&text, "KUBERNETES_EXEC_INFO=%s", dump);
    free(dump);
    vec_push(&e->env, str_take(&text));
}

static char *command_path(const char *command, const char *kubeconfig)
{
    CLEANUP(str) struct str path = {0};
    const char *slash = strrchr(kubeconfig, '/');
    if (*command != '/' && strchr(command, '/') && slash)
        str_add_bytes(&path, kubeconfig, (size_t)(slash + 1 - kubeconfig));
    str_add(&path, command);
    return str_take(&path);
}

int kube_exec_read(const json_t *exec, const json_t *cluster, const char *kubeconfig, struct kube_exec **ret,
                   struct berth_err *err)
{
    CLEANUP(kube_exec) struct kube_exec *e = mem_zalloc(sizeof *e);
    const char *version = text_at(exec, "apiVersion"), *command = text_at(exec, "command");
    if (!*command)
        return err_set(err, EINVAL, "exec.command: expected the program that prints the credential");
    if (strcmp(version, GROUP "v1") != 0 && strcmp(version, GROUP "v1beta1") != 0)
        return err_set(err, EINVAL, "exec.apiVersion: must be " GROUP "v1 or " GROUP "v1beta1, not \"%s\"", version);
    if (strcmp(text_at(exec, "interactiveMode"), "Always") == 0)
        return err_set(err, EINVAL,
                       "exec.interactiveMode: interactive programs are not supported; use a token "
                       "(kubectl create token), or kubectl proxy and its address as the server");
    e->version = mem_strdup(version);
    e->command = command_path(command, kubeconfig);
    e->hint = mem_strdup(text_at(exec, "installHint"));
    int rc = args_read(exec, e, err);
    if (rc == 0)
        rc = env_read(exec, e, err);
    if (rc < 0)
        return rc;
    info_add(exec, cluster, e);
    *ret = take_ptr(&e);
    return 0;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

/* Reports whether the plugin's settings override this variable of our environment. */
static bool overridden(const struct kube_exec *e, const char *text)
{
    size_t len = strcspn(text, "=") + 1;
    for (size_t i = 0; i < e->env.len; i++)
        if (strncmp(e->env.at[i], text, len) == 0)
            return true;
    return false;
}

static int spawn(const struct kube_exec *e, int out, pid_t *ret)
{
    VEC(char *) env = {0};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all, none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    for (char **at = environ; *at; at++)
        if (!overridden(e, *at))
            vec_push(&env, *at);
    for (size_t i = 0; i < e->env.len; i++)
        vec_push(&env, e->env.at[i]);
    vec_push(&env, NULL);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_init(&attr);
    int rc = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (rc == 0)
        rc = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (rc == 0 && (rc = posix_spawnattr_setpgroup(&attr, 0)) == 0 &&
        (rc = posix_spawnattr_setsigdefault(&attr, &all)) == 0 && (rc = posix_spawnattr_setsigmask(&attr, &none)) == 0)
        rc = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (rc == 0)
        rc = posix_spawnp(ret, e->command, &files, &attr, e->argv.at, env.at);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    vec_done(&env);
    return -rc;
}

/* Reads available output; false: end of file, or too much output. */
static bool read_output(int fd, struct str *plugin_output)
{
    char buf[4096];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n > 0)
        str_add_bytes(plugin_output, buf, (size_t)n);
    return (n > 0 && plugin_output->len <= OUTPUT_BYTES_MAX) || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Reads output until the program has ended, even if another process still holds the pipe. Returns 0, -ETIMEDOUT, or
 * -ECANCELED. */
static int read_until_exit(int pidfd, int out, int stop_fd, struct str *plugin_output)
{
    int64_t until_ns = kube_clock_ns() + RUN_TIMEOUT_NS;
    struct pollfd fds[] = {
        {.fd = pidfd,   .events = POLLIN},
        {.fd = out,     .events = POLLIN},
        {.fd = stop_fd, .events = POLLIN}
    };
    while (!fds[0].revents) {
        int64_t left_ns = until_ns - kube_clock_ns();
        if (left_ns <= 0)
            return -ETIMEDOUT;
        if (poll(fds, 3, (int)(left_ns / NS_PER_MS) + 1) < 0 && errno != EINTR)
            return -errno;
        if (fds[2].revents)
            return -ECANCELED;
        if (fds[1].revents && !read_output(out, plugin_output))
            fds[1].fd = -1;
    }
    while (fds[1].fd >= 0 && poll(&fds[1], 1, 0) > 0 && read_output(out, plugin_output))
        ;
    return 0;
}

/* Reaps the program; returns 0, or an error with its exit status. */
static int run_end(const struct kube_exec *e, pid_t pid, int rc, struct berth_err *err)
{
    int status = 0;
    if (rc < 0)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(err, errno, "cannot wait for it: %s", strerror(errno));
    if (rc == -ETIMEDOUT)
        return err_set(err, ETIMEDOUT,
                       "it did not exit within a minute and was killed; run it manually to see what it waits for");
    if (rc < 0)
        return err_set(err, -rc, "it was stopped: %s", strerror(-rc));
    if (WIFSIGNALED(status))
        return err_set(err, EIO, "it was killed by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return err_set(err, EIO, "it failed with exit code %d%s%s; run it manually to see why", WEXITSTATUS(status),
                       *e->hint ? ". " : "", e->hint);
    return 0;
}

static int run(const struct kube_exec *e, int stop_fd, struct str *plugin_output, struct berth_err *err)
{
    int ends[2], pidfd = -1;
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
    int rc = spawn(e, ends[1], &pid);
    (void)close(ends[1]);
    if (rc < 0) {
        (void)close(ends[0]);
        return err_set(err, -rc, "cannot run it: %s%s%s", strerror(-rc), *e->hint ? ". " : "", e->hint);
    }
    pidfd = pidfd_open(pid, 0);
    rc = pidfd < 0 ? -errno : read_until_exit(pidfd, ends[0], stop_fd, plugin_output);
    (void)close(ends[0]);
    if (pidfd >= 0)
        (void)close(pidfd);
    return run_end(e, pid, rc, err);
}

int kube_exec_run(const struct kube_exec *e, int stop_fd, struct kube_credential *ret, struct berth_err *err)
{
    CLEANUP(str) struct str plugin_output = {0};
    int rc = run(e, stop_fd, &plugin_output, err);
    if (rc == 0)
        rc = kube_credential_parse(str_text(&plugin_output), plugin_output.len, e->version, ret, err);
    if (plugin_output.at)
        explicit_bzero(plugin_output.at, plugin_output.len);
    return rc < 0 ? err_prefix(err, "credential program %s of the kubeconfig", e->command) : 0;
}

/* ---- output ----------------------------------------------------------------------------------------------------- */

void kube_credential_done(struct kube_credential *c)
{
    mem_free(c->token);
    mem_free(c->cert_pem);
    mem_free(c->key_pem);
    *c = (struct kube_credential){0};
}

static char *required_text(const char *text)
{
    return *text ? mem_strdup(text) : NULL;
}

int kube_credential_parse(const char *text, size_t len, const char *version, struct kube_credential *ret,
                          struct berth_err *err)
{
    CLEANUP(json) json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
    CLEANUP(kube_credential) struct kube_credential c = {.expires_ns = INT64_MAX};
    const json_t *status = json_object_get(root, "status"), *expires = json_object_get(status, "expirationTimestamp");
    if (strcmp(text_at(root, "kind"), "ExecCredential") != 0)
        return err_set(err, EPROTO, "its output is not an ExecCredential in JSON");
    if (strcmp(text_at(root, "apiVersion"), version) != 0)
        return err_set(err, EPROTO, "its output is an ExecCredential of %s; set exec.apiVersion to that instead of %s",
                       text_at(root, "apiVersion"), version);
    c.token = required_text(text_at(status, "token"));
    c.cert_pem = required_text(text_at(status, "clientCertificateData"));
    c.key_pem = required_text(text_at(status, "clientKeyData"));
    if (!c.cert_pem != !c.key_pem)
        return err_set(err, EPROTO, "its output has a certificate without a key, or a key without a certificate");
    if (!c.token && !c.cert_pem)
        return err_set(err, EPROTO, "its output has neither a token nor a certificate");
    if (c.token && !kube_token_plain(c.token))
        return err_set(err, EPROTO, "its output has an invalid token");
    if (json_is_string(expires) && timestamp_parse(expires, &c.expires_ns, NULL) < 0)
        return err_set(err, EPROTO, "its output has an invalid expirationTimestamp");
    *ret = (struct kube_credential){take_ptr(&c.token), take_ptr(&c.cert_pem), take_ptr(&c.key_pem), c.expires_ns};
    return 0;
}
