/* token.c - the text of a token: how it is made, stored and parsed.
 *
 * berth_ID_SECRET: the ID finds the document and may be shown; of the secret only a hash is stored. A secret of 256
 * random bits needs no slow hash.
 */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "control/api/permit.h"
#include "wire/doc/api.h"

enum {
    SECRET_LEN = 32,
    SECRET_TEXT_LEN = 43, /* base64 without padding */
    RANDOM_LEN = 40,
};
#define PREFIX TOKEN_PREFIX
static const char base32[] = "abcdefghijklmnopqrstuvwxyz234567";

static void secret_hash(const unsigned char secret[static SECRET_LEN], unsigned char ret[static TOKEN_HASH_LEN])
{
    (void)crypto_generichash(ret, TOKEN_HASH_LEN, secret, SECRET_LEN, NULL, 0);
}

bool token_read(const char *text, char ret_id[static TOKEN_ID_LEN + 1], unsigned char ret_hash[static TOKEN_HASH_LEN])
{
    const size_t prefix = strlen(PREFIX), len = prefix + TOKEN_ID_LEN + 1 + SECRET_TEXT_LEN;
    unsigned char secret[SECRET_LEN];
    size_t secret_len = 0;
    const char *id = text + prefix, *end = NULL;
    if (strnlen(text, len + 1) != len || strncmp(text, PREFIX, prefix) != 0)
        return false;
    if (strspn(id, base32) != TOKEN_ID_LEN || id[TOKEN_ID_LEN] != '_')
        return false;
    if (sodium_base642bin(secret, sizeof secret, id + TOKEN_ID_LEN + 1, SECRET_TEXT_LEN, NULL, &secret_len, &end,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING) != 0 ||
        secret_len != SECRET_LEN || end != text + len)
        return false;
    memcpy(ret_id, id, TOKEN_ID_LEN);
    ret_id[TOKEN_ID_LEN] = '\0';
    secret_hash(secret, ret_hash);
    sodium_memzero(secret, sizeof secret);
    return true;
}

static void text_put(json_t *doc, const char *key, const char *value)
{
    if (value && value[0])
        (void)json_object_set_new(doc, key, json_string(value));
}

json_t *token_make(const unsigned char random[static 40], const char *user, const char *node, const char *role,
                   const char *note, int64_t now_ns, int64_t expires_ns, char ret_text[static TOKEN_TEXT_MAX],
                   const char **ret_id, struct arena *arena)
{
    const unsigned char *secret = random + (RANDOM_LEN - SECRET_LEN);
    char id[TOKEN_ID_LEN + 1] = "", encoded[SECRET_TEXT_LEN + 1], hash_text[2 * TOKEN_HASH_LEN + 1],
                           when[TIMESTAMP_MAX];
    unsigned char hash[TOKEN_HASH_LEN];
    uint64_t bits;

    memcpy(&bits, random, sizeof bits);
    for (size_t i = 0; i < TOKEN_ID_LEN; i++, bits >>= 5)
        id[i] = base32[bits & 31];
    (void)sodium_bin2base64(encoded, sizeof encoded, secret, SECRET_LEN, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    (void)snprintf(ret_text, TOKEN_TEXT_MAX, PREFIX "%s_%s", id, encoded);
    sodium_memzero(encoded, sizeof encoded);
    secret_hash(secret, hash);
    (void)sodium_bin2hex(hash_text, sizeof hash_text, hash, sizeof hash);

    json_t *doc = json_object();
    (void)json_object_set_new(doc, "v", json_integer(SCHEMA_VERSION));
    text_put(doc, "id", id);
    text_put(doc, "created", timestamp_text(now_ns, when));
    text_put(doc, "user", user);
    text_put(doc, "node", node);
    text_put(doc, "role", role);
    text_put(doc, "note", note);
    text_put(doc, "hash", hash_text);
    if (expires_ns != BERTH_NEVER_NS)
        text_put(doc, "expires", timestamp_text(expires_ns, when));
    *ret_id = arena_strdup(arena, id);
    return doc;
}
