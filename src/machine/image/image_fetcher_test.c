/* image_fetcher_test.c - the real curl and skopeo run without privileges; a compromised skopeo cannot plant other
 * content.
 */
#include "machine/image/image_registry_kit_test.h"

#include <pthread.h>

/* Other ids than in tests that may run at the same time. */
enum { UID = 61240, GID = 61241, STATUS_MAX = 4096 };

static int setup(void **state)
{
    (void)image_kit_setup(state);
    if (geteuid() == 0)
        state_dir_set_fetcher(((struct image_kit *)*state)->state_dir, UID, GID);
    return 0;
}

/* ---- privileges of the real programs ---------------------------------------------------------------------------- */

/* A server that inspects the client process before it answers. */
struct watcher {
    int listening;
    uint16_t port;
    const char *program, *answer;
    size_t asked;
    pid_t pid; /* of the client */
    char status[STATUS_MAX];
};

static bool read_file(const char *pid, const char *file, char *ret, size_t size)
{
    char path[300];
    (void)snprintf(path, sizeof path, "/proc/%s/%s", pid, file);
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);
    ret[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

static void asker_find(struct watcher *w)
{
    DIR *all = opendir("/proc");
    for (const struct dirent *e; (e = readdir(all));) {
        char name[64];
        struct stat st;
        if (fstatat(dirfd(all), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == UID &&
            read_file(e->d_name, "comm", name, sizeof name) && strcmp(name, w->program) == 0) {
            (void)read_file(e->d_name, "status", w->status, sizeof w->status);
            w->pid = (pid_t)strtol(e->d_name, NULL, 10);
        }
    }
    (void)closedir(all);
}

static void *watch(void *arg)
{
    struct watcher *w = arg;
    for (;;) {
        CLEANUP(close_fd) int fd = accept4(w->listening, NULL, NULL, SOCK_CLOEXEC);
        char request[4096];
        if (fd < 0)
            return NULL;
        if (recv(fd, request, sizeof request, 0) <= 0)
            continue;
        w->asked++;
        asker_find(w);
        (void)send(fd, w->answer, strlen(w->answer), MSG_NOSIGNAL);
    }
}

static pthread_t watcher_start(struct watcher *w)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    pthread_t thread;
    w->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(w->listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(w->listening, 8), 0);
    assert_int_equal(getsockname(w->listening, (struct sockaddr *)&at, &len), 0);
    w->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&thread, NULL, watch, w), 0);
    return thread;
}

static void watcher_end(struct watcher *w, pthread_t thread)
{
    (void)shutdown(w->listening, SHUT_RDWR);
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)close(w->listening);
}

static void assert_seen_without_rights(const struct watcher *w)
{
    static const char *const lines[] = {
        "Uid:\t61240\t61240\t61240\t61240\n",
        "Gid:\t61241\t61241\t61241\t61241\n",
        "Groups:\t \n",
        "CapInh:\t0000000000000000\n",
        "CapPrm:\t0000000000000000\n",
        "CapEff:\t0000000000000000\n",
        "CapBnd:\t0000000000000000\n",
        "CapAmb:\t0000000000000000\n",
        "NoNewPrivs:\t1\n",
        "Seccomp:\t2\n",
    };
    assert_true(w->asked > 0);
    for (size_t i = 0; i < ROWS(lines); i++)
        if (!strstr(w->status, lines[i]))
            fail_msg("no %s in '%s'", lines[i], w->status);
    assert_int_equal(kill(w->pid, 0), -1); /* it has ended */
}

#define DISK(url, sum) "{\"runtime\": \"vm\", \"image\": \"" url "\", \"vm\": {\"sha256\": \"" sum "\"}}"
#define HELLO_SUM "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

static void curl_runs_without_privileges(void **state)
{
    struct image_kit *k = *state;
    NEEDS("curl");
    struct watcher w = {.program = "curl\n", .answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"};
    pthread_t thread = watcher_start(&w);
    CLEANUP(json) json_t *good = json_of(DISK("http://127.0.0.1:%u/disk", HELLO_SUM), w.port);
    CLEANUP(json)
    json_t *bad = json_of(
        DISK("http://127.0.0.1:%u/disk", "0123456789012345678901234567890123456789012345678901234567890123"), w.port);
    assert_int_equal(image_ensure(k->state_dir, bad, &k->err), -EBADMSG);
    assert_null(strstr(k->err.text, "2cf24"));
    assert_nothing_here(k);
    if (image_ensure(k->state_dir, good, &k->err) < 0)
        fail_msg("%s", k->err.text);
    watcher_end(&w, thread);
    assert_seen_without_rights(&w);
    CLEANUP(close_fd) int root = -1;
    CLEANUP(mem) char *text = NULL;
    char digest[72];
    struct stat st;
    assert_int_equal(image_open(k->state_dir, good, &root, NULL, digest, &k->err), 0);
    assert_int_equal(tree_read(root, "disk", 100, &text, NULL), 0);
    assert_string_equal(text, "hello");
    assert_int_equal(fstatat(root, "disk", &st, AT_SYMLINK_NOFOLLOW), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode, S_IFREG | 0444);
}

static void skopeo_runs_without_privileges(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    struct watcher w = {.program = "skopeo\n", .answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"};
    pthread_t thread = watcher_start(&w);
    CLEANUP(json) json_t *config = json_of("{\"image\": \"127.0.0.1:%u/app:1\"}", w.port);
    assert_int_equal(image_ensure(k->state_dir, config, &k->err), -EIO);
    watcher_end(&w, thread);
    assert_seen_without_rights(&w);
    assert_nothing_here(k);
}

/* ---- compromised skopeo ----------------------------------------------------------------------------------------- */

/* Replaces skopeo by a script that runs the real one and then `evil` in its directory, or only `evil`. $verb: the
 * requested verb. */
static void skopeo_becomes(struct image_kit *k, const char *real, const char *evil)
{
    CLEANUP(str) struct str text = {0};
    str_addf(
        &text,
        "#!/bin/sh\nPATH=/usr/bin:/bin\nreal=%s\nfor word; do case $word in inspect|copy) verb=$word;; esac; done\n"
        "%s\n$real \"$@\" || exit 1\n[ $verb = copy ] || exit 0\n",
        real, strncmp(evil, "instead: ", 9) == 0 ? evil + 9 : "");
    if (strncmp(evil, "instead: ", 9) != 0)
        str_addf(&text, "%s\n", evil);
    folder_put(&k->folder, "bin/skopeo", text.at);
    assert_int_equal(chmod(folder_at(&k->folder, "bin/skopeo"), 0755), 0);
}

#define LAYER "for layer in $(ls -S pull | head -n 1); do "

static void compromised_skopeo_is_detected(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    /* evil-index matches this machine and lists the image tagged "evil", but does not have the requested digest. */
#define REAL "$real --insecure-policy"
    static const struct {
        const char *label, *evil, *want;
    } rows[] = {
        {"another image, whole",
         "instead: if [ $verb = copy ]; then " REAL
         " copy -q --src-tls-verify=false docker://$(cat ../../../../where):evil dir:pull; exit; fi",                      "does not match sha256:"   },
        {"another image, and an index that lists it",
         "instead: if [ $verb = copy ]; then " REAL
         " copy -q --src-tls-verify=false docker://$(cat ../../../../where):evil dir:pull; exit; else cat "
         "../../../../evil-index; exit; fi",                                                                               "does not match sha256:"   },
        {"a longer layer",                            LAYER "echo x >>pull/$layer; done",                                  "does not match its digest"},
        {"a changed layer",                           LAYER "printf x | dd of=pull/$layer conv=notrunc status=none; done",
         "does not match its digest"                                                                                                                  },
        {"no layer",                                  LAYER "rm pull/$layer; done",                                        "No such file"             },
        {"a link to a file of root's",                LAYER "rm pull/$layer; ln -s /etc/shadow pull/$layer; done",
         "is not a regular file"                                                                                                                      },
        {"a link to the layer",                       LAYER "mv pull/$layer x; ln -s ../x pull/$layer; done",              "is not a regular file"    },
        {"a second name of a layer",                  LAYER "ln pull/$layer x; done",                                      "is not a regular file"    },
        {"a fifo",                                    LAYER "rm pull/$layer; mkfifo pull/$layer; done",                    "is not a regular file"    },
        {"a link for a folder",                       "mv pull x; ln -s x pull",                                           "left no manifest"         },
        {"a fifo for a manifest",                     "rm pull/manifest.json; mkfifo pull/manifest.json",                  "left no manifest"         },
        {"an endless manifest",                       "truncate -s 40G pull/manifest.json",                                "left no manifest"         },
        {"a file beyond the limit",                   "truncate -s 1T pull/manifest.json",                                 "the limit of this node"   },
        {"a manifest with more in it",                "echo >>pull/manifest.json",                                         "does not match sha256:"   },
        {"nothing at all",                            "instead: [ $verb = copy ] && exit 0",                               "left no manifest"         },
    };
    CLEANUP(registry) struct registry r = {0};
    CLEANUP(str) struct str index = {0};
    char real[PATH_MAX], good[80], evil[80], where[80];
    assert_int_equal(tool_find("skopeo", real), 0);
    registry_start(k, &r, false);
    push(k, &r, "good", NULL);
    push_as(k, &r, "evil", "evil", NULL, NULL);
    digest_tail(k, &r, "1", good);
    digest_tail(k, &r, "evil", evil);
    (void)snprintf(where, sizeof where, "127.0.0.1:%u/team/app", r.port);
    folder_put(&k->folder, "where", where);
    str_addf(&index, "{\"schemaVersion\": 2, \"manifests\": [{\"digest\": \"%s\"}]}", evil + 1);
    folder_put(&k->folder, "evil-index", index.at);
    CLEANUP(mem) char *before = mem_strdup(getenv("PATH"));
    for (size_t i = 0; i < ROWS(rows); i++) {
        skopeo_becomes(k, real, rows[i].evil);
        assert_int_equal(setenv("PATH", folder_at(&k->folder, "bin"), 1), 0);
        int rc = ensure(k, &r, good, false);
        assert_int_equal(setenv("PATH", before, 1), 0);
        if (rc >= 0 || !strstr(k->err.text, rows[i].want))
            fail_msg("%s: %d %s", rows[i].label, rc, k->err.text);
        assert_nothing_here(k);
    }
    if (ensure(k, &r, good, false) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, good, "good");
}

/* ---- state of an older agent ------------------------------------------------------------------------------------ */

static void place_again(struct image_kit *k)
{
    state_dir_free(k->state_dir);
    k->state_dir = NULL;
    if (state_dir_open(folder_at(&k->folder, "state"), &k->state_dir, &k->err))
        fail_msg("%s", k->err.text);
    state_dir_set_fetcher(k->state_dir, UID, GID);
}

static mode_t mode_of(const struct image_kit *k, const char *name)
{
    struct stat st;
    assert_int_equal(stat(folder_at(&k->folder, name), &st), 0);
    return st.st_mode & 07777;
}

/* An older agent's image directory was closed to other users, and its subdirectories were not. */
static void store_of_older_agent_is_used(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    push(k, &r, "one", NULL);
    if (ensure(k, &r, ":1", false) < 0)
        fail_msg("%s", k->err.text);
    assert_int_equal(chmod(folder_at(&k->folder, "state/images"), 0700), 0);
    assert_int_equal(chmod(folder_at(&k->folder, "state/images/unpacked"), 0755), 0);
    assert_int_equal(chmod(folder_at(&k->folder, "state/images/refs"), 0755), 0);
    folder_put(&k->folder, "state/images/tmp-0-0/pull/index.json", "{}"); /* left by a killed agent */
    place_again(k);
    images_trim(k->state_dir, UINT64_MAX);
    assert_int_equal(mode_of(k, "state/images"), 0711);
    assert_int_equal(mode_of(k, "state/images/unpacked"), 0700);
    assert_int_equal(mode_of(k, "state/images/refs"), 0700);
    assert_int_equal(access(folder_at(&k->folder, "state/images/tmp-0-0"), F_OK), -1);
    assert_int_equal(ensure(k, &r, ":1", false), 0);
    assert_version(k, &r, ":1", "one");
    push(k, &r, "two", NULL);
    if (ensure(k, &r, ":1", true) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":1", "two");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, image_kit_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(curl_runs_without_privileges),
        TEST(skopeo_runs_without_privileges),
        TEST(compromised_skopeo_is_detected),
        TEST(store_of_older_agent_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
