#include "machine/container/leftover.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/mount/mount_tree.h"

const char *const leftover_folders[] = {"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", NULL};

static int64_t ns(struct timespec t)
{
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

struct owner_ids {
    uid_t uid;
    struct user_range more;
};

static bool is_owned(const struct owner_ids *w, int64_t uid)
{
    return uid == (int64_t)w->uid || (uid >= w->more.first && uid < (int64_t)w->more.first + w->more.count);
}

/* Collects the names first: reading a directory while it changes may return an entry twice or not at all. */
static size_t folder_clear(const char *path, const struct owner_ids *owner_ids, int64_t until_ns)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    VEC(char *) names = {0};
    const struct dirent *e;
    size_t removed = 0;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return 0; /* the machine has no such directory */
    }
    while ((e = readdir(dir))) {
        struct stat st;
        if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && is_owned(owner_ids, st.st_uid) &&
            ns(st.st_ctim) <= until_ns)
            vec_push(&names, mem_strdup(e->d_name));
    }
    for (size_t i = 0; i < names.len; i++) {
        removed += tree_remove(fd, names.at[i]) == 0;
        mem_free(names.at[i]);
    }
    vec_done(&names);
    closedir(dir);
    return removed;
}

/* ---- System V IPC ----------------------------------------------------------------------------------------------- */

static int shm_end(int id)
{
    return shmctl(id, IPC_RMID, NULL);
}

static int sem_end(int id)
{
    return semctl(id, 0, IPC_RMID);
}

static int msg_end(int id)
{
    return msgctl(id, IPC_RMID, NULL);
}

/* A table of /proc/sysvipc with the columns that are read, counted from 0. */
struct ipc_table {
    const char *path;
    int uid, changed;
    int (*end)(int id);
};
static const struct ipc_table ipc_tables[] = {
    {"/proc/sysvipc/shm", 7, 13, shm_end},
    {"/proc/sysvipc/sem", 4, 9,  sem_end},
    {"/proc/sysvipc/msg", 7, 13, msg_end},
};

/* Parses a row "key id perms ... uid ... ctime" of numbers separated by spaces. */
static bool row_read(const struct ipc_table *t, char *line, int *ret_id, int64_t *ret_uid, int64_t *ret_changed)
{
    char *rest = line, *end;

    for (int column = 0; column <= t->changed; column++, rest = end) {
        int64_t value = strtoll(rest, &end, 10);
        if (end == rest)
            return false; /* the header line */
        if (column == 1)
            *ret_id = (int)value;
        if (column == t->uid)
            *ret_uid = value;
        if (column == t->changed)
            *ret_changed = value;
    }
    return true;
}

static size_t ipc_clear(const struct ipc_table *t, const struct owner_ids *owner_ids, int64_t until_ns)
{
    FILE *file = fopen(t->path, "re");
    VEC(int) ids = {0};
    int64_t owner = -1, changed = 0;
    char line[512];
    size_t removed = 0;
    int id = -1;

    if (!file)
        return 0; /* the kernel lacks System V IPC */
    while (fgets(line, sizeof line, file))
        if (row_read(t, line, &id, &owner, &changed) && is_owned(owner_ids, owner) && changed <= until_ns / 1000000000)
            vec_push(&ids, id);
    (void)fclose(file);
    for (size_t i = 0; i < ids.len; i++)
        removed += t->end(ids.at[i]) == 0;
    vec_done(&ids);
    return removed;
}

static bool owner_has_processes(const struct owner_ids *owner_ids)
{
    DIR *proc = opendir("/proc");
    const struct dirent *e;
    bool lives = !proc;

    while (!lives && (e = readdir(proc))) {
        struct stat st;
        lives = e->d_name[0] >= '1' && e->d_name[0] <= '9' && fstatat(dirfd(proc), e->d_name, &st, 0) == 0 &&
                is_owned(owner_ids, st.st_uid);
    }
    if (proc)
        closedir(proc);
    return lives;
}

bool user_has_processes(uid_t uid, struct user_range more)
{
    return owner_has_processes(&(struct owner_ids){uid, more});
}

size_t leftovers_remove(uid_t uid, struct user_range more, const char *const *folders, int64_t until_ns)
{
    const struct owner_ids owner_ids = {uid, more};
    size_t removed = 0;

    if (owner_has_processes(&owner_ids))
        return 0;
    for (; *folders; folders++)
        removed += folder_clear(*folders, &owner_ids, until_ns);
    for (size_t i = 0; i < sizeof ipc_tables / sizeof *ipc_tables; i++)
        removed += ipc_clear(&ipc_tables[i], &owner_ids, until_ns);
    return removed;
}
