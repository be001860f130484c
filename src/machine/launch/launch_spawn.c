#include "machine/launch/launch_spawn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include "machine/launch/launch_spec.h"
#include "machine/launch/state_file.h"

enum { FDS_MAX = SHIM_SOCKETS_FD + LAUNCH_SOCKETS_MAX };

static int actions_fill(posix_spawn_file_actions_t *actions, const int *fds, size_t fds_len, int *copies)
{
    for (size_t i = 0; i < fds_len; i++) {
        int rc;

        if (fds[i] < 0) {
            rc = posix_spawn_file_actions_addopen(actions, (int)i, "/dev/null", O_RDWR, 0);
        } else {
            /* Copied above all target numbers, so that no dup2 overwrites a descriptor that is still needed. */
            copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FDS_MAX);
            if (copies[i] < 0)
                return -errno;
            rc = posix_spawn_file_actions_adddup2(actions, copies[i], (int)i);
        }
        if (rc)
            return -rc;
    }
    return -posix_spawn_file_actions_addclosefrom_np(actions, (int)fds_len);
}

int spawn_with(const char *program, const char *const *argv, const char *const *env, const int *fds, size_t fds_len,
               pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    int copies[FDS_MAX], rc;

    assert(fds_len <= FDS_MAX);
    for (size_t i = 0; i < fds_len; i++)
        copies[i] = -1;
    rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return -rc;
    rc = posix_spawnattr_init(&attr);
    if (rc) {
        posix_spawn_file_actions_destroy(&actions);
        return -rc;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    rc = actions_fill(&actions, fds, fds_len, copies);
    if (rc == 0)
        rc = -posix_spawn(ret, program, &actions, &attr, (char *const *)argv, (char *const *)env);
    for (size_t i = 0; i < fds_len; i++)
        close_fd_cleanup(&copies[i]);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return rc;
}
