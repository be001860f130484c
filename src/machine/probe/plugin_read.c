/* plugin_read.c - checks the output of a plugin and adds it to that of the others. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "berth.h"
#include "machine/probe/plugin.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"
#include "wire/text/words.h"

static bool is_one_of(char c, const char *more)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(more, c));
}

bool plugin_name_ok(const char *name)
{
    const char *slash = strchr(name, '/'), *dot = strchr(name, '.');
    if (!slash || !dot || dot > slash || dot == name || dot + 1 == slash || !slash[1] || strlen(name) > BERTH_NAME_MAX)
        return false;
    for (const char *at = name; at < slash; at++)
        if (!is_one_of(*at, ".-"))
            return false;
    for (const char *at = slash + 1; *at; at++)
        if (!is_one_of(*at, "._-ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
            return false;
    return true;
}

static int name_check(const char *name, struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    if (plugin_name_ok(name))
        return 0;
    return err_set(err, EINVAL, "%s must begin with the name of its vendor, such as \"vendor.example/thing\"",
                   quote(name, quoted));
}

/* ---- one function per key: checks a value and adds it to `to`, which is not shared yet -------------------------- */

static int amounts_take(json_t *to, const json_t *value, struct berth_err *err)
{
    const char *name;
    const json_t *member;
    if (!json_is_object(value))
        return err_set(err, EINVAL, "expected an object such as {\"vendor.example/thing\": 2}");
    json_object_foreach((json_t *)value, name, member)
    {
        char quoted[QUOTE_MAX], text[QUANTITY_TEXT_MAX];
        int64_t amount = 0;
        int rc = name_check(name, err);
        if (rc == 0 && (rc = quantity_parse(name, member, &amount, err)) < 0)
            err_prefix(err, "%s", shorten(name, quoted));
        if (rc == 0 && (amount < 0 || amount > BERTH_AMOUNT_MAX))
            rc = err_set(err, EINVAL, "%s: the amount is out of range", shorten(name, quoted));
        if (rc < 0)
            return rc;
        json_object_set_new(to, name, json_string(quantity_print(name, amount, text)));
    }
    return 0;
}

static int labels_take(json_t *to, const json_t *value, struct berth_err *err)
{
    const char *name;
    json_t *member;
    if (!json_is_object(value))
        return err_set(err, EINVAL, "expected an object such as {\"vendor.example/firmware\": \"7\"}");
    json_object_foreach((json_t *)value, name, member)
    {
        char quoted[QUOTE_MAX];
        int rc = name_check(name, err);
        if (rc < 0)
            return rc;
        if (!json_is_string(member) || json_string_length(member) > BERTH_NAME_MAX)
            return err_set(err, EINVAL, "%s: expected text of at most %d bytes", shorten(name, quoted), BERTH_NAME_MAX);
        json_object_set(to, name, member);
    }
    return 0;
}

static bool path_ok(const json_t *value)
{
    const char *path = json_string_value(value);
    return path && path[0] == '/' && !strstr(path, "/../") &&
           !(strlen(path) >= 3 && strcmp(path + strlen(path) - 3, "/..") == 0);
}

static int mounts_check(const json_t *mounts, struct berth_err *err)
{
    size_t i;
    const json_t *mount;
    if (mounts && !json_is_array(mounts))
        return err_set(err, EINVAL, "mounts: expected a list");
    json_array_foreach(mounts, i, mount)
    {
        const json_t *read_only = json_object_get(mount, "read_only");
        bool pair = json_is_object(mount) && path_ok(json_object_get(mount, "source")) &&
                    path_ok(json_object_get(mount, "path")) && (!read_only || json_is_boolean(read_only));
        if (!pair && !path_ok(mount))
            return err_set(
                err, EINVAL,
                "mounts[%zu]: expected an absolute path, or {\"source\": PATH, \"path\": PATH, \"read_only\": true}",
                i);
    }
    return 0;
}

static int env_check(const json_t *env, struct berth_err *err)
{
    const char *name;
    const json_t *member;
    if (env && !json_is_object(env))
        return err_set(err, EINVAL, "env: expected an object such as {\"THING\": \"0\"}");
    json_object_foreach((json_t *)env, name, member)
    {
        char quoted[QUOTE_MAX];
        if (!*name || strchr(name, '=') || !json_is_string(member))
            return err_set(err, EINVAL, "env: %s: expected a name without '=', and text", quote(name, quoted));
    }
    return 0;
}

static const char *text_member(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static bool list_has(const json_t *list, const char *name)
{
    size_t i;
    const json_t *item;
    json_array_foreach(list, i, item) if (strcmp(text_member(item, "name"), name) == 0) return true;
    return false;
}

static int device_take(json_t *to, const json_t *device, struct berth_err *err)
{
    static const char *const kept[] = {"name", "env", "mounts"};
    const char *resource = text_member(device, "resource"), *name = text_member(device, "name");
    const json_t *healthy = json_object_get(device, "healthy");
    json_t *list = json_object_get(to, resource);
    int rc = name_check(resource, err);
    if (rc == 0 && (!*name || strlen(name) > BERTH_NAME_MAX || list_has(list, name)))
        rc = err_set(err, EINVAL, "name: expected a name that is unique among the devices of this resource");
    if (rc == 0 && healthy && !json_is_boolean(healthy))
        rc = err_set(err, EINVAL, "healthy: expected true or false");
    if (rc == 0)
        rc = env_check(json_object_get(device, "env"), err);
    if (rc == 0)
        rc = mounts_check(json_object_get(device, "mounts"), err);
    if (rc < 0)
        return rc;
    if (!list) {
        list = json_array();
        json_object_set_new(to, resource, list);
    }
    json_t *item = json_pack("{s:b}", "healthy", healthy ? json_is_true(healthy) : 1);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (json_object_get(device, kept[i]))
            json_object_set(item, kept[i], json_object_get(device, kept[i]));
    json_array_append_new(list, item);
    return 0;
}

static int devices_take(json_t *to, const json_t *value, struct berth_err *err)
{
    size_t i;
    const json_t *device;
    if (!json_is_array(value) || json_array_size(value) > PLUGIN_DEVICES_MAX)
        return err_set(err, EINVAL, "expected a list of at most %d devices", PLUGIN_DEVICES_MAX);
    json_array_foreach(value, i, device)
    {
        int rc = device_take(to, device, err);
        if (rc < 0) {
            err_prefix(err, "[%zu]", i);
            return rc;
        }
    }
    return 0;
}

/* ---- all keys --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *key;
    int (*take)(json_t *to, const json_t *value, struct berth_err *err);
} rows[] = {
    {"resources", amounts_take},
    {"labels",    labels_take },
    {"devices",   devices_take},
    {"use",       amounts_take},
};
enum { ROWS_LEN = sizeof rows / sizeof *rows };

static json_t *part(json_t *object, const char *key)
{
    if (!json_object_get(object, key))
        json_object_set_new(object, key, json_object());
    return json_object_get(object, key);
}

static int said_read(const json_t *said, json_t *own, struct berth_err *err)
{
    const char *key;
    const json_t *value;
    if (!json_is_object(said))
        return err_set(err, EINVAL, "expected an object with resources, labels, devices or use");
    json_object_foreach((json_t *)said, key, value)
    {
        char quoted[QUOTE_MAX];
        size_t i = 0;
        while (i < ROWS_LEN && strcmp(rows[i].key, key) != 0)
            i++;
        if (i == ROWS_LEN)
            return err_set(err, EINVAL, "%s: unknown key; expected resources, labels, devices or use",
                           quote(key, quoted));
        int rc = rows[i].take(part(own, key), value, err);
        if (rc < 0) {
            err_prefix(err, "%s", key);
            return rc;
        }
    }
    return 0;
}

/* The number of healthy devices becomes the amount of their resource, unless the plugin gives an amount. */
static void devices_count(json_t *own, const char *plugin)
{
    const char *resource;
    json_t *list, *device;
    size_t i;
    json_object_foreach(part(own, "devices"), resource, list)
    {
        json_int_t well = 0;
        json_array_foreach(list, i, device)
        {
            json_object_set_new(device, "plugin", json_string(plugin));
            well += json_is_true(json_object_get(device, "healthy"));
        }
        char text[QUANTITY_TEXT_MAX];
        if (!json_object_get(part(own, "resources"), resource))
            json_object_set_new(part(own, "resources"), resource, json_string(quantity_print(resource, well, text)));
    }
}

int plugin_take(json_t *all, const char *plugin, const char *text, size_t len, struct berth_err *err)
{
    CLEANUP(json) json_t *said = NULL, *own = json_object();
    int rc = document_parse(text, len, "its output", &said, err);
    if (rc == 0)
        rc = said_read(said, own, err);
    if (rc < 0)
        return rc;
    devices_count(own, plugin);
    const char *name;
    const json_t *value;
    for (size_t i = 0; i < ROWS_LEN; i++)
        json_object_foreach(
            part(own, rows[i].key), name,
            value) if (json_object_get(part(all, rows[i].key),
                                       name)) return err_set(err, EINVAL, "%s: another plugin has already reported %s",
                                                             rows[i].key, name);
    for (size_t i = 0; i < ROWS_LEN; i++)
        json_object_update(part(all, rows[i].key), part(own, rows[i].key));
    return 0;
}
