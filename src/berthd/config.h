/* config.h - berthd's configuration file: what only the machine's administrator may set.
 *
 * Lines of "name = value"; "#" begins a comment. The file holds what gives more than a permission of the cluster may
 * give: the names of programs that berthd runs. So the file, the programs it names, and every folder above them
 * belong to root, and nobody else may write to them.
 *
 * To add an entry: a field here and a row in config.c.
 */
#pragma once

#include "base/err.h"

#define DAEMON_CONFIG_PATH "/etc/berth/berthd.conf"

struct daemon_config {
    char *mail_command; /* a program like sendmail; NULL: none */
};

/* `path` NULL: DAEMON_CONFIG_PATH, which need not be there. On failure *ret is empty. */
int daemon_config_read(const char *path, struct daemon_config *ret, struct berth_err *err);
void daemon_config_done(struct daemon_config *c);
