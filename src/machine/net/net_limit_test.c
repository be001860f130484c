/* net_limit_test.c - network limits on a real line: two network namespaces connected by a veth pair. */
#include "machine/net/net_limit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine/net/net_class.h"

#define MB INT64_C(1000000)
#define SECOND_NS INT64_C(1000000000)

enum { GROUPS = 2, PORT = 7000 };

/* ---- parsing ---------------------------------------------------------------------------------------------------- */

static void limits_are_read(void **state)
{
    static const struct {
        const char *config;
        struct net_limits want;
        const char *error;
    } rows[] = {
        {"{}",                                                                                                 {},               NULL                         },
        {"{'requests': {'network': '5M'}}",                                                                    {.wanted = true}, NULL                         },
        {"{'limits': {'memory': {'amount': '5M'}}}",                                                           {},               NULL                         },
        {"{'limits': {'network': {'amount': '5M'}}}",
         {.in = {5 * MB, 0}, .out = {5 * MB, 0}, .wanted = true, .given = "network"},
         NULL                                                                                                                                                 },
        {"{'limits': {'network': {'weight': 7}, 'network-out': {'amount': '5M'}}}",
         {.in = {0, 7}, .out = {5 * MB, 7}, .wanted = true, .given = "network,network-out"},
         NULL                                                                                                                                                 },
        {"{'limits': {'network-in': {'weight': 9}, 'network': {'weight': 7}}}",
         {.in = {0, 9}, .out = {0, 7}, .wanted = true, .given = "network,network-in"},
         NULL                                                                                                                                                 },
        {"{'limits': {'traffic': {'amount': '1G', 'period_ns': 60}, 'traffic-throttle': {'amount': '500M'}}}",
         {.traffic_bytes = 1000 * MB,
          .throttle_bytes = 500 * MB,
          .period_ns = 60,
          .wanted = true,
          .given = "traffic,traffic-throttle"},
         NULL                                                                                                                                                 },
        {"{'limits': {'network': {'weight': 7}}, 'ports': [{'listen': 'port'}, {'listen': 'socket'}]}",
         {.in = {0, 7}, .out = {0, 7}, .wanted = true, .handed = true, .given = "network"},
         NULL                                                                                                                                                 },
        {"{'limits': {'network': {'weight': 0}}}",                                                             {},               "network: weight: expected a"},
        {"{'limits': {'network': {'weight': 'x'}}}",                                                           {},               "network: weight: expected a"},
        {"{'limits': {'network-in': {'amount': '5X'}}}",                                                       {},               "network-in: expected byte"  },
        {"{'limits': {'network-in': {'amount': -5}}}",                                                         {},               "network-in: expected byte"  },
        {"{'limits': {'network-out': {}}}",                                                                    {},               "either an amount or a wei"  },
        {"{'limits': {'traffic': {'weight': 5}}}",                                                             {},               "traffic: expected a numbe"  },
        {"{'limits': {'traffic-throttle': {'amount': 0}}}",                                                    {},               "traffic-throttle: expecte"  },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct net_limits got;
        struct berth_err err = {0};
        memset(&got, 0x5a, sizeof got);
        char *text = strdup(rows[i].config);
        for (char *at = text; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        json_t *config = json_loads(text, 0, NULL);
        assert_non_null(config);
        int rc = net_limits_read(config, &got, &err);
        if ((rc < 0) != (rows[i].error != NULL) || (rc < 0 && !strstr(err.text, rows[i].error)))
            fail_msg("%s: %d %s", rows[i].config, rc, err.text);
        if (rc == 0) {
            const struct net_limits *want = &rows[i].want;
            if (got.in.amount != want->in.amount || got.in.weight != want->in.weight ||
                got.out.amount != want->out.amount || got.out.weight != want->out.weight ||
                got.traffic_bytes != want->traffic_bytes || got.throttle_bytes != want->throttle_bytes ||
                got.period_ns != want->period_ns || got.wanted != want->wanted || got.handed != want->handed)
                fail_msg("%s: read otherwise", rows[i].config);
            assert_string_equal(got.given, want->given);
        }
        json_decref(config);
        free(text);
    }
}

/* ---- a line ----------------------------------------------------------------------------------------------------- */

/* Received bytes, shared by all processes of the test. */
struct heard {
    int64_t bytes[GROUPS];
};

struct line {
    char top[128], group[GROUPS][160];
    struct heard *heard;
    pid_t far, near[GROUPS];
    int go; /* pipe to the far end: one byte for each step */
    struct net_limiter *nets;
};

static bool run(const char *command)
{
    return system(command) == 0; /* NOLINT(cert-env33-c): words of this test */
}

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
}

static void nap(int64_t ns)
{
    struct timespec t = {ns / SECOND_NS, ns % SECOND_NS};
    (void)nanosleep(&t, NULL);
}

static int64_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND_NS + t.tv_nsec;
}

static int listen_at(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    return bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 5) == 0 ? fd : -1;
}

static int connect_to(const char *address, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    (void)inet_pton(AF_INET, address, &at.sin_addr);
    for (int i = 0; i < 3000; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) == 0)
            return fd;
        (void)close(fd);
        nap(SECOND_NS / 50);
    }
    return -1;
}

_Noreturn static void pour(int fd)
{
    static char bytes[65536];
    while (fd >= 0 && write(fd, bytes, sizeof bytes) > 0)
        ;
    _exit(1);
}

_Noreturn static void drain(int fd, int64_t *count)
{
    static char bytes[65536];
    ssize_t len;
    while (fd >= 0 && (len = read(fd, bytes, sizeof bytes)) > 0)
        (void)__atomic_add_fetch(count, len, __ATOMIC_RELAXED);
    _exit(1);
}

/* Forks a child that is killed when its parent dies, also if that has happened already. */
static pid_t child(void)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
        _exit(1);
    return pid;
}

/* The other end of the line: receives on PORT + i, and sends to clients of PORT + 10 + i. */
_Noreturn static void far_end(int go, int ready, struct heard *heard)
{
    char byte;
    if (unshare(CLONE_NEWNET) < 0 || write(ready, "r", 1) != 1 || read(go, &byte, 1) != 1 ||
        !run("ip addr add 10.97.0.2/24 dev berthfar && ip link set berthfar up && ip link set lo up"))
        _exit(1);
    for (int i = 0; i < 2 * GROUPS; i++) {
        int fd = listen_at(PORT + i % GROUPS + (i < GROUPS ? 0 : 10));
        if (child() == 0) {
            int got = accept(fd, NULL, NULL);
            if (i < GROUPS)
                drain(got, &heard->bytes[i]);
            pour(got);
        }
    }
    for (;;)
        (void)pause();
}

static const char *v2_root(void)
{
    static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < 2; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "%s/cgroup.controllers", places[i]);
        if (access(path, F_OK) == 0 && access(places[i], W_OK) == 0)
            return places[i];
    }
    return NULL;
}

/* Returns the missing requirement; NULL: none. */
static const char *lacking(void)
{
    if (geteuid() != 0)
        return "not root";
    if (!v2_root())
        return "this machine has no cgroup v2 that can be written to";
    if (!run("ip link add berthtry type veth peer name berthtr2 2>/dev/null && ip link del berthtry"))
        return "this kernel has no veth, or there is no ip";
    if (!run("tc qdisc add dev lo root handle 7: htb 2>/dev/null && tc qdisc del dev lo root"))
        return "this kernel has no queue htb";
    return NULL;
}

static void line_end(struct line *l)
{
    for (int i = 0; i < GROUPS; i++) {
        if (l->near[i] > 0) {
            (void)kill(l->near[i], SIGKILL);
            (void)waitpid(l->near[i], NULL, 0);
        }
    }
    if (l->far > 0) {
        (void)kill(l->far, SIGKILL);
        (void)waitpid(l->far, NULL, 0);
    }
    for (int i = 0; i < GROUPS; i++) {
        net_limiter_end(l->nets, (uint64_t)i + 1, l->group[i]);
        for (int k = 0; k < 100 && rmdir(l->group[i]) < 0 && errno == EBUSY; k++)
            nap(SECOND_NS / 100);
    }
    (void)rmdir(l->top);
    net_limiter_free(l->nets);
}

/* Creates a line of 30 MB/s; false: not possible on this machine. In a separate process, because its network namespace
 * changes. */
static bool line_begin(struct line *l, int64_t capacity)
{
    int go[2], ready[2];
    char byte, command[128];
    *l = (struct line){0};
    if (unshare(CLONE_NEWNET) < 0) {
        print_message("skip: no network namespaces\n");
        return false;
    }
    const char *why = lacking();
    if (why) {
        print_message("skip: %s\n", why);
        return false;
    }
    l->heard = mmap(NULL, sizeof *l->heard, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(l->heard != MAP_FAILED);
    (void)snprintf(l->top, sizeof l->top, "%s/berth-net-%d", v2_root(), (int)getpid());
    assert_int_equal(mkdir(l->top, 0755), 0);
    for (int i = 0; i < GROUPS; i++) {
        (void)snprintf(l->group[i], sizeof l->group[i], "%s/i%d", l->top, i);
        assert_int_equal(mkdir(l->group[i], 0755), 0);
    }
    assert_int_equal(pipe(go), 0);
    assert_int_equal(pipe(ready), 0);
    l->far = child();
    if (l->far == 0)
        far_end(go[0], ready[1], l->heard);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)snprintf(command, sizeof command, "ip link add berthnear type veth peer name berthfar netns %d", (int)l->far);
    assert_true(run(command));
    assert_true(run("ip addr add 10.97.0.1/24 dev berthnear && ip link set berthnear up && ip link set lo up"));
    assert_int_equal(write(go[1], "g", 1), 1);
    l->nets = net_limiter_new("berthnear", capacity);
    return true;
}

/* Starts a process in the cgroup that sends to the far end, or receives from it. */
static void near_begin(struct line *l, int i, bool pours)
{
    l->near[i] = child();
    if (l->near[i])
        return;
    char path[200];
    (void)snprintf(path, sizeof path, "%s/cgroup.procs", l->group[i]);
    put(path, "0");
    int fd = connect_to("10.97.0.2", PORT + i + (pours ? 0 : 10));
    if (pours)
        pour(fd);
    drain(fd, &l->heard->bytes[i]);
}

/* Waits until every receiver has got data. */
static void flows(const struct line *l)
{
    for (int i = 0; i < GROUPS; i++)
        while (l->near[i] > 0 && __atomic_load_n(&l->heard->bytes[i], __ATOMIC_RELAXED) < 65536)
            nap(SECOND_NS / 100);
}

/* Measures for about `ns` what each receives, in bytes per second; calls net_limiter_share meanwhile. */
static void measure(struct line *l, int64_t ns, int64_t ret[static GROUPS])
{
    int64_t before[GROUPS], begun = now();
    for (int i = 0; i < GROUPS; i++)
        before[i] = __atomic_load_n(&l->heard->bytes[i], __ATOMIC_RELAXED);
    while (now() - begun < ns) {
        nap(SECOND_NS / 10);
        net_limiter_share(l->nets, now());
    }
    int64_t passed = now() - begun;
    for (int i = 0; i < GROUPS; i++)
        ret[i] = (int64_t)((__int128)(__atomic_load_n(&l->heard->bytes[i], __ATOMIC_RELAXED) - before[i]) * SECOND_NS /
                           passed);
    print_message("%lld and %lld kB/s\n", (long long)ret[0] / 1000, (long long)ret[1] / 1000);
}

/* Runs a test in a child, which changes its network namespace; exit code 77: skipped. */
static void apart(void (*scene)(struct line *l), int64_t capacity)
{
    pid_t pid = fork();
    int status = 0;
    if (pid == 0) {
        struct line l;
        if (!line_begin(&l, capacity))
            _exit(77);
        scene(&l);
        line_end(&l);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        skip();
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            print_message("line %d: %s\n", __LINE__, #what);                                                           \
            line_end(l);                                                                                               \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static bool near(int64_t is, int64_t should, int percent)
{
    int64_t apart_by = is > should ? is - should : should - is;
    return apart_by * 100 <= should * percent;
}

enum { TRIES = 5 };

/* Repeats for some seconds: TCP has to adapt to the line, and other tests may run at the same time. */
static bool settles_at_a_third(struct line *l, int percent, int64_t rates[static GROUPS])
{
    bool settled = false;
    measure(l, SECOND_NS, rates);
    for (int i = 0; i < TRIES && !settled; i++) {
        measure(l, 2 * SECOND_NS, rates);
        settled = near(rates[0] * 3, rates[0] + rates[1], percent) && rates[0] + rates[1] < 33 * MB;
    }
    return settled;
}

/* Repeats: after a pause a receiver gets queued data at once and before that nothing, so the next second decides. */
static bool amounts_are_kept(struct line *l, int64_t rates[static GROUPS])
{
    bool kept = false;
    measure(l, SECOND_NS / 2, rates);
    for (int i = 0; i < TRIES && !kept; i++) {
        measure(l, SECOND_NS, rates);
        kept = rates[0] > MB / 2 && rates[0] < 23 * MB / 10 && rates[1] > MB / 2 &&
               rates[1] < 4 * MB; /* tolerates bursts */
    }
    return kept;
}

static void weights_out_scene(struct line *l)
{
    static const struct net_limits limits[GROUPS] = {
        {.out = {0, 10}, .wanted = true, .given = "network-out"},
        {.out = {0, 20}, .wanted = true, .given = "network-out"}
    };
    char unenforced[CGROUP_LIST_MAX];
    int64_t rates[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        net_limiter_put(l->nets, (uint64_t)i + 1, l->group[i], &limits[i], 1, unenforced);
        CHECK(unenforced[0] == '\0');
        near_begin(l, i, true);
    }
    flows(l);
    CHECK(settles_at_a_third(l, 10, rates));
    struct net_limit_status look;
    int64_t heard = __atomic_load_n(&l->heard->bytes[1], __ATOMIC_RELAXED); /* read first, because traffic continues */
    CHECK(net_limiter_poll(l->nets, 2, 2, &look) == 0);
    CHECK(look.counts.out >= heard && look.counts.in > 0 && look.counts.in < look.counts.out);
}

static void sent_traffic_is_shared_by_weight(void **state)
{
    (void)state;
    apart(weights_out_scene, 30 * MB);
}

static void weights_in_scene(struct line *l)
{
    static const struct net_limits limits[GROUPS] = {
        {.in = {0, 10}, .wanted = true, .given = "network-in"},
        {.in = {0, 20}, .wanted = true, .given = "network-in"}
    };
    char unenforced[CGROUP_LIST_MAX];
    int64_t rates[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        net_limiter_put(l->nets, (uint64_t)i + 1, l->group[i], &limits[i], 1, unenforced);
        CHECK(unenforced[0] == '\0');
        near_begin(l, i, false);
    }
    flows(l);
    CHECK(settles_at_a_third(l, 20, rates));
}

static void received_traffic_is_shared_by_weight(void **state)
{
    (void)state;
    apart(weights_in_scene, 30 * MB);
}

static void amounts_scene(struct line *l)
{
    static const struct net_limits limits[GROUPS] = {
        {.out = {2 * MB, 0}, .in = {2 * MB, 0}, .wanted = true, .given = "network"},
        {.in = {3 * MB, 0},                  .wanted = true,                   .given = "network-in" },
    };
    char unenforced[CGROUP_LIST_MAX];
    int64_t rates[GROUPS];
    for (int i = 0; i < GROUPS; i++) {
        net_limiter_put(l->nets, (uint64_t)i + 1, l->group[i], &limits[i], 1, unenforced);
        CHECK(unenforced[0] == '\0');
        near_begin(l, i, i == 0);
    }
    flows(l);
    CHECK(amounts_are_kept(l, rates));
}

/* Amounts work without a known capacity. */
static void rate_limits_are_enforced(void **state)
{
    (void)state;
    apart(amounts_scene, 0);
}

/* Tells whether tc's output for the device contains `what`. */
static bool shows(const char *what)
{
    char command[128];
    (void)snprintf(command, sizeof command, "(tc qdisc show dev berthnear; tc class show dev berthnear) | grep -q '%s'",
                   what);
    return run(command);
}

static void nothing_stays_scene(struct line *l)
{
    struct net_limits weighed = {
        .out = {0, 10},
          .wanted = true, .given = "network-out"
    };
    struct net_limits counted = {.wanted = true};
    char unenforced[CGROUP_LIST_MAX];
    CHECK(!shows("htb"));
    net_limiter_put(l->nets, 1, l->group[0], &counted, 1, unenforced);
    CHECK(!shows("htb")); /* counting needs no qdisc */
    net_limiter_put(l->nets, 1, l->group[0], &weighed, 1, unenforced);
    net_limiter_put(l->nets, 2, l->group[1], &weighed, 1, unenforced);
    CHECK(shows("qdisc htb be: root") && shows("class htb be:3 parent be:1") && shows("class htb be:4 parent be:1"));
    net_limiter_end(l->nets, 1, l->group[0]);
    CHECK(!shows("htb be:3") && shows("htb be:4"));

    /* A restarted agent finds existing classes, also to remove them. */
    net_limiter_free(l->nets);
    l->nets = net_limiter_new("berthnear", 30 * MB);
    net_limiter_put(l->nets, 2, l->group[1], &weighed, 1, unenforced);
    CHECK(unenforced[0] == '\0' && shows("htb be:4") && !shows("htb be:3"));
    net_limiter_free(l->nets);
    l->nets = net_limiter_new("berthnear", 30 * MB);
    net_limiter_end(l->nets, 2, l->group[1]);
    CHECK(!shows("htb"));
}

/* Class numbers are stored with the cgroups, and a restarted agent adopts its instances one after the other. */
static void classes_scene(struct line *l)
{
    struct net_limits weighed = {
        .out = {0, 10},
          .wanted = true, .given = "network-out"
    };
    const struct net_limits counted = {.wanted = true};
    char unenforced[CGROUP_LIST_MAX];
    net_limiter_put(l->nets, 1, l->group[0], &counted, 1, unenforced);
    net_limiter_put(l->nets, 2, l->group[1], &weighed, 1, unenforced);
    CHECK(shows("htb be:3") && !shows("htb be:4"));
    net_limiter_free(l->nets);
    l->nets = net_limiter_new("berthnear", 30 * MB);
    net_limiter_put(l->nets, 1, l->group[0], &weighed, 1, unenforced); /* changed while no agent ran */
    /* ended while no agent ran: its class now belongs to 1 */
    net_limiter_end(l->nets, 2, l->group[1]);
    CHECK(shows("htb be:3"));
    net_limiter_put(l->nets, 2, l->group[1], &weighed, 1, unenforced); /* adopted: gets another class */
    CHECK(unenforced[0] == '\0' && shows("htb be:3") && shows("htb be:4"));
    net_limiter_end(l->nets, 1, l->group[0]);
    CHECK(!shows("htb be:3") && shows("htb be:4"));
    net_limiter_end(l->nets, 2, l->group[1]);
    CHECK(!shows("htb"));
}

static void class_numbers_are_unique(void **state)
{
    (void)state;
    apart(classes_scene, 30 * MB);
}

static void uplink_scene(struct line *l)
{
    const struct net_limits weighed = {
        .out = {0, 10},
          .in = {0, 10},
          .wanted = true, .given = "network"
    };
    char unenforced[CGROUP_LIST_MAX];
    struct net_limit_status look;
    net_limiter_free(l->nets);
    l->nets = net_limiter_new(NULL, 30 * MB);
    CHECK(run("ip link add berthelse type veth peer name berthelsex && ip addr add 10.98.0.1/24 dev berthelse && "
              "ip link set berthelse up && ip link set berthelsex up && ip route add default via 10.97.0.2"));
    net_limiter_put(l->nets, 1, l->group[0], &weighed, 1, unenforced);
    CHECK(unenforced[0] == '\0' && shows("htb be:3") && !run("tc qdisc show dev berthelse | grep -q be:"));
    CHECK(run("ip route replace default via 10.98.0.2"));
    net_limiter_share(l->nets, 1);
    CHECK(!shows("htb") && run("tc class show dev berthelse | grep -q 'htb be:3'"));
    CHECK(run("ip route del default")); /* no default route */
    net_limiter_share(l->nets, 2);
    CHECK(run("tc class show dev berthelse | grep -q 'htb be:3'"));
    CHECK(net_limiter_poll(l->nets, 1, 1, &look) == 0 && look.unenforced[0] == '\0');
    net_limiter_end(l->nets, 1, l->group[0]);
    CHECK(!run("tc qdisc show dev berthelse | grep -q be:"));
}

static void limits_follow_the_default_route(void **state)
{
    (void)state;
    apart(uplink_scene, 30 * MB);
}

static void last_limit_removes_qdisc(void **state)
{
    (void)state;
    apart(nothing_stays_scene, 30 * MB);
}

static void unenforced_scene(struct line *l)
{
    const struct net_limits out = {
        .out = {5 * MB, 0},
          .wanted = true, .given = "network-out"
    };
    const struct net_limits weight = {
        .out = {0, 5},
          .in = {0, 5},
          .wanted = true, .given = "network"
    };
    const struct net_limits handed = {.traffic_bytes = 5, .handed = true, .wanted = true, .given = "traffic"};
    char unenforced[CGROUP_LIST_MAX];
    net_limiter_put(l->nets, 1, NULL, &out, 1, unenforced); /* no v2 hierarchy */
    CHECK(strcmp(unenforced, "network-out") == 0);
    net_limiter_put(l->nets, 1, l->group[0], &weight, 1, unenforced); /* unknown capacity */
    CHECK(strcmp(unenforced, "network") == 0);
    net_limiter_put(l->nets, 1, l->group[0], &handed, 1, unenforced);
    CHECK(strcmp(unenforced, "traffic") == 0);
    CHECK(run("tc qdisc add dev berthnear root handle 5: htb"));
    net_limiter_put(l->nets, 1, l->group[0], &out, 1, unenforced);
    CHECK(strcmp(unenforced, "network-out") == 0 && shows("htb 5: root") && !shows("be:"));
    net_limiter_end(l->nets, 1, l->group[0]);
    CHECK(shows("htb 5: root"));
    CHECK(run("tc qdisc del dev berthnear root"));
    net_limiter_put(l->nets, 1, l->group[0], &out, 1, unenforced);
    CHECK(unenforced[0] == '\0' && shows("be:"));

    /* A removed qdisc is restored; if that fails, the limits are reported as unenforced until it succeeds. */
    struct net_limit_status look;
    CHECK(run("tc qdisc del dev berthnear root") && !shows("be:"));
    net_limiter_share(l->nets, 1);
    CHECK(shows("class htb be:3") && net_limiter_poll(l->nets, 1, 1, &look) == 0 && look.unenforced[0] == '\0');
    CHECK(run("tc qdisc del dev berthnear root && tc qdisc add dev berthnear root handle 5: htb"));
    net_limiter_share(l->nets, 2);
    CHECK(!shows("be:") && net_limiter_poll(l->nets, 1, 1, &look) == 0 && strcmp(look.unenforced, "network-out") == 0);
    CHECK(run("tc qdisc del dev berthnear root"));
    net_limiter_share(l->nets, 3);
    CHECK(shows("class htb be:3") && net_limiter_poll(l->nets, 1, 1, &look) == 0 && look.unenforced[0] == '\0');

    /* A new device of the same name. */
    CHECK(run("ip link del berthnear && ip link add berthnear type veth peer name berthnew"));
    net_limiter_share(l->nets, 4);
    CHECK(shows("class htb be:3") && net_limiter_poll(l->nets, 1, 1, &look) == 0 && look.unenforced[0] == '\0');
}

static void unenforced_limits_are_reported(void **state)
{
    (void)state;
    apart(unenforced_scene, 0);
}

static void traffic_scene(struct line *l)
{
    const struct net_limits limits = {.traffic_bytes = 8 * MB,
                                      .throttle_bytes = 4 * MB,
                                      .period_ns = 100,
                                      .wanted = true,
                                      .given = "traffic,traffic-throttle"};
    char unenforced[CGROUP_LIST_MAX];
    struct net_limit_status look;
    int64_t rates[GROUPS];
    net_limiter_put(l->nets, 1, l->group[0], &limits, 1000, unenforced);
    CHECK(unenforced[0] == '\0');
    CHECK(net_limiter_poll(l->nets, 1, 1010, &look) == 0 && look.period_bytes == 0 && !look.throttled && !look.spent);
    near_begin(l, 0, true);
    while (net_limiter_poll(l->nets, 1, 1020, &look) == 0 && !look.throttled)
        nap(SECOND_NS / 100);
    CHECK(look.period_bytes >= 4 * MB && shows("htb be:3"));
    measure(l, SECOND_NS / 2, rates); /* drains packets in flight */
    for (int i = 0; i == 0 || (i < 10 && rates[0] >= 4 * NET_THROTTLE_BYTES); i++)
        measure(l, SECOND_NS / 2, rates);
    CHECK(rates[0] < 4 * NET_THROTTLE_BYTES);

    /* A new period starts from zero, without throttling, also in a restarted agent. */
    net_limiter_free(l->nets);
    l->nets = net_limiter_new("berthnear", 0);
    net_limiter_put(l->nets, 1, l->group[0], &limits, 1030, unenforced);
    CHECK(net_limiter_poll(l->nets, 1, 1030, &look) == 0 && look.throttled && look.period_bytes >= 4 * MB);
    CHECK(net_limiter_poll(l->nets, 1, 1100, &look) == 0 && !look.throttled && look.period_bytes < 4 * MB &&
          look.counts.out >= 4 * MB);
    while (net_limiter_poll(l->nets, 1, 1110, &look) == 0 && !look.spent)
        nap(SECOND_NS / 100);
    CHECK(look.throttled && look.period_bytes >= 8 * MB);

    /* When the clock is set back, the used traffic stays, and the period restarts with its full length. */
    CHECK(net_limiter_poll(l->nets, 1, 10, &look) == 0 && look.spent);
    CHECK(net_limiter_poll(l->nets, 1, 109, &look) == 0 && look.spent);
    CHECK(net_limiter_poll(l->nets, 1, 110, &look) == 0 && !look.spent);

    /* Traffic of an instance that ended while no agent ran is counted. */
    (void)kill(l->near[0], SIGKILL);
    (void)waitpid(l->near[0], NULL, 0);
    l->near[0] = 0;
    CHECK(net_limiter_poll(l->nets, 1, 110, &look) == 0);
    net_limiter_free(l->nets);
    l->nets = net_limiter_new("berthnear", 0);
    struct net_counts last = net_limiter_end(l->nets, 1, l->group[0]);
    CHECK(last.out >= 12 * MB && last.out >= look.counts.out && last.in >= look.counts.in);
}

static void traffic_is_counted_by_period(void **state)
{
    (void)state;
    apart(traffic_scene, 0);
}

static void loopback_scene(struct line *l)
{
    const struct net_limits limits = {
        .in = {1000, 0},
          .wanted = true, .given = "network-in"
    };
    char unenforced[CGROUP_LIST_MAX], path[200];
    struct net_limit_status look;
    int status;
    net_limiter_put(l->nets, 1, l->group[0], &limits, 1, unenforced);
    l->near[0] = child();
    if (l->near[0] == 0) {
        (void)snprintf(path, sizeof path, "%s/cgroup.procs", l->group[0]);
        put(path, "0");
        int port = listen_at(PORT), to = connect_to("127.0.0.1", PORT), from = accept(port, NULL, NULL);
        static char bytes[1 << 20];
        for (size_t sent = 0, got = 0; got < sizeof bytes;) {
            sent += sent < sizeof bytes ? (size_t)write(to, bytes, 32768) : 0;
            got += (size_t)read(from, bytes, 32768);
        }
        _exit(0);
    }
    CHECK(waitpid(l->near[0], &status, 0) == l->near[0] && status == 0);
    l->near[0] = 0;
    CHECK(net_limiter_poll(l->nets, 1, 1, &look) == 0 && look.counts.in == 0 && look.counts.out == 0);
}

static void loopback_is_not_limited(void **state)
{
    (void)state;
    apart(loopback_scene, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_read),
        cmocka_unit_test(sent_traffic_is_shared_by_weight),
        cmocka_unit_test(received_traffic_is_shared_by_weight),
        cmocka_unit_test(rate_limits_are_enforced),
        cmocka_unit_test(last_limit_removes_qdisc),
        cmocka_unit_test(class_numbers_are_unique),
        cmocka_unit_test(limits_follow_the_default_route),
        cmocka_unit_test(unenforced_limits_are_reported),
        cmocka_unit_test(traffic_is_counted_by_period),
        cmocka_unit_test(loopback_is_not_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
