/* plugin.h - programs in a folder that tell of devices which the probe does not know (docs/agent.md, "Plugins").
 *
 * Each is run with the argument `probe` and prints one JSON object. They run with the agent's rights, so a program that
 * somebody else could change is not run at all. What one of them says is taken whole or not at all; what is wrong with it
 * is a condition of the machine, and the others go on.
 *
 * To add a key to what they may say: a row in plugin_read.c and a line in docs/agent.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define PLUGIN_TIMEOUT_NS (5 * INT64_C(1000000000))
enum { PLUGINS_MAX = 32, PLUGIN_BYTES_MAX = 64 * 1024, PLUGIN_DEVICES_MAX = 256 };

/* {"resources": {name: amount}, "labels": {key: text}, "devices": {resource: [{"name", "healthy", "env", "mounts",
 * "plugin"}]}, "use": {name: amount}} of all of them together, amounts as text. A folder that is not there has none.
 * `conditions` (borrowed, a list) gets {"type": "PluginFailed", "text"} for each that failed or was refused. All run at
 * once, and are killed with their children after the timeout: so it takes no longer than that, on a thread that may wait. */
json_t *plugins_run(const char *folder, int64_t timeout_ns, json_t *conditions);

/* Adds what a plugin of this name has said to `all`, an object as above. -EINVAL: it makes no sense, or says what another
 * one has said; nothing is added. */
int plugin_take(json_t *all, const char *plugin, const char *text, size_t len, struct berth_err *err);
/* "vendor.example/thing": so that no plugin can pass for the machine itself, or for another vendor. */
bool plugin_name_ok(const char *name);
