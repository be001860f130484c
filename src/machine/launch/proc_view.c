#include "machine/launch/proc_view.h"

#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/launch/state_file.h"

int proc_view_make(void)
{
    CLEANUP(close_fd) int fs = fsopen("proc", FSOPEN_CLOEXEC);

    /* As text: kernels with one setting for all mounts of /proc accept only numbers and fail here. */
    if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "hidepid", "invisible", 0) ||
        fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
        return -errno;
    int tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
    return tree < 0 ? -errno : tree;
}
