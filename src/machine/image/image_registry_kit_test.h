/* image_registry_kit_test.h - for tests of images from a registry: runs a real registry on this machine and pushes
 * images to it.
 */
#pragma once

#include "machine/image/image_kit_test.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "wire/text/document.h"

/* ---- a registry ---- */

struct registry {
    pid_t pid;
    uint16_t port;
};

static inline void registry_cleanup(struct registry *r)
{
    if (r->pid > 0) {
        (void)kill(r->pid, SIGKILL);
        (void)waitpid(r->pid, NULL, 0);
    }
    r->pid = 0;
}

static inline uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    CLEANUP(close_fd) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static inline bool answers(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    CLEANUP(close_fd) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
}

/* False: the registry has exited. */
static inline bool registry_spawn(struct registry *r, const char *path, const char *config)
{
    r->pid = fork();
    if (r->pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)dup2(null, 1);
        (void)dup2(null, 2);
        execl(path, path, "serve", config, NULL);
        _exit(127);
    }
    for (int i = 0; i < 3000; i++) {
        if (waitpid(r->pid, NULL, WNOHANG) != 0)
            break;
        if (answers(r->port))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

/* `auth`: user "ann", password "secret". */
static inline void registry_start(struct image_kit *k, struct registry *r, bool auth)
{
    char path[PATH_MAX], text[1024];
    if (tool_find("docker-registry", path) < 0) {
        print_message("skip: there is no docker-registry\n");
        skip();
    }
    for (int turn = 0; turn < 5; turn++) { /* another process may take the port before the registry does */
        r->port = free_port();
        (void)snprintf(
            text, sizeof text,
            "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\nstorage: {filesystem: {rootdirectory: "
            "%s/registry}}\nhttp: {addr: \"127.0.0.1:%u\"}\n%s%s%s",
            k->folder.path, r->port, auth ? "auth: {htpasswd: {realm: r, path: " : "", auth ? k->folder.path : "",
            auth ? "/htpasswd}}\n" : "");
        folder_put(&k->folder, "registry.yml", text);
        folder_put(&k->folder, "htpasswd", "ann:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n");
        if (registry_spawn(r, path, folder_at(&k->folder, "registry.yml")))
            return;
    }
    fail_msg("the registry does not start");
}

/* Pushes an image with this text in the file /version, whose command prints it. `format`: manifest format as named by
 * skopeo; NULL: OCI. */
static inline void push_as(struct image_kit *k, const struct registry *r, const char *version, const char *tag,
                           const char *format, const char *creds)
{
    struct str layers[2] = {{0}, {0}};
    char digest[72], layout[128], source[160], target[160];
    if (!busybox_layer(&layers[0])) {
        print_message("skip: there is no busybox\n");
        skip();
    }
    tar_add(&layers[1], &(struct entry){.type = '0', .name = "version", .mode = 0644, .data = version});
    tar_end(&layers[1]);
    (void)snprintf(layout, sizeof layout, "%s/push-%s", k->folder.path, version);
    layout_put(layout, "1", layers, 2, "\"Entrypoint\":[\"/bin/cat\"],\"Cmd\":[\"/version\"]", digest);
    (void)snprintf(source, sizeof source, "oci:%s:1", layout);
    (void)snprintf(target, sizeof target, "docker://127.0.0.1:%u/team/app:%s", r->port, tag);
    const char *argv[] = {"skopeo",
                          "--insecure-policy",
                          "copy",
                          "--dest-tls-verify=false",
                          "--format",
                          format ? format : "oci",
                          source,
                          target,
                          creds ? "--dest-creds" : NULL,
                          creds,
                          NULL};
    if (tool_run(&(struct tool){.argv = argv, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "push"}, NULL,
                 &k->err) < 0)
        fail_msg("%s", k->err.text);
    str_done(&layers[0]);
    str_done(&layers[1]);
}

static inline void push(struct image_kit *k, const struct registry *r, const char *version, const char *creds)
{
    push_as(k, r, version, "1", NULL, creds);
}

/* Returns "@" and the digest of a tag in the registry. */
static inline void digest_tail(struct image_kit *k, const struct registry *r, const char *tag, char ret[static 80])
{
    CLEANUP(str) struct str out = {0};
    char source[160];
    (void)snprintf(source, sizeof source, "docker://127.0.0.1:%u/team/app:%s", r->port, tag);
    const char *argv[] = {"skopeo",   "inspect",     "--no-tags", "--tls-verify=false",
                          "--format", "{{.Digest}}", source,      NULL};
    if (tool_run(&(struct tool){.argv = argv, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "inspect"}, &out,
                 &k->err) < 0)
        fail_msg("%s", k->err.text);
    (void)snprintf(ret, 80, "@%.71s", str_text(&out));
}

static inline json_t *config_of(const struct registry *r, const char *tail, bool always)
{
    return json_of("{\"image\": \"127.0.0.1:%u/team/app%s\"%s}", r->port, tail, always ? ", \"pull\": \"always\"" : "");
}

static inline int ensure(struct image_kit *k, const struct registry *r, const char *tail, bool always)
{
    CLEANUP(json) json_t *config = config_of(r, tail, always);
    memset(&k->err, 0, sizeof k->err);
    return image_ensure(k->state_dir, config, &k->err);
}

/* Compares /version of the image that an instance would get. */
static inline void assert_version(struct image_kit *k, const struct registry *r, const char *tail, const char *want)
{
    CLEANUP(json) json_t *config = config_of(r, tail, false);
    CLEANUP(close_fd) int root = -1;
    CLEANUP(mem) char *text = NULL;
    char digest[72];
    if (image_open(k->state_dir, config, &root, NULL, digest, &k->err) < 0 ||
        tree_read(root, "version", 100, &text, NULL) < 0)
        fail_msg("%s", k->err.text);
    assert_string_equal(text, want);
}

static inline void assert_nothing_here(struct image_kit *k)
{
    CLEANUP(close_fd) int images = open(folder_at(&k->folder, "state/images"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(unlinkat(images, "unpacked", AT_REMOVEDIR) == 0 || errno == ENOENT);
    assert_true(unlinkat(images, "refs", AT_REMOVEDIR) == 0 || errno == ENOENT);
    DIR *dir = fdopendir(take_fd(&images));
    for (const struct dirent *e; (e = readdir(dir));)
        if (strncmp(e->d_name, "tmp-", 4) == 0)
            fail_msg("%s is left", e->d_name);
    (void)closedir(dir);
}
