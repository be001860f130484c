/* backup_key.h - the key of a sealed backup: from a key file, a passphrase file, or a passphrase entered on the
 * terminal.
 *
 * A passphrase is never a command line argument, because other users of the machine can see those.
 */
#pragma once

#include "cli/lib/cli.h"
#include "control/system/backup.h"

struct backup_key_source {
    const char *passphrase_file; /* "-": standard input; NULL: not given */
    const char *key_file;        /* NULL: not given */
};

/* These functions return an enum exit_code and print errors. */

/* Makes the key of a new backup. Without files it asks for a passphrase twice on the terminal. */
int backup_key_choose(const struct cli *cli, const struct backup_key_source *source, struct backup_key *ret);
/* Finds the key of a backup of this kind; backup_inspect has filled `key`. */
int backup_key_find(const struct cli *cli, const struct backup_key_source *source, enum backup_kind kind,
                    struct backup_key *key);
