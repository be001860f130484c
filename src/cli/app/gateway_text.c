#include "cli/app/gateway_text.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

const char *const gateway_programs[] = {"haproxy", "nginx", NULL};

enum { HAPROXY, NGINX };

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static const json_t *named(const json_t *list, const char *key, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(text_of(json_array_get(list, i), key), name) == 0)
            return json_array_get(list, i);
    return NULL;
}

static const json_t *endpoint_of(const json_t *services, const struct gateway_listener *listener)
{
    const json_t *endpoints = json_object_get(named(services, "service", listener->app), "endpoints");
    return listener->endpoint ? named(endpoints, "name", listener->endpoint) : json_array_get(endpoints, 0);
}

/* Writes a name that every program accepts: "photos.ada/http" becomes photos_ada_http. */
static void name_write(struct str *to, const struct gateway_listener *listener)
{
    CLEANUP(str) struct str name = {0};
    str_addf(&name, "%s_%s_%s", listener->app, listener->endpoint ? listener->endpoint : "", listener->bind);
    for (size_t i = 0; i < name.len; i++)
        str_add_char(to, isalnum((unsigned char)name.at[i]) ? name.at[i] : '_');
}

static bool is_http(const json_t *endpoint)
{
    return strcmp(text_of(endpoint, "name"), "http") == 0;
}

static void address_write(struct str *to, const json_t *instance)
{
    const char *address = text_of(instance, "address");
    bool six;
    if (!*address)
        address = text_of(instance, "node");
    six = strchr(address, ':') != NULL;
    str_addf(to, "%s%s%s:%" JSON_INTEGER_FORMAT, six ? "[" : "", address, six ? "]" : "",
             json_integer_value(json_object_get(instance, "port")));
}

/* A ready instance; if all weights are 0, each counts as 1 (docs/services.md). */
struct ready_target {
    const json_t *instance;
    json_int_t weight;
};

static size_t targets_of(const json_t *endpoint, struct ready_target *ret, size_t max)
{
    const json_t *instances = json_object_get(endpoint, "instances");
    size_t len = 0;
    json_int_t sum = 0;
    for (size_t i = 0; i < json_array_size(instances) && len < max; i++) {
        const json_t *instance = json_array_get(instances, i);
        if (!json_is_true(json_object_get(instance, "ready")))
            continue;
        ret[len] = (struct ready_target){instance, json_integer_value(json_object_get(instance, "weight"))};
        sum += ret[len++].weight;
    }
    for (size_t i = 0; sum == 0 && i < len; i++)
        ret[i].weight = 1;
    return len;
}

enum { TARGETS_MAX = 1024 };

/* ---- HAProxy ---------------------------------------------------------------------------------------------------- */

static void haproxy_head(struct str *to)
{
    str_add(to, "# Made by 'berth gateway haproxy'; changes are overwritten.\n"
                "global\n"
                "defaults\n    timeout connect 2s\n    timeout client 60s\n    timeout server 60s\n"
                "    retries 3\n    option redispatch 1\n");
}

static void haproxy_listener(struct str *to, const struct gateway_listener *listener, const json_t *endpoint)
{
    struct ready_target targets[TARGETS_MAX];
    size_t len = targets_of(endpoint, targets, TARGETS_MAX);
    bool http = is_http(endpoint);
    str_add(to, "\nlisten ");
    name_write(to, listener);
    str_addf(to, "\n    bind %s\n    mode %s\n    balance roundrobin\n", listener->bind, http ? "http" : "tcp");
    if (http) /* a request that a server has not begun to answer is retried on the next server */
        str_add(to, "    retry-on conn-failure empty-response\n");
    for (size_t i = 0; i < len; i++) {
        str_addf(to, "    server i%" JSON_INTEGER_FORMAT " ",
                 json_integer_value(json_object_get(targets[i].instance, "instance")));
        address_write(to, targets[i].instance);
        str_addf(to, " weight %" JSON_INTEGER_FORMAT "\n", targets[i].weight);
    }
}

/* ---- nginx ------------------------------------------------------------------------------------------------------ */

static void nginx_upstream(struct str *to, const struct gateway_listener *listener, const struct ready_target *targets,
                           size_t len)
{
    str_add(to, "    upstream ");
    name_write(to, listener);
    str_add(to, " {\n");
    for (size_t i = 0; i < len; i++) {
        if (targets[i].weight == 0)
            continue;
        str_add(to, "        server ");
        address_write(to, targets[i].instance);
        str_addf(to, " weight=%" JSON_INTEGER_FORMAT " max_fails=0;\n", targets[i].weight);
    }
    str_add(to, "    }\n");
}

static void nginx_http(struct str *to, const struct gateway_listener *listener, const json_t *endpoint)
{
    struct ready_target targets[TARGETS_MAX];
    size_t len = targets_of(endpoint, targets, TARGETS_MAX);
    if (len)
        nginx_upstream(to, listener, targets, len);
    str_addf(to, "    server {\n        listen %s;\n        location / {\n", listener->bind);
    if (len) {
        str_add(to, "            proxy_pass http://");
        name_write(to, listener);
        str_add(to, ";\n            proxy_next_upstream error timeout;\n            proxy_connect_timeout 2s;\n"
                    "            proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n"
                    "            proxy_set_header Host $host;\n"
                    "            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;\n");
    } else {
        str_add(to, "            return 503;\n");
    }
    str_add(to, "        }\n    }\n");
}

static void nginx_stream(struct str *to, const struct gateway_listener *listener, const json_t *endpoint)
{
    struct ready_target targets[TARGETS_MAX];
    size_t len = targets_of(endpoint, targets, TARGETS_MAX);
    bool udp = strcmp(text_of(endpoint, "protocol"), "udp") == 0;
    if (len == 0) /* no listener: connections are refused at once */
        return;
    nginx_upstream(to, listener, targets, len);
    str_addf(to, "    server {\n        listen %s%s;\n        proxy_connect_timeout 2s;\n        proxy_pass ",
             listener->bind, udp ? " udp" : "");
    name_write(to, listener);
    str_add(to, ";\n    }\n");
}

static void nginx_write(struct str *to, const json_t *services, const struct gateway_listener *listeners, size_t len)
{
    CLEANUP(str) struct str streams = {0};
    str_add(to, "# Made by 'berth gateway nginx'; changes are overwritten.\n"
                "worker_processes auto;\nevents { worker_connections 8192; }\nhttp {\n    access_log off;\n");
    for (size_t i = 0; i < len; i++) {
        const json_t *endpoint = endpoint_of(services, &listeners[i]);
        if (!endpoint || is_http(endpoint))
            nginx_http(to, &listeners[i], endpoint);
        else
            nginx_stream(&streams, &listeners[i], endpoint);
    }
    str_add(to, "}\n");
    if (streams.len)
        str_addf(to, "stream {\n%s}\n", streams.at);
}

void balancer_write(struct str *to, unsigned program, const json_t *services, const struct gateway_listener *listeners,
                    size_t listeners_len)
{
    if (program == NGINX) {
        nginx_write(to, services, listeners, listeners_len);
        return;
    }
    haproxy_head(to);
    for (size_t i = 0; i < listeners_len; i++)
        haproxy_listener(to, &listeners[i], endpoint_of(services, &listeners[i]));
}
