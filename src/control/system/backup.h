/* backup.h - a whole cluster in one sealed file: the store, the journal's segments, and the keys in the daemon's
 * folder.
 *
 * A daemon restored from the file replaces the original: agents accept its certificate, tokens stay valid, secrets can
 * be decrypted. The whole file is encrypted and authenticated (libsodium's secretstream) with a key of 32 bytes, which
 * is read from a file or derived from a passphrase by Argon2id. A truncated, modified or combined file is rejected
 * before anything is written to the folder.
 *
 * The file: a head of BACKUP_HEAD_LEN bytes, then chunks. Each chunk has its length in 4 bytes (little endian) and the
 * ciphertext. The first chunk is empty and authenticates the head, so that a wrong key is detected by it; the last
 * chunk is marked as the last. The plain text is a sequence of entries: a byte with the length of the name, the name, 8
 * bytes with the size (little endian), the bytes of the file. To add another file of the folder: a row in the table of
 * backup.c.
 */
#pragma once

#include <stdbool.h>

#include "store/store.h"

enum {
    BACKUP_KEY_LEN = 32,
    BACKUP_SALT_LEN = 16,
    BACKUP_HEAD_LEN = 8 + 4 + 4 + 4 + BACKUP_SALT_LEN + 24,
    BACKUP_PASSPHRASE_MIN = 8, /* bytes, for a new backup */
    BACKUP_PASSPHRASE_MAX = 1024,
    BACKUP_PASSES_MAX = 16, /* limits of Argon2id: the head of an untrusted file must not cost more */
    BACKUP_MEMORY_MIB_MAX = 1024,
};

enum backup_kind {
    BACKUP_STORE,      /* an unsealed copy of the store only */
    BACKUP_PASSPHRASE, /* sealed with a passphrase */
    BACKUP_KEY,        /* sealed with the key of a key file */
};

struct backup_key {
    unsigned char bytes[BACKUP_KEY_LEN];
    bool derived; /* derived from a passphrase, with `salt` and the two costs */
    unsigned char salt[BACKUP_SALT_LEN];
    uint32_t passes, memory_mib;
};

/* Sets a new salt and the default costs. */
void backup_key_salt(struct backup_key *key);
/* Derives `bytes` from a passphrase with the salt and costs of `key`. Takes about a second and memory_mib. */
int backup_key_derive(struct backup_key *key, const char *passphrase, size_t len, struct berth_err *err);
/* Determines the kind of a file, and for BACKUP_PASSPHRASE reads salt and costs into *ret_key. -EINVAL: not a
 * backup. */
int backup_inspect(const char *path, enum backup_kind *ret_kind, struct backup_key *ret_key, struct berth_err *err);

struct backup_options {
    const struct backup_key *key;
    bool journal; /* includes the journal's segments */
};

/* Writes DIR and its open store to a new file, readable only by its owner. The file appears complete and synced, or not
 * at all. The store stays in use meanwhile. Runs on any thread. */
int backup_write(struct store *store, const char *dir, const struct backup_options *options, const char *path,
                 struct berth_err *err);
/* Restores DIR, which must be empty or missing, from a sealed backup after verifying the whole file. -EPERM: wrong key;
 * -EBADMSG: damaged file; -EEXIST: the folder is not empty. On failure the folder is unchanged. */
int backup_restore(const char *path, const struct backup_key *key, const char *dir, struct berth_err *err);
