/* kube_load_bench.c - sends requests to a Kubernetes API server as fast as possible, or at a given rate.
 *
 *     kube_load_bench URL CA_FILE TOKEN CONNECTIONS PER_SECOND [TIMES_FILE] <REQUESTS
 *
 * Each request is a line: method, path, and the JSON body to the end of the line. Requests are sent in order, each on a
 * free connection; PER_SECOND 0 is no limit. Prints the results as JSON. TIMES_FILE gets a line for each request, in
 * order: start and end in nanoseconds of the monotonic clock. Exits with 1 if a request failed.
 *
 * tests/kube/bench.py creates pods and nodes with this program, and measures how many bindings an API server handles.
 */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000LL
#define CONNECTIONS_MAX 256
#define ANSWER_KEPT 300 /* bytes of an error answer kept for the message */

struct load_request {
    char *method, *path, *body;
    int64_t begun_ns, ended_ns;
};

struct slot {
    CURL *easy;
    struct load_request *request; /* NULL: free */
    char answer[ANSWER_KEPT + 1];
    size_t answer_len;
};

struct load_run {
    const char *url;
    struct load_request *requests;
    size_t requests_len, next, done, failed;
    int64_t pause_ns; /* between the starts of two requests */
    struct slot slots[CONNECTIONS_MAX];
    size_t slots_len;
    CURLM *multi;
    int epoll;
    int64_t timer_ns; /* when libcurl's timer expires */
    char *text;       /* the whole input */
};

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void die(const char *words)
{
    fprintf(stderr, "kube_load_bench: %s\n", words);
    exit(2);
}

static char *read_all(FILE *file)
{
    size_t len = 0, room = 1 << 20;
    char *text = malloc(room);

    while (text != NULL) {
        size_t got = fread(text + len, 1, room - len - 1, file);

        len += got;
        if (got == 0)
            break;
        if (room - len < 2) {
            room *= 2;
            text = realloc(text, room);
        }
    }
    if (text == NULL)
        die("out of memory");
    text[len] = '\0';
    return text;
}

/* Parses the requests, which point into the text; its separators become NULs. */
static void requests_read(struct load_run *load)
{
    size_t room = 0;

    for (char *line = load->text; *line != '\0';) {
        char *end = strchr(line, '\n');
        char *path = strchr(line, ' ');
        char *body = path == NULL ? NULL : strchr(path + 1, ' ');

        if (end == NULL || body == NULL || body > end)
            die("a request is a line: METHOD PATH BODY");
        *end = *path = *body = '\0';
        if (load->requests_len == room) {
            room = room == 0 ? 1024 : 2 * room;
            load->requests = realloc(load->requests, room * sizeof(*load->requests));
            if (load->requests == NULL)
                die("out of memory");
        }
        load->requests[load->requests_len++] =
            (struct load_request){.method = line, .path = path + 1, .body = body + 1};
        line = end + 1;
    }
}

static size_t append_answer(char *at, size_t size, size_t count, void *ctx)
{
    struct slot *slot = ctx;
    size_t len = size * count, kept = len;

    if (kept > ANSWER_KEPT - slot->answer_len)
        kept = ANSWER_KEPT - slot->answer_len;
    memcpy(slot->answer + slot->answer_len, at, kept);
    slot->answer_len += kept;
    return len;
}

static void slots_open(struct load_run *load, const char *ca, const struct curl_slist *headers)
{
    for (size_t i = 0; i < load->slots_len; i++) {
        struct slot *slot = &load->slots[i];

        slot->easy = curl_easy_init();
        if (slot->easy == NULL)
            die("libcurl cannot begin");
        curl_easy_setopt(slot->easy, CURLOPT_CAINFO, ca);
        /* Otherwise GnuTLS reads all system certificates for each connection, which takes 28 ms. */
        curl_easy_setopt(slot->easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(slot->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(slot->easy, CURLOPT_WRITEFUNCTION, append_answer);
        curl_easy_setopt(slot->easy, CURLOPT_WRITEDATA, slot);
        curl_easy_setopt(slot->easy, CURLOPT_PRIVATE, slot);
        curl_easy_setopt(slot->easy, CURLOPT_NOSIGNAL, 1L);
    }
}

static void slot_begin(struct load_run *load, struct slot *slot, struct load_request *request)
{
    char url[2048];

    if (snprintf(url, sizeof(url), "%s%s", load->url, request->path) >= (int)sizeof(url))
        die("a path is too long");
    slot->request = request;
    slot->answer_len = 0;
    curl_easy_setopt(slot->easy, CURLOPT_URL, url);
    curl_easy_setopt(slot->easy, CURLOPT_CUSTOMREQUEST, request->method);
    curl_easy_setopt(slot->easy, CURLOPT_POSTFIELDS, request->body);
    request->begun_ns = now_ns();
    if (curl_multi_add_handle(load->multi, slot->easy) != CURLM_OK)
        die("libcurl cannot begin a request");
}

static void slot_end(struct load_run *load, CURL *easy, CURLcode result)
{
    struct slot *slot = NULL;
    long status = 0;

    curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&slot);
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_multi_remove_handle(load->multi, easy);
    slot->request->ended_ns = now_ns();
    slot->answer[slot->answer_len] = '\0';
    load->done++;
    if (result != CURLE_OK || status >= 400) {
        if (load->failed++ < 3)
            fprintf(stderr, "%s %s: %ld %s %s\n", slot->request->method, slot->request->path, status,
                    curl_easy_strerror(result), slot->answer);
    }
    slot->request = NULL;
}

/* Starts all due requests on free connections; returns the milliseconds until the next one is due. */
static int begin_due(struct load_run *load, int64_t start_ns)
{
    for (size_t i = 0; i < load->slots_len && load->next < load->requests_len; i++) {
        int64_t wait_ns = start_ns + (int64_t)load->next * load->pause_ns - now_ns();

        if (load->slots[i].request != NULL)
            continue;
        if (load->pause_ns > 0 && wait_ns > 0)
            return (int)(wait_ns / 1000000);
        slot_begin(load, &load->slots[i], &load->requests[load->next++]);
    }
    return 1000;
}

static int watch_socket(CURL *easy, curl_socket_t fd, int what, void *ctx, void *known)
{
    struct load_run *load = ctx;
    struct epoll_event wish = {.data.fd = fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(load->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    wish.events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
    if (epoll_ctl(load->epoll, known == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &wish) != 0)
        die("cannot wait for a socket");
    curl_multi_assign(load->multi, fd, load);
    return 0;
}

static int set_timer(CURLM *multi, long ms, void *ctx)
{
    struct load_run *load = ctx;

    (void)multi;
    load->timer_ns = ms < 0 ? INT64_MAX : now_ns() + ms * 1000000LL;
    return 0;
}

/* Lets libcurl make progress, and collects finished requests. */
static void advance(struct load_run *load, curl_socket_t fd, int mask)
{
    int left = 0;
    CURLMsg *message;

    if (curl_multi_socket_action(load->multi, fd, mask, &left) != CURLM_OK)
        die("libcurl failed");
    while ((message = curl_multi_info_read(load->multi, &left)) != NULL)
        if (message->msg == CURLMSG_DONE)
            slot_end(load, message->easy_handle, message->data.result);
}

static void run(struct load_run *load)
{
    int64_t start_ns = now_ns();

    while (load->done < load->requests_len) {
        struct epoll_event events[CONNECTIONS_MAX];
        int wait_ms = begin_due(load, start_ns);
        int64_t timer_ns = load->timer_ns - now_ns();

        if (timer_ns <= 0) {
            load->timer_ns = INT64_MAX;
            advance(load, CURL_SOCKET_TIMEOUT, 0);
            continue;
        }
        if (timer_ns / 1000000 < wait_ms)
            wait_ms = (int)(timer_ns / 1000000);
        int count = epoll_wait(load->epoll, events, CONNECTIONS_MAX, wait_ms);
        for (int i = 0; i < count; i++)
            advance(load, events[i].data.fd,
                    (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                        (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                        (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
    }
}

static void times_write(const struct load_run *load, const char *path)
{
    FILE *file = fopen(path, "w");

    if (file == NULL)
        die("cannot write the times");
    for (size_t i = 0; i < load->requests_len; i++)
        fprintf(file, "%lld %lld\n", (long long)load->requests[i].begun_ns, (long long)load->requests[i].ended_ns);
    if (fclose(file) != 0)
        die("cannot write the times");
}

int main(int argc, char **argv)
{
    static struct load_run load;
    char authorization[1024];
    struct rusage used;

    if (argc < 6 || argc > 7)
        die("URL CA_FILE TOKEN CONNECTIONS PER_SECOND [TIMES_FILE] <REQUESTS");
    load.url = argv[1];
    load.slots_len = (size_t)strtoul(argv[4], NULL, 10);
    int64_t per_second = strtoll(argv[5], NULL, 10);
    load.pause_ns = per_second > 0 ? NS_PER_S / per_second : 0;
    if (load.slots_len == 0 || load.slots_len > CONNECTIONS_MAX)
        die("CONNECTIONS is from 1 to 256");
    load.text = read_all(stdin);
    requests_read(&load);

    curl_global_init(CURL_GLOBAL_DEFAULT);
    load.multi = curl_multi_init();
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.timer_ns = INT64_MAX;
    curl_multi_setopt(load.multi, CURLMOPT_MAXCONNECTS, (long)load.slots_len);
    curl_multi_setopt(load.multi, CURLMOPT_SOCKETFUNCTION, watch_socket);
    curl_multi_setopt(load.multi, CURLMOPT_SOCKETDATA, &load);
    curl_multi_setopt(load.multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(load.multi, CURLMOPT_TIMERDATA, &load);
    snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s", argv[3]);
    struct curl_slist *headers = curl_slist_append(NULL, authorization);
    headers = curl_slist_append(headers, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    slots_open(&load, argv[2], headers);

    int64_t begin_ns = now_ns();
    run(&load);
    double seconds = (double)(now_ns() - begin_ns) / NS_PER_S;
    getrusage(RUSAGE_SELF, &used);
    double cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                 (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    printf("{\"requests\": %zu, \"failed\": %zu, \"seconds\": %.4f, \"cpu_seconds\": %.4f}\n", load.requests_len,
           load.failed, seconds, cpu);
    if (argc == 7)
        times_write(&load, argv[6]);

    for (size_t i = 0; i < load.slots_len; i++)
        curl_easy_cleanup(load.slots[i].easy);
    curl_multi_cleanup(load.multi);
    close(load.epoll);
    curl_slist_free_all(headers);
    curl_global_cleanup();
    free(load.requests);
    free(load.text);
    return load.failed > 0;
}
