/* config.c - kubeconfigs as kubectl reads them, and the service account folder of pods. */
#include "kube/client/config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "kube/client/exec.h"
#include "net/listen.h"
#include "wire/text/document.h"

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"
#define FILE_BYTES_MAX ((size_t)1 << 20) /* limit for tokens, certificates and keys */

/* ---- files ------------------------------------------------------------------------------------------------------ */

static int file_text(const char *path, char **ret, struct berth_err *err)
{
    CLEANUP(str) struct str text = {0};
    char buf[4096];
    ssize_t n;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    while ((n = read(fd, buf, sizeof buf)) > 0 && text.len < FILE_BYTES_MAX)
        str_add_bytes(&text, buf, (size_t)n);
    (void)close(fd);
    if (n < 0 || text.len == 0 || text.len >= FILE_BYTES_MAX || strlen(text.at) != text.len)
        return err_set(err, EINVAL, "%s cannot be read, is empty, larger than %zu bytes, or not text", path,
                       FILE_BYTES_MAX);
    *ret = str_take(&text);
    return 0;
}

static void trim_end(char *text)
{
    size_t len = strlen(text);
    while (len && strchr(" \t\r\n", text[len - 1]))
        text[--len] = '\0';
}

bool kube_token_plain(const char *token)
{
    for (const char *p = token; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == 0x7f)
            return false;
    return true;
}

static int token_file(const char *path, char **ret, struct berth_err *err)
{
    CLEANUP(mem) char *token = NULL;
    int rc = file_text(path, &token, err);
    if (!token)
        return rc;
    trim_end(token);
    if (!kube_token_plain(token))
        return err_set(err, EINVAL, "%s does not contain a valid token", path);
    *ret = take_ptr(&token);
    return 0;
}

int kube_config_token(const struct kube_config *c, char **ret, struct berth_err *err)
{
    if (c->token_path)
        return token_file(c->token_path, ret, err);
    *ret = c->token ? mem_strdup(c->token) : NULL;
    return 0;
}

void kube_config_done(struct kube_config *c)
{
    char *const texts[] = {c->server, c->server_name, c->ca_pem,    c->cert_pem, c->key_pem,
                           c->token,  c->token_path,  c->namespace, c->origin};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        mem_free(texts[i]);
    kube_exec_free(c->exec);
    *c = (struct kube_config){0};
}

/* ---- validation ------------------------------------------------------------------------------------------------- */

static int check(struct kube_config *c, struct berth_err *err)
{
    if (!c->server)
        return err_set(err, EINVAL, "%s: the cluster has no server", c->origin);
    size_t len = strlen(c->server);
    while (len && c->server[len - 1] == '/')
        c->server[--len] = '\0';
    bool plain = strncmp(c->server, "http://", 7) == 0;
    if (!plain && strncmp(c->server, "https://", 8) != 0)
        return err_set(err, EINVAL, "%s: the server \"%s\" must begin with https://", c->origin, c->server);
    if (plain && !url_is_loopback(c->server))
        return err_set(err, EINVAL, "%s: the server \"%s\" would be accessed without TLS; use https://", c->origin,
                       c->server);
    if (!c->cert_pem != !c->key_pem)
        return err_set(err, EINVAL, "%s: client-certificate and client-key must be set together", c->origin);
    return 0;
}

/* ---- a pod's service account ------------------------------------------------------------------------------------ */

static char *joined(const char *dir, const char *name)
{
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/%s", dir, name);
    return str_take(&path);
}

/* Returns the API server's host from the environment of a pod; NULL: not in a pod. */
static const char *pod_host(const char *dir)
{
    CLEANUP(mem) char *token = joined(dir, "token");
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    return host && host[0] && access(token, F_OK) == 0 ? host : NULL;
}

static int load_account(const char *dir, const char *host, struct kube_config *c, struct berth_err *err)
{
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    CLEANUP(mem) char *ca = joined(dir, "ca.crt"), *namespace = joined(dir, "namespace"), *token = NULL;
    CLEANUP(str) struct str server = {0};
    bool v6 = strchr(host, ':') != NULL;
    c->origin = mem_strdup("the pod's service account");
    c->token_path = joined(dir, "token");
    str_addf(&server, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port && port[0] ? port : "443");
    c->server = str_take(&server);
    int rc = file_text(ca, &c->ca_pem, err);
    if (rc == 0)
        rc = kube_config_token(c, &token, err);
    if (rc)
        return err_prefix(err, "%s", c->origin);
    (void)file_text(namespace, &c->namespace, NULL);
    if (!c->namespace)
        c->namespace = mem_strdup("default");
    trim_end(c->namespace);
    return check(c, err);
}

/* ---- kubeconfigs ------------------------------------------------------------------------------------------------ */

struct kubeconfig_file {
    json_t *root;
    char *path;
};

struct kubeconfig_files {
    struct kubeconfig_file *at;
    size_t len, cap;
};

static void files_cleanup(struct kubeconfig_files *f)
{
    for (size_t i = 0; i < f->len; i++) {
        json_decref(f->at[i].root);
        mem_free(f->at[i].path);
    }
    vec_done(f);
}

static const char *text_of(const json_t *in, const char *key)
{
    const char *text = json_string_value(json_object_get(in, key));
    return text && text[0] ? text : NULL;
}

/* Finds the entry of a list by name, in the first file that has it. */
static const json_t *entry(const struct kubeconfig_files *f, const char *list, const char *inner, const char *name,
                           const char **ret_path)
{
    for (size_t i = 0; i < f->len; i++) {
        const json_t *all = json_object_get(f->at[i].root, list), *one;
        size_t n;
        json_array_foreach(all, n, one)
        {
            const char *its = json_string_value(json_object_get(one, "name"));
            if (its && strcmp(its, name) == 0) {
                *ret_path = f->at[i].path;
                return json_object_get(one, inner);
            }
        }
    }
    return NULL;
}

/* Resolves a path relative to the kubeconfig that contains it. */
static char *path_relative_to(const char *path, const char *name)
{
    CLEANUP(str) struct str full = {0};
    const char *slash = strrchr(path, '/');
    if (name[0] != '/' && slash)
        str_add_bytes(&full, path, (size_t)(slash + 1 - path));
    str_add(&full, name);
    return str_take(&full);
}

/* KEY-data holds the contents, KEY names a file. */
static int pem_of(const json_t *in, const char *key, const char *path, char **ret, struct berth_err *err)
{
    CLEANUP(str) struct str data_key = {0};
    CLEANUP(str) struct str pem = {0};
    str_addf(&data_key, "%s-data", key);
    const char *data = text_of(in, data_key.at), *name = text_of(in, key);
    if (data) {
        if (!str_add_base64_bytes(&pem, data, strlen(data)) || strlen(str_text(&pem)) != pem.len)
            return err_set(err, EINVAL, "%s: %s is not PEM text in base64", path, data_key.at);
        *ret = str_take(&pem);
        return 0;
    }
    if (!name)
        return 0;
    CLEANUP(mem) char *full = path_relative_to(path, name);
    int rc = file_text(full, ret, err);
    return rc < 0 ? err_prefix(err, "%s: %s", path, key) : 0;
}

static int take_cluster(const json_t *cluster, const char *path, struct kube_config *c, struct berth_err *err)
{
    const char *server = text_of(cluster, "server"), *name = text_of(cluster, "tls-server-name");
    if (json_is_true(json_object_get(cluster, "insecure-skip-tls-verify")))
        return err_set(
            err, EINVAL,
            "%s: insecure-skip-tls-verify is not supported, as the token could be sent to a wrong server; use "
            "certificate-authority or certificate-authority-data instead",
            c->origin);
    if (text_of(cluster, "proxy-url"))
        return err_set(err, EINVAL, "%s: proxy-url is not supported; use a server that can be reached directly",
                       c->origin);
    c->server = server ? mem_strdup(server) : NULL;
    c->server_name = name ? mem_strdup(name) : NULL;
    return pem_of(cluster, "certificate-authority", path, &c->ca_pem, err);
}

static int take_user(const json_t *user, const json_t *cluster, const char *path, struct kube_config *c,
                     struct berth_err *err)
{
    CLEANUP(mem) char *probe = NULL;
    const char *token = text_of(user, "token"), *token_name = text_of(user, "tokenFile");
    const json_t *exec = json_object_get(user, "exec");
    static const char *const refused[] = {"auth-provider", "username"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (json_object_get(user, refused[i]))
            return err_set(
                err, EINVAL,
                "%s: the user's \"%s\" is not supported; use a token (kubectl create token), a tokenFile, exec, a "
                "client certificate, or kubectl proxy and its address as the server",
                c->origin, refused[i]);
    if (token_name)
        c->token_path = path_relative_to(path, token_name);
    else if (token)
        c->token = mem_strdup(token);
    int rc = pem_of(user, "client-certificate", path, &c->cert_pem, err);
    if (rc == 0)
        rc = pem_of(user, "client-key", path, &c->key_pem, err);
    if (rc == 0 && json_is_object(exec) && !token && !token_name) {
        /* like kubectl, does not run it if there is a token */
        rc = kube_exec_read(exec, cluster, path, &c->exec, err);
        return rc < 0 ? err_prefix(err, "%s", c->origin) : 0;
    }
    return rc < 0 ? rc : kube_config_token(c, &probe, err);
}

static int take_context(const struct kubeconfig_files *f, const char *name, struct kube_config *c,
                        struct berth_err *err)
{
    const char *path = NULL;
    const json_t *context = entry(f, "contexts", "context", name, &path);
    if (!context)
        return err_set(err, ENOENT, "%s: the context does not exist; see 'kubectl config get-contexts'", c->origin);
    const char *cluster = text_of(context, "cluster"), *user = text_of(context, "user");
    const char *namespace = text_of(context, "namespace");
    c->namespace = mem_strdup(namespace ? namespace : "default");
    const json_t *cluster_doc = cluster ? entry(f, "clusters", "cluster", cluster, &path) : NULL;
    if (!cluster_doc)
        return err_set(err, ENOENT, "%s: cluster \"%s\" does not exist", c->origin, cluster ? cluster : "");
    int rc = take_cluster(cluster_doc, path, c, err);
    if (rc < 0 || !user)
        return rc;
    const json_t *user_doc = entry(f, "users", "user", user, &path);
    if (!user_doc)
        return err_set(err, ENOENT, "%s: user \"%s\" does not exist", c->origin, user);
    return take_user(user_doc, cluster_doc, path, c, err);
}

static int read_files(const char *list, struct kubeconfig_files *f, struct berth_err *err)
{
    bool several = strchr(list, ':') != NULL;
    for (const char *at = list; *at; at += strcspn(at, ":"), at += *at == ':') {
        CLEANUP(str) struct str path = {0};
        struct kubeconfig_file file = {0};
        if (*at == ':')
            continue;
        str_add_bytes(&path, at, strcspn(at, ":"));
        if (several && access(path.at, F_OK) != 0)
            continue; /* like kubectl, ignores missing files */
        int rc = document_read(path.at, &file.root, err);
        if (rc < 0)
            return rc;
        file.path = str_take(&path);
        vec_push(f, file);
    }
    return f->len ? 0 : err_set(err, ENOENT, "none of the kubeconfig files \"%s\" exists", list);
}

static int load_files(const char *list, const char *context, struct kube_config *c, struct berth_err *err)
{
    CLEANUP(files) struct kubeconfig_files f = {0};
    CLEANUP(str) struct str origin = {0};
    int rc = read_files(list, &f, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; !context && i < f.len; i++)
        context = text_of(f.at[i].root, "current-context");
    if (!context)
        return err_set(err, EINVAL, "%s has no current-context; set one with 'kubectl config use-context'", list);
    str_addf(&origin, "the kubeconfig %s, context \"%s\"", list, context);
    c->origin = str_take(&origin);
    rc = take_context(&f, context, c, err);
    return rc ? rc : check(c, err);
}

int kube_config_load(const struct kube_config_where *where, struct kube_config *ret, struct berth_err *err)
{
    CLEANUP(kube_config) struct kube_config c = {0};
    CLEANUP(mem) char *usual = NULL;
    const char *dir = where->account_dir ? where->account_dir : ACCOUNT_DIR, *home = getenv("HOME");
    const char *env = getenv("KUBECONFIG"), *path = where->path ? where->path : env && env[0] ? env : NULL;
    const char *host = path || where->context ? NULL : pod_host(dir);
    int rc;
    if (host) {
        rc = load_account(dir, host, &c, err);
    } else {
        usual = joined(home ? home : "", ".kube/config");
        if (!path && access(usual, F_OK) != 0)
            return err_set(
                err, ENOENT,
                "no API server is configured: %s does not exist, KUBECONFIG is not set, and this is not a pod with a "
                "service account; use --kubeconfig FILE",
                usual);
        rc = load_files(path ? path : usual, where->context, &c, err);
    }
    if (rc < 0)
        return rc;
    *ret = c;
    c = (struct kube_config){0};
    return 0;
}
