/* plugin.h - plugins: programs in a directory that report devices which the probe does not know (docs/agent.md,
 * "Plugins").
 *
 * Each is run with the argument `probe` and prints one JSON object. Plugins run with the agent's privileges, so a
 * program that another user could change is not run. The output of a plugin is accepted as a whole or not at all; a
 * failure becomes a condition of the machine and does not affect other plugins.
 *
 * To add a key to their output: a row in plugin_read.c and a line in docs/agent.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define PLUGIN_TIMEOUT_NS (5 * INT64_C(1000000000))
enum { PLUGINS_MAX = 32, PLUGIN_BYTES_MAX = 64 * 1024, PLUGIN_DEVICES_MAX = 256 };

/* Returns the merged output of all plugins: {"resources": {name: amount}, "labels": {key: text}, "devices": {resource:
 * [{"name", "healthy", "env", "mounts", "plugin"}]}, "use": {name: amount}}, with amounts as text. A missing directory
 * has no plugins. `conditions` (borrowed, a list) gets {"type": "PluginFailed", "text"} for each that failed or was
 * rejected. All run concurrently and are killed with their children at the timeout, which bounds the duration; needs a
 * thread that may wait. */
json_t *plugins_run(const char *folder, int64_t timeout_ns, json_t *conditions);

/* Adds the output of the plugin of this name to `all`, an object as above. -EINVAL: the output is invalid, or conflicts
 * with another plugin's; nothing is added. */
int plugin_take(json_t *all, const char *plugin, const char *text, size_t len, struct berth_err *err);
/* Tells whether a name has the form "vendor.example/thing", so that plugins cannot claim names of the machine itself or
 * of other vendors. */
bool plugin_name_ok(const char *name);
