/* mount_test.c - volumes, files, secrets and settings: what an instance would see, hostile paths, and complete removal.
 */
#include "machine/mount/mount.h"

#include "machine/image/image_kit_test.h"

#include <linux/magic.h>
#include <sched.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "machine/mount/mount_plan.h"
#include "wire/text/document.h"

enum { UID = 61234, GID = 61235 };

#define NEEDS_ROOT                                                                                                     \
    do {                                                                                                               \
        if (geteuid() != 0) {                                                                                          \
            print_message("skip: not root\n");                                                                         \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

struct made {
    struct arena arena;
    struct launch_mount *mounts;
    size_t len;
    const char **env;
};

static void made_cleanup(struct made *m)
{
    arena_done(&m->arena);
}

static const char *secret_of(void *ctx, const char *secret, const char *key)
{
    const char *text = ctx;
    return strcmp(secret, "db") == 0 && strcmp(key, "password") == 0 ? text : NULL;
}

static const struct instance_user someone = {.name = "ann", .uid = UID, .gid = GID};
static char password[] = "hunter2";

static int make(struct image_kit *k, uint64_t id, const char *text, struct made *m)
{
    CLEANUP(json) json_t *config = json_of("%s", text);
    arena_init(&m->arena);
    assert_int_equal(instance_dir_create(k->state_dir, id, "{}", &k->err), 0);
    memset(&k->err, 0, sizeof k->err);
    return mounts_make(k->state_dir, id, config, &someone, secret_of, password, &m->arena, &m->mounts, &m->len, &m->env,
                       &k->err);
}

static int change(struct image_kit *k, uint64_t id, const char *text, char *secret)
{
    CLEANUP(json) json_t *config = json_of("%s", text);
    return mounts_change(k->state_dir, id, config, &someone, secret_of, secret, &k->err);
}

static const struct launch_mount *at_target(const struct made *m, const char *target)
{
    for (size_t i = 0; i < m->len; i++)
        if (strcmp(m->mounts[i].target, target) == 0)
            return &m->mounts[i];
    fail_msg("nothing for %s", target);
    return NULL;
}

static char *text_at(const char *folder, const char *name)
{
    char path[PATH_MAX], *text = NULL;
    (void)snprintf(path, sizeof path, "%s%s%s", folder, name ? "/" : "", name ? name : "");
    if (tree_read(AT_FDCWD, path, 4096, &text, NULL) < 0)
        text = mem_strdup("(none)");
    return text;
}

static void assert_text(const char *folder, const char *name, const char *want)
{
    CLEANUP(mem) char *text = text_at(folder, name);
    assert_string_equal(text, want);
}

static void end(struct image_kit *k, uint64_t id)
{
    for (int i = 0; i < 2; i++) /* a repeated call has no effect */
        if (mounts_end(k->state_dir, id, &k->err) < 0)
            fail_msg("%s", k->err.text);
    assert_int_equal(mounts_below_count(k->folder.path), 0);
    char name[64];
    static const char *const gone[] = {"files", "secrets", "binds"};
    for (size_t i = 0; i < ROWS(gone); i++) {
        (void)snprintf(name, sizeof name, "state/instances/%" PRIu64 "/%s", id, gone[i]);
        assert_int_equal(access(folder_at(&k->folder, name), F_OK), -1);
    }
    if (instance_dir_remove(k->state_dir, id, &k->err) < 0)
        fail_msg("%s", k->err.text);
}

/* ---- creation --------------------------------------------------------------------------------------------------- */

static void no_mounts_without_configuration(void **state)
{
    struct image_kit *k = *state;
    CLEANUP(made) struct made m = {0};
    assert_int_equal(make(k, 1, "{\"command\": [\"x\"], \"install\": {\"key\": \"unseen\"}}", &m), 0);
    assert_int_equal(m.len, 0);
    assert_null(m.env[0]);
    end(k, 1);
}

static void volumes_and_binds_are_mounted(void **state)
{
    struct image_kit *k = *state;
    NEEDS_ROOT;
    CLEANUP(made) struct made m = {0};
    folder_put(&k->folder, "given/text", "given");
    char text[1024];
    (void)snprintf(
        text, sizeof text,
        "{\"mounts\": [{\"path\": \"/b/scratch/\", \"tmpfs\": \"64Ki\"}, {\"path\": \"//data\", \"volume\": \"maps\"}, "
        "{\"path\": \"/b\", \"bind\": \"%s/given\", \"read_only\": true}, "
        "{\"path\": \"/one\", \"volume\": \"far\", \"source\": \"%s/given/text\"}]}",
        k->folder.path, k->folder.path);
    if (make(k, 1, text, &m) < 0)
        fail_msg("%s", k->err.text);
    static const char *const order[] = {"/b", "/b/scratch", "/data", "/one"};
    assert_int_equal(m.len, ROWS(order));
    for (size_t i = 0; i < m.len; i++)
        assert_string_equal(m.mounts[i].target, order[i]);
    const struct launch_mount *data = at_target(&m, "/data"), *bind = at_target(&m, "/b");
    struct stat st;
    assert_string_equal(data->source, folder_at(&k->folder, "state/volumes/maps"));
    assert_int_equal(stat(data->source, &st), 0);
    assert_int_equal(st.st_uid, UID);
    assert_int_equal(st.st_gid, GID);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_true(bind->read_only);
    assert_text(bind->source, "text", "given");
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/new", bind->source);
    assert_int_equal(mkdir(path, 0700), -1);
    assert_int_equal(errno, EROFS);
    assert_text(at_target(&m, "/one")->source, NULL, "given");
    assert_string_equal(at_target(&m, "/b/scratch")->type, "tmpfs");
    assert_string_equal(at_target(&m, "/b/scratch")->data, "size=65536,mode=0700,uid=61234,gid=61235");
    /* The opened directory stays mounted after it was replaced by another one. */
    assert_int_equal(rename(folder_at(&k->folder, "given"), folder_at(&k->folder, "moved")), 0);
    folder_put(&k->folder, "given/text", "other");
    assert_text(bind->source, "text", "given");

    /* The content of a volume stays after the end of the instance. */
    (void)snprintf(path, sizeof path, "%s/kept", data->source);
    bytes_write(path, "kept", 4);
    end(k, 1);
    assert_string_equal(folder_get(&k->folder, "state/volumes/maps/kept"), "kept");
    assert_string_equal(folder_get(&k->folder, "moved/text"), "given");
    CLEANUP(made) struct made again = {0};
    assert_int_equal(make(k, 2, "{\"mounts\": [{\"path\": \"/data\", \"volume\": \"maps\"}]}", &again), 0);
    assert_text(again.mounts[0].source, "kept", "kept");
    end(k, 2);
}

static const char filed[] =
    "{\"settings\": {\"level\": 3}, \"install\": {\"key\": \"unseen\"}, \"files\": ["
    "{\"path\": \"/nowhere/app/conf\", \"text\": \"a=1\\n\", \"mode\": \"0640\"}, {\"path\": \"/nowhere/app/more\", \"text\": \"\"}, "
    "{\"path\": \"/nowhere/key/password\", \"secret\": \"db\", \"key\": \"password\", \"mode\": 511}, "
    "{\"path\": \"/etc/app.conf\", \"text\": \"alone\"}]}";

static void files_and_secrets_are_written(void **state)
{
    struct image_kit *k = *state;
    NEEDS_ROOT;
    CLEANUP(made) struct made m = {0};
    if (make(k, 1, filed, &m) < 0)
        fail_msg("%s", k->err.text);
    assert_int_equal(m.len, 4); /* two directories, one file in an existing directory, settings */
    assert_string_equal(m.env[0], "BERTH_SETTINGS=/run/berth/settings.json");
    assert_null(m.env[1]);
    for (size_t i = 0; i < m.len; i++)
        assert_true(m.mounts[i].read_only);
    assert_text(at_target(&m, "/nowhere/app")->source, "conf", "a=1\n");
    assert_text(at_target(&m, "/nowhere/app")->source, "more", "");
    assert_text(at_target(&m, "/etc/app.conf")->source, NULL, "alone");
    assert_text(at_target(&m, "/run/berth")->source, "settings.json", "{\n  \"level\": 3\n}\n");

    const char *secrets = at_target(&m, "/nowhere/key")->source;
    char path[PATH_MAX];
    struct stat st;
    struct statfs fs;
    (void)snprintf(path, sizeof path, "%s/password", secrets);
    assert_text(path, NULL, "hunter2");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0400);
    assert_int_equal(st.st_uid, UID);
    assert_int_equal(statfs(path, &fs), 0);
    assert_int_equal(fs.f_type, TMPFS_MAGIC);
    (void)snprintf(path, sizeof path, "%s/conf", at_target(&m, "/nowhere/app")->source);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0640);
    assert_int_equal(st.st_uid, UID);
    assert_int_equal(stat(folder_at(&k->folder, "state/instances/1/files"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700); /* closed to other users of the node */

    /* A copy of the mount in another namespace is empty after the end. */
    CLEANUP(close_fd) int copy = open(secrets, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    end(k, 1);
    assert_int_equal(faccessat(copy, "password", F_OK, 0), -1);
}

/* ---- changes ---- */

static size_t events_of(int watch)
{
    char buf[4096];
    size_t count = 0;
    for (ssize_t n; (n = read(watch, buf, sizeof buf)) > 0;)
        for (ssize_t at = 0; at < n;) {
            const struct inotify_event *e = (const struct inotify_event *)(buf + at);
            count += e->len && strcmp(e->name, "settings.json") == 0;
            at += (ssize_t)(sizeof *e + e->len);
        }
    return count;
}

static void changes_are_seen(void **state)
{
    struct image_kit *k = *state;
    NEEDS_ROOT;
    CLEANUP(made) struct made m = {0};
    if (make(k, 1, filed, &m) < 0)
        fail_msg("%s", k->err.text);
    const char *app = at_target(&m, "/nowhere/app")->source, *settings = at_target(&m, "/run/berth")->source;
    CLEANUP(close_fd) int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(inotify_add_watch(watch, settings, IN_MOVED_TO) >= 0);
    assert_int_equal(change(k, 1, filed, password), 0);
    assert_int_equal(events_of(watch), 0); /* unchanged: no event */
    char path[PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/settings.json", settings);
    CLEANUP(close_fd) int old = open(path, O_RDONLY | O_CLOEXEC);

    char other[] = "other";
    if (change(k, 1,
               "{\"settings\": {\"level\": 4}, \"files\": [{\"path\": \"/nowhere/app/conf\", \"text\": \"a=2\"}, "
               "{\"path\": \"/nowhere/app/new\", \"text\": \"n\"}, {\"path\": \"/etc/app.conf\", \"text\": \"later\"}, "
               "{\"path\": \"/nowhere/key/password\", \"secret\": \"db\", \"key\": \"password\"}]}",
               other) < 0)
        fail_msg("%s", k->err.text);
    assert_int_equal(events_of(watch), 1);
    assert_text(settings, "settings.json", "{\n  \"level\": 4\n}\n");
    char before[64] = "";
    assert_true(read(old, before, sizeof before - 1) > 0); /* an open file keeps its old content */
    assert_string_equal(before, "{\n  \"level\": 3\n}\n");
    assert_text(app, "conf", "a=2");
    assert_text(app, "new", "n");
    assert_text(app, "more", "(none)");
    assert_text(at_target(&m, "/nowhere/key")->source, "password", "other");

    /* An invalid configuration changes nothing. */
    static const char *const bad[] = {
        "{\"settings\": {\"level\": 5}, \"files\": [{\"path\": \"../x\", \"text\": \"\"}]}",
        "{\"settings\": {\"level\": 5}, \"files\": [{\"path\": \"/x/y\", \"secret\": \"db\", \"key\": \"nothing\"}]}",
        "{\"settings\": 5}",
    };
    for (size_t i = 0; i < ROWS(bad); i++)
        assert_true(change(k, 1, bad[i], password) < 0);
    assert_text(settings, "settings.json", "{\n  \"level\": 4\n}\n");
    end(k, 1);

    /* Without the tmpfs, as after a reboot, a secret is not written to the disk. */
    CLEANUP(made) struct made again = {0};
    assert_int_equal(make(k, 2, filed, &again), 0);
    assert_int_equal(mounts_below_end(folder_at(&k->folder, "state/instances/2/secrets"), &k->err), 0);
    assert_int_equal(change(k, 2, filed, password), 0);
    assert_text(at_target(&again, "/nowhere/key")->source, "password", "(none)");
    end(k, 2);
}

/* ---- hostile and invalid input ---------------------------------------------------------------------------------- */

static void invalid_configurations_are_rejected(void **state)
{
    struct image_kit *k = *state;
    NEEDS_ROOT;
    assert_int_equal(symlink("/etc", folder_at(&k->folder, "link")), 0);
    assert_int_equal(mkfifo(folder_at(&k->folder, "pipe"), 0600), 0);
    assert_int_equal(symlink("/etc", folder_at(&k->folder, "state/volumes/planted")), 0);
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"{\"mounts\": {}}",                                                                                      "expected a list"                },
        {"{\"mounts\": [{\"volume\": \"a\"}]}",                                                                   "absolute path"                  },
        {"{\"mounts\": [{\"path\": \"a\", \"volume\": \"a\"}]}",                                                  "absolute path"                  },
        {"{\"mounts\": [{\"path\": \"/a/../b\", \"volume\": \"a\"}]}",                                            "absolute path"                  },
        {"{\"mounts\": [{\"path\": \"/a/./b\", \"volume\": \"a\"}]}",                                             "absolute path"                  },
        {"{\"mounts\": [{\"path\": \"/\", \"volume\": \"a\"}]}",                                                  "absolute path"                  },
        {"{\"mounts\": [{\"path\": \"/proc/x\", \"volume\": \"a\"}]}",                                            "is reserved: choose one outside"},
        {"{\"mounts\": [{\"path\": \"/run/berth\", \"volume\": \"a\"}]}",                                         "is reserved: choose one outside"},
        {"{\"mounts\": [{\"path\": \"/a\"}]}",                                                                    "one of volume"                  },
        {"{\"mounts\": [{\"path\": \"/a\", \"volume\": \"a\", \"tmpfs\": 1}]}",                                   "one of volume"                  },
        {"{\"mounts\": [{\"path\": \"/a\", \"volume\": \"../a\"}]}",                                              "expected a name"                },
        {"{\"mounts\": [{\"path\": \"/a\", \"volume\": \"..\"}]}",                                                "expected a name"                },
        {"{\"mounts\": [{\"path\": \"/a\", \"volume\": \".new-b\"}]}",                                            "expected a name"                },
        {"{\"mounts\": [{\"path\": \"/a\", \"volume\": \"\"}]}",                                                  "expected a name"                },
        {"{\"mounts\": [{\"path\": \"/a\", \"volume\": \"planted\"}]}",                                           "is not a folder"                },
        {"{\"mounts\": [{\"path\": \"/a\", \"tmpfs\": 0}]}",                                                      "a size in bytes"                },
        {"{\"mounts\": [{\"path\": \"/a\", \"bind\": \"b\"}]}",                                                   "absolute path of the node"      },
        {"{\"mounts\": [{\"path\": \"/a\", \"bind\": \"/b/../c\"}]}",                                             "absolute path of the node"      },
        {"{\"mounts\": [{\"path\": \"/a\", \"bind\": \"%s/nothing\"}]}",                                          "cannot open it on this node"    },
        {"{\"mounts\": [{\"path\": \"/a\", \"bind\": \"%s/link\"}]}",                                             "contains a symbolic link"       },
        {"{\"mounts\": [{\"path\": \"/a\", \"bind\": \"%s/link/passwd\"}]}",                                      "contains a symbolic link"       },
        {"{\"mounts\": [{\"path\": \"/a\", \"bind\": \"%s/pipe\"}]}",                                             "neither a folder nor a file"    },
        {"{\"mounts\": [{\"path\": \"/a\", \"tmpfs\": 1}, {\"path\": \"/a/\", \"tmpfs\": 1}]}",                   "listed twice"                   },
        {"{\"files\": [{\"path\": \"/a/b\"}]}",                                                                   "either text, or secret"         },
        {"{\"files\": [{\"path\": \"/a/..\", \"text\": \"\"}]}",                                                  "absolute path"                  },
        {"{\"files\": [{\"path\": \"/a/b\", \"text\": \"\", \"mode\": \"0888\"}]}",                               "permissions"                    },
        {"{\"files\": [{\"path\": \"/a/b\", \"text\": \"\", \"mode\": 4095}]}",                                   "permissions"                    },
        {"{\"files\": [{\"path\": \"/a/b\", \"text\": \"\"}, {\"path\": \"/a//b\", \"text\": \"\"}]}",            "listed twice"                   },
        {"{\"files\": [{\"path\": \"/a/b\", \"secret\": \"db\"}]}",                                               "names of a secret and a key"    },
        {"{\"files\": [{\"path\": \"/a/b\", \"secret\": \"db\", \"key\": \"x\"}]}",
         "secret db with key x does not exist"                                                                                                     },
        {"{\"files\": [{\"path\": \"/a/b\", \"text\": \"\"}], \"mounts\": [{\"path\": \"/a/b\", \"tmpfs\": 1}]}",
         "a file and a mount"                                                                                                                      },
        {"{\"settings\": []}",                                                                                    "expected an object"             },
 /* The last of three fails: the others are undone. */
        {"{\"files\": [{\"path\": \"/nowhere/b\", \"secret\": \"db\", \"key\": \"password\"}], \"mounts\": [{\"path\": \"/a\", "
         "\"bind\": \"/usr\"}, {\"path\": \"/b\", \"bind\": \"%s/nothing\"}]}",                          "cannot open it on this node"    },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(made) struct made m = {0};
        char text[1024], state_dir[64];
        const char *blank = strstr(rows[i].text, "%s");
        (void)snprintf(text, sizeof text, "%.*s%s%s", blank ? (int)(blank - rows[i].text) : 1000, rows[i].text,
                       blank ? k->folder.path : "", blank ? blank + 2 : "");
        int rc = make(k, i + 1, text, &m);
        if (rc >= 0 || !strstr(k->err.text, rows[i].want))
            fail_msg("%s: %d %s", text, rc, k->err.text);
        assert_null(m.mounts);
        assert_int_equal(mounts_below_count(k->folder.path), 0);
        (void)snprintf(state_dir, sizeof state_dir, "state/instances/%zu/binds", i + 1);
        assert_int_equal(access(folder_at(&k->folder, state_dir), F_OK), -1);
    }
    /* A path with an embedded NUL is rejected. */
    json_t *config = json_loads("{\"mounts\": [{\"path\": \"/a\\u0000b\", \"tmpfs\": 1}]}", JSON_ALLOW_NUL, NULL);
    struct arena arena;
    struct mount_plan plan;
    arena_init(&arena);
    assert_int_equal(mount_plan_read(config, &arena, &plan, NULL), -EINVAL);
    arena_done(&arena);
    json_decref(config);
}

/* State after a killed agent: stacked mounts in use, and links and binds that lead outside. */
static void only_leftovers_of_crash_are_removed(void **state)
{
    struct image_kit *k = *state;
    NEEDS_ROOT;
    CLEANUP(made) struct made m = {0};
    folder_put(&k->folder, "outside/deep/kept", "kept");
    if (make(k, 1, filed, &m) < 0)
        fail_msg("%s", k->err.text);
    char path[256], outside[128];
    (void)snprintf(outside, sizeof outside, "%s/outside", k->folder.path);
    (void)snprintf(path, sizeof path, "%s/state/instances/1/files/odd \\name", k->folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(mount(outside, path, NULL, MS_BIND, NULL), 0);
    (void)snprintf(path, sizeof path, "%s/state/instances/1/files/odd \\name/deep", k->folder.path);
    assert_int_equal(mount("t", path, "tmpfs", 0, NULL), 0);
    assert_int_equal(symlink(outside, folder_at(&k->folder, "state/instances/1/files/link")), 0);
    CLEANUP(close_fd) int busy = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(busy >= 0);
    end(k, 1);
    assert_string_equal(folder_get(&k->folder, "outside/deep/kept"), "kept");
}

/* Removal never enters a mount, and handles any depth. */
static void removal_does_not_cross_mounts(void **state)
{
    struct image_kit *k = *state;
    NEEDS_ROOT;
    CLEANUP(close_fd) int top = open(k->folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    folder_put(&k->folder, "outside/kept", "kept");
    folder_make(&k->folder, "tree/bound");
    assert_int_equal(mount(folder_at(&k->folder, "outside"), folder_at(&k->folder, "tree/bound"), NULL, MS_BIND, NULL),
                     0);
    assert_int_equal(tree_open(top, "tree/bound", O_PATH | O_DIRECTORY, 0), -EXDEV);
    assert_int_equal(tree_remove(top, "tree"), -EBUSY);
    assert_string_equal(folder_get(&k->folder, "outside/kept"), "kept");
    assert_int_equal(mounts_below_end(folder_at(&k->folder, "tree"), NULL), 0);
    assert_int_equal(tree_remove(top, "tree"), 0);

    int at = tree_folder(top, "tree", 0700);
    for (int i = 0; i < 3000; i++) {
        int next = tree_folder(at, "d", 0700);
        assert_true(next >= 0);
        assert_int_equal(close(at), 0);
        at = next;
    }
    assert_int_equal(close(at), 0);
    assert_int_equal(tree_remove(top, "tree"), 0);
    assert_int_equal(faccessat(top, "tree", F_OK, 0), -1);
}

/* A copy, used without overlayfs, has everything except devices and set-user-id bits. */
static void copy_preserves_owner_and_mode(void **state)
{
    struct image_kit *k = *state;
    NEEDS_ROOT;
    folder_put(&k->folder, "from/a/file", "text");
    folder_make(&k->folder, "to");
    assert_int_equal(chmod(folder_at(&k->folder, "from/a/file"), 04751), 0);
    assert_int_equal(chown(folder_at(&k->folder, "from/a/file"), UID, GID), 0);
    assert_int_equal(chmod(folder_at(&k->folder, "from/a/file"), 04751), 0);
    assert_int_equal(symlink("../../../../etc/passwd", folder_at(&k->folder, "from/a/link")), 0);
    assert_int_equal(mknod(folder_at(&k->folder, "from/null"), S_IFCHR | 0666, makedev(1, 3)), 0);
    CLEANUP(close_fd) int from = open(folder_at(&k->folder, "from"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(close_fd) int to = open(folder_at(&k->folder, "to"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tree_copy(from, to), 0);
    struct stat st;
    char target[64] = "";
    assert_string_equal(folder_get(&k->folder, "to/a/file"), "text");
    assert_int_equal(stat(folder_at(&k->folder, "to/a/file"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0751);
    assert_int_equal(st.st_uid, UID);
    assert_true(readlink(folder_at(&k->folder, "to/a/link"), target, sizeof target - 1) > 0);
    assert_string_equal(target, "../../../../etc/passwd");
    assert_int_equal(lstat(folder_at(&k->folder, "to/null"), &st), -1);
}

/* Creates a mount namespace, so that mounts of a failed test end with the process. */
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
    (void)umask(077); /* the agent's umask */
    const struct CMUnitTest tests[] = {
        TEST(no_mounts_without_configuration),     TEST(volumes_and_binds_are_mounted),
        TEST(files_and_secrets_are_written),       TEST(changes_are_seen),
        TEST(invalid_configurations_are_rejected), TEST(only_leftovers_of_crash_are_removed),
        TEST(removal_does_not_cross_mounts),       TEST(copy_preserves_owner_and_mode),
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
