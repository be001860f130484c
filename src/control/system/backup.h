/* backup.h - a whole cluster in one sealed file: the store, the journal's segments, and the keys of the daemon's folder.
 *
 * A daemon that is made from it is the same daemon to everybody: agents accept its certificate, tokens are good, secrets
 * can be opened. The file is encrypted and authenticated from its first byte to its last (libsodium's secretstream) under
 * a key of 32 bytes, which is read from a file or derived from a passphrase by Argon2id. A file that was cut, changed or
 * joined with another one is refused before anything is written to the folder.
 *
 * The file: a head of BACKUP_HEAD_LEN bytes, then chunks. Each chunk has its length in 4 bytes (little endian) and the
 * ciphertext. The first chunk is empty and authenticates the head, so that a wrong key is known from it alone; the last
 * chunk is marked as the last. The plain text is a row of entries: a byte with the length of the name, the name, 8 bytes
 * with the size (little endian), the bytes of the file. To put another file of the folder into backups: a row in the table
 * of backup.c.
 */
#pragma once

#include <stdbool.h>

#include "store/store.h"

enum {
    BACKUP_KEY_LEN = 32,
    BACKUP_SALT_LEN = 16,
    BACKUP_HEAD_LEN = 8 + 4 + 4 + 4 + BACKUP_SALT_LEN + 24,
    BACKUP_PASSPHRASE_MIN = 8, /* bytes, of a new backup */
    BACKUP_PASSPHRASE_MAX = 1024,
    BACKUP_PASSES_MAX = 16, /* of Argon2id: a file is a stranger's, and its head must not cost more */
    BACKUP_MEMORY_MIB_MAX = 1024,
};

enum backup_kind {
    BACKUP_STORE,      /* a plain copy of the store alone */
    BACKUP_PASSPHRASE, /* sealed under a passphrase */
    BACKUP_KEY,        /* sealed under the key of a key file */
};

struct backup_key {
    unsigned char bytes[BACKUP_KEY_LEN];
    bool derived; /* from a passphrase, with `salt` and the two costs */
    unsigned char salt[BACKUP_SALT_LEN];
    uint32_t passes, memory_mib;
};

/* A salt and the usual costs for a new backup. */
void backup_key_salt(struct backup_key *key);
/* Fills `bytes` from a passphrase, by the salt and costs that are there. Takes about a second and memory_mib. */
int backup_key_derive(struct backup_key *key, const char *passphrase, size_t len, struct berth_err *err);
/* Reads what a file is; of BACKUP_PASSPHRASE also salt and costs into *ret_key. -EINVAL for a file that is no backup. */
int backup_look(const char *path, enum backup_kind *ret_kind, struct backup_key *ret_key, struct berth_err *err);

struct backup_options {
    const struct backup_key *key;
    bool journal; /* with the journal's segments */
};

/* Writes DIR and the store that is open on it into a new file, which appears whole, synced, or not at all; only its owner
 * may read it. The store goes on meanwhile. On any thread. */
int backup_write(struct store *store, const char *dir, const struct backup_options *options, const char *path,
                 struct berth_err *err);
/* Makes DIR, which is empty or not there, from a sealed backup, after the whole file was verified. -EPERM: the key is
 * wrong; -EBADMSG: the file is damaged; -EEXIST: the folder is not empty. The folder is then as it was. */
int backup_restore(const char *path, const struct backup_key *key, const char *dir, struct berth_err *err);
