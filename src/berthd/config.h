/* config.h - berthd's configuration file: settings that only the machine's administrator may change.
 *
 * The file has lines "name = value"; "#" begins a comment. It contains settings that give more than any permission of
 * the cluster may give: the programs that berthd runs. So the file, the programs it names, and every folder above them
 * must belong to root and be writable by root only.
 *
 * To add an entry: a field here and a row in config.c.
 */
#pragma once

#include "base/err.h"

#define DAEMON_CONFIG_PATH "/etc/berth/berthd.conf"

struct daemon_config {
    char *mail_command; /* a program like sendmail; NULL: none */
};

/* Reads the file. `path` NULL: DAEMON_CONFIG_PATH, which may be missing. On failure *ret is empty. */
int daemon_config_read(const char *path, struct daemon_config *ret, struct berth_err *err);
void daemon_config_done(struct daemon_config *c);
