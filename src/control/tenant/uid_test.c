/* uid_test.c - one uid for each user in the whole cluster, never reused; who may create users with account names. */
#include "control/tenant/uid.h"

#include "control/api/kit_test.h"
#include "control/watch/derived.h"

#define LEAD "user:lead"

static int64_t uid_of(struct kit *k, const char *user)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/users/%s", user);
    CALL(k, 200, ADMIN, "GET", path, NULL);
    return kit_number(k, "uid");
}

static void every_user_has_its_own_uid(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: ann}");
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: bob, uid: 5}"); /* the daemon assigns the uid */
    assert_int_equal(uid_of(&k, "ann"), 300000);
    assert_int_equal(uid_of(&k, "bob"), 300001);
    CALL(&k, 200, ADMIN, "PUT", "/v1/users/ann", "{uid: 7, level: 3}");
    CALL(&k, 200, ADMIN, "PATCH", "/v1/users/ann", "{uid: 8}");
    assert_int_equal(uid_of(&k, "ann"), 300000);
    CALL(&k, 400, ADMIN, "POST", "/v1/users", "{id: eve, role: none-such}"); /* a rejected request takes no uid */
    CALL(&k, 204, ADMIN, "DELETE", "/v1/users/bob", NULL);
    kit_restart(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: bob}"); /* may be another person */
    assert_int_equal(uid_of(&k, "bob"), 300002);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{uid_first: 500000}");
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: zoe}");
    assert_int_equal(uid_of(&k, "zoe"), 500000);
    CALL(&k, 200, ADMIN, "PATCH", "/v1/system/settings", "{uid_first: 1000}"); /* the counter only grows */
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: yan}");
    assert_int_equal(uid_of(&k, "yan"), 500001);
    assert_int_equal(uid_of(&k, "ann"), 300000);
    kit_done(&k);
}

/* As after an update of berthd. */
static void existing_users_get_a_uid(void **state)
{
    struct kit k;
    struct berth_err err;
    size_t given = 0;
    (void)state;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: ann}");
    for (int i = 0; i < 1200; i++) {
        char id[24], doc[96];
        (void)snprintf(id, sizeof id, "old-%d", i);
        (void)snprintf(doc, sizeof doc, "{v: 1, id: %s, role: user}", id);
        kit_put(&k, KIND_USER, id, doc);
    }
    size_t len, before;
    (void)state_list(control_state(k.control), KIND_USER, &before);
    if (control_uids_assign(k.control, &given, &err) != 0)
        fail_msg("%s", err.text);
    assert_true(given >= 1200 && given < before + 1);
    assert_int_equal(control_uids_assign(k.control, &given, &err), 0);
    assert_int_equal(given, 0);
    const struct object *const *users = state_list(control_state(k.control), KIND_USER, &len);
    assert_int_equal(len, before);
    static bool seen[3000];
    for (size_t i = 0; i < len; i++) {
        uint32_t uid = users[i]->user->uid;
        assert_true(uid >= 300000 && uid < 303000);
        assert_false(seen[uid - 300000]);
        seen[uid - 300000] = true;
    }
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: new}");
    assert_int_equal(uid_of(&k, "new"), 300000 + (int64_t)len);
    kit_done(&k);
}

static void node_config_has_the_uid(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: ann}");
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: a, owner: ann, command: [run]}");
    kit_plan(&k);
    CLEANUP(str) struct str config = {0};
    assert_int_equal(node_config_write(control_state(k.control), "n1", &config), 0);
    assert_non_null(strstr(str_text(&config), "\"uid\":300000"));
    assert_null(strstr(str_text(&config), "\"account\""));
    kit_done(&k);
}

/* A manager of one group could once become `rabbitmq` on nodes with such an account. */
static void only_managers_of_all_users_allow_accounts(void **state)
{
    struct kit k;
    (void)state;
    kit_open(&k);
    CALL(&k, 201, ADMIN, "POST", "/v1/groups", "{id: lab}");
    CALL(&k, 201, ADMIN, "POST", "/v1/roles",
         "{id: lead, permissions: {users: group, read: group, submit: group, manage: group, cluster: all}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/users", "{id: lead, group: lab, role: lead}");
    CALL(&k, 403, LEAD, "POST", "/v1/users", "{id: rabbitmq, account: true}");
    CALL(&k, 201, LEAD, "POST", "/v1/users", "{id: rabbitmq}");
    CALL(&k, 200, ADMIN, "GET", "/v1/users/rabbitmq", NULL);
    SAYS(&k, "\"account\":false");
    CALL(&k, 400, LEAD, "PATCH", "/v1/users/rabbitmq", "{account: true}");
    CALL(&k, 200, LEAD, "PATCH", "/v1/users/rabbitmq", "{account: null}"); /* an absent member keeps its value */
    CALL(&k, 400, LEAD, "PUT", "/v1/users/rabbitmq", "{group: lab, account: true}");
    CALL(&k, 200, LEAD, "PUT", "/v1/users/rabbitmq", "{group: lab, level: 1}");
    CALL(&k, 200, ADMIN, "GET", "/v1/users/rabbitmq", NULL);
    SAYS(&k, "\"account\":false");
    CALL(&k, 201, ADMIN, "POST", "/v1/nodes", "{id: n1, allocatable: {cpu: 8, memory: 8Gi}}");
    CALL(&k, 201, ADMIN, "POST", "/v1/jobs", "{name: a, owner: rabbitmq, command: [run]}");
    kit_plan(&k);
    CLEANUP(str) struct str config = {0};
    assert_int_equal(node_config_write(control_state(k.control), "n1", &config), 0);
    assert_non_null(strstr(str_text(&config), "\"account\":false"));
    kit_done(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_user_has_its_own_uid),
        cmocka_unit_test(existing_users_get_a_uid),
        cmocka_unit_test(node_config_has_the_uid),
        cmocka_unit_test(only_managers_of_all_users_allow_accounts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
