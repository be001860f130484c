/* image_registry_test.c - images pulled from a real registry on this machine: once, again, by digest, with credentials, and from
 * one that is broken; then run. */
#include "machine/image_kit_test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include "wire/document.h"

/* ---- a registry ---- */

struct registry {
    pid_t pid;
    uint16_t port;
};

static void registry_cleanup(struct registry *r)
{
    if (r->pid > 0) {
        (void)kill(r->pid, SIGKILL);
        (void)waitpid(r->pid, NULL, 0);
    }
    r->pid = 0;
}

static uint16_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    CLEANUP(close_fd) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static bool answers(uint16_t port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    CLEANUP(close_fd) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&at, sizeof at) == 0;
}

/* False: it has ended. */
static bool registry_spawn(struct registry *r, const char *path, const char *config)
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
static void registry_start(struct image_kit *k, struct registry *r, bool auth)
{
    char path[PATH_MAX], text[1024];
    if (tool_find("docker-registry", path) < 0) {
        print_message("skip: there is no docker-registry\n");
        skip();
    }
    for (int turn = 0; turn < 5; turn++) { /* somebody else may take the port before the registry does */
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

/* Pushes an image with this text in the file /version, and its command prints it. */
static void push(struct image_kit *k, const struct registry *r, const char *version, const char *creds)
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
    (void)snprintf(target, sizeof target, "docker://127.0.0.1:%u/team/app:1", r->port);
    const char *argv[] = {"skopeo",
                          "--insecure-policy",
                          "copy",
                          "--dest-tls-verify=false",
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

static json_t *config_of(const struct registry *r, const char *tail, bool always)
{
    return json_of("{\"image\": \"127.0.0.1:%u/team/app%s\"%s}", r->port, tail, always ? ", \"pull\": \"always\"" : "");
}

static int ensure(struct image_kit *k, const struct registry *r, const char *tail, bool always)
{
    CLEANUP(json) json_t *config = config_of(r, tail, always);
    memset(&k->err, 0, sizeof k->err);
    return image_ensure(k->place, config, &k->err);
}

/* What /version of the image is that an instance would get. */
static void assert_version(struct image_kit *k, const struct registry *r, const char *tail, const char *want)
{
    CLEANUP(json) json_t *config = config_of(r, tail, false);
    CLEANUP(close_fd) int root = -1;
    CLEANUP(mem) char *text = NULL;
    char digest[72];
    if (image_open(k->place, config, &root, NULL, digest, &k->err) < 0 ||
        tree_read(root, "version", 100, &text, NULL) < 0)
        fail_msg("%s", k->err.text);
    assert_string_equal(text, want);
}

/* ---- tests ---- */

static void a_name_is_resolved_once(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    push(k, &r, "one", NULL);
    if (ensure(k, &r, ":1", false) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":1", "one");
    push(k, &r, "two", NULL);
    assert_int_equal(ensure(k, &r, ":1", false), 0);
    assert_version(k, &r, ":1", "one");
    if (ensure(k, &r, ":1", true) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":1", "two");
    /* By digest, which is here already; and without a registry, what is here is enough. */
    CLEANUP(json) json_t *config = config_of(&r, ":1", false);
    CLEANUP(close_fd) int root = -1;
    char digest[72], tail[80];
    assert_int_equal(image_open(k->place, config, &root, NULL, digest, &k->err), 0);
    registry_cleanup(&r);
    (void)snprintf(tail, sizeof tail, "@%s", digest);
    assert_int_equal(ensure(k, &r, tail, false), 0);
    assert_version(k, &r, tail, "two");
    assert_int_equal(ensure(k, &r, ":1", false), 0);
    /* Asked to look again, it says what is wrong; what is here stays. */
    assert_true(ensure(k, &r, ":1", true) < 0);
    assert_non_null(strstr(k->err.text, "cannot pull image 127.0.0.1"));
    assert_version(k, &r, ":1", "two");
}

static void assert_nothing_here(struct image_kit *k)
{
    CLEANUP(close_fd) int images = open(folder_at(&k->folder, "state/images"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(unlinkat(images, "unpacked", AT_REMOVEDIR) == 0 || errno == ENOENT);
    assert_true(unlinkat(images, "refs", AT_REMOVEDIR) == 0 || errno == ENOENT);
    assert_int_equal(unlinkat(images, "tmp-1-0", AT_REMOVEDIR), -1);
    assert_int_equal(errno, ENOENT);
}

/* The registry keeps what was pushed in files called "data"; documents are small. */
static int layer_spoil(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)flag;
    if (strcmp(path + at->base, "data") != 0 || st->st_size < 100000)
        return 0;
    return truncate(path, st->st_size - 1);
}

static void a_broken_registry_is_told(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    assert_true(ensure(k, &r, ":1", false) < 0); /* no such image */
    print_message("%s\n", k->err.text);
    assert_nothing_here(k);
    push(k, &r, "one", NULL);
    assert_true(ensure(k, &r, ":2", false) < 0); /* no such tag */
    assert_nothing_here(k);
    /* Layers that are not what their digests say. */
    assert_int_equal(nftw(folder_at(&k->folder, "registry"), layer_spoil, 16, FTW_PHYS), 0);
    assert_true(ensure(k, &r, ":1", false) < 0);
    print_message("%s\n", k->err.text);
    assert_nothing_here(k);
}

static void credentials_are_used(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, true);
    push(k, &r, "one", "ann:secret");
    assert_true(ensure(k, &r, ":1", false) < 0);
    print_message("%s\n", k->err.text);
    assert_nothing_here(k);
    char text[256];
    (void)snprintf(text, sizeof text, "{\"auths\": {\"127.0.0.1:%u\": {\"auth\": \"YW5uOnNlY3JldA==\"}}}", r.port);
    folder_put(&k->folder, "state/registries.json", text);
    if (ensure(k, &r, ":1", false) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":1", "one");
}

struct puller {
    struct image_kit *k;
    const struct registry *r;
    bool always;
};

static void *pull_at_once(void *arg)
{
    const struct puller *p = arg;
    struct berth_err err;
    CLEANUP(json) json_t *config = config_of(p->r, ":1", p->always);
    return image_ensure(p->k->place, config, &err) < 0 ? arg : NULL;
}

/* A skopeo of ours counts, and hands on. */
static void two_at_once_are_one(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    char path[PATH_MAX], text[PATH_MAX + 256];
    assert_int_equal(tool_find("skopeo", path), 0);
    registry_start(k, &r, false);
    push(k, &r, "one", NULL);
    /* A second is time enough for all to have asked. */
    (void)snprintf(
        text, sizeof text,
        "#!/bin/sh\nfor word; do case $word in inspect|copy) echo $word >>%s/count; sleep 1;; esac; done\nexec %s \"$@\"\n",
        k->folder.path, path);
    folder_put(&k->folder, "bin/skopeo", text);
    assert_int_equal(chmod(folder_at(&k->folder, "bin/skopeo"), 0755), 0);
    CLEANUP(mem) char *before = mem_strdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", folder_at(&k->folder, "bin"), 1), 0);
    for (int always = 0; always < 2; always++) {
        struct puller p = {.k = k, .r = &r, .always = always};
        pthread_t threads[3];
        for (size_t i = 0; i < ROWS(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, pull_at_once, &p), 0);
        for (size_t i = 0; i < ROWS(threads); i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
    }
    assert_int_equal(setenv("PATH", before, 1), 0);
    /* The first three: one look and one pull. Those who always want to look: a look by the first, the others had that. */
    assert_string_equal(folder_get(&k->folder, "count"), "inspect\ncopy\ninspect\n");
}

/* From the registry to its output. */
static void what_was_pulled_runs(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    const char *runtime = oci_runtime_find();
    if (!runtime) {
        print_message("skip: there is neither crun nor runc that works here\n");
        skip();
    }
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    push(k, &r, "seven", NULL);
    if (ensure(k, &r, ":1", false) < 0)
        fail_msg("%s", k->err.text);
    const struct user user = {.uid = 61234, .gid = 61235};
    uint64_t id = (uint64_t)getpid() * 100;
    CLEANUP(json) json_t *config = config_of(&r, ":1", false);
    assert_int_equal(place_begin(k->place, id, "{}", &k->err), 0);
    if (bundle_make(k->place, id, config, &(struct bundle_options){.user = &user}, &k->err) < 0)
        fail_msg("%s", k->err.text);
    images_trim(k->place, 0); /* it is in use, and stays */
    char bundle[256], name[32];
    (void)snprintf(bundle, sizeof bundle, "%s/state/instances/%" PRIu64 "/bundle", k->folder.path, id);
    (void)snprintf(name, sizeof name, "berth-%" PRIu64, id);
    const char *argv[] = {runtime, "run", "--bundle", bundle, name, NULL};
    CLEANUP(str) struct str out = {0};
    if (tool_run(&(struct tool){.argv = argv, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "run"}, &out,
                 &k->err) < 0)
        fail_msg("%s", k->err.text);
    assert_string_equal(str_text(&out), "seven");
    assert_int_equal(bundle_end(k->place, id, &k->err), 0);
    assert_int_equal(place_end(k->place, id, &k->err), 0);
    images_trim(k->place, 0);
    CLEANUP(close_fd) int root_fd = -1;
    char digest[72];
    assert_int_equal(image_open(k->place, config, &root_fd, NULL, digest, &k->err), -ENOENT);
    assert_int_equal(mounts_below_count(k->folder.path), 0);
}

static int surroundings(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return 0;
    return unshare(CLONE_NEWNS) < 0 ? -1 : mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, image_kit_setup, image_kit_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_is_resolved_once), TEST(a_broken_registry_is_told), TEST(credentials_are_used),
        TEST(two_at_once_are_one),     TEST(what_was_pulled_runs),
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
