/* backup_key.h - the key of a sealed backup: from a key file, a file with a passphrase, or a passphrase asked for.
 *
 * A passphrase is never an argument: others on the machine see those.
 */
#pragma once

#include "cli/lib/cli.h"
#include "control/system/backup.h"

struct backup_key_source {
    const char *passphrase_file; /* "-": standard input; NULL: not given */
    const char *key_file;        /* NULL: not given */
};

/* Each returns an enum exit_code; what failed has been told. */

/* For a new backup; asks twice where neither file is given and somebody is at the terminal. */
int backup_key_choose(const struct cli *cli, const struct backup_key_source *source, struct backup_key *ret);
/* For a backup of this kind; `key` is as backup_look left it. */
int backup_key_find(const struct cli *cli, const struct backup_key_source *source, enum backup_kind kind,
                    struct backup_key *key);
