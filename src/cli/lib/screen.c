#include "cli/lib/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

bool screen_measure(struct screen *s)
{
    struct winsize size;
    int rows = s->rows, columns = s->columns;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        s->rows = size.ws_row;
        s->columns = size.ws_col;
    }
    return rows != s->rows || columns != s->columns;
}

static void put(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static void put_text(const char *text)
{
    put(text, strlen(text));
}

bool screen_open(struct screen *s, const struct cli *cli)
{
    static const int numbers[] = {SIGWINCH, SIGINT, SIGTERM, SIGHUP};
    sigset_t signals;

    *s = (struct screen){.cli = cli, .rows = 24, .columns = 80};
    if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &s->before) != 0)
        return false;
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(&signals, numbers[i]);
    s->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    if (s->signal_fd < 0)
        return false;
    (void)sigprocmask(SIG_BLOCK, &signals, &s->unblocked);
    struct termios raw = s->before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    screen_measure(s);
    put_text("\033[?1049h\033[?25l"); /* alternate screen, hidden cursor */
    return true;
}

void screen_close(struct screen *s)
{
    put_text("\033[?25h\033[?1049l");
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &s->before);
    (void)close(s->signal_fd);
    (void)sigprocmask(SIG_SETMASK, &s->unblocked, NULL);
}

/* Returns how many bytes of a line fit into `columns`. A character takes one column, an escape sequence none. */
static size_t line_fit(const char *line, size_t len, int columns)
{
    int used = 0;
    size_t i = 0;

    while (i < len) {
        if (line[i] == '\033') {
            while (i < len && line[i] != 'm')
                i++;
            i += i < len;
            continue;
        }
        if (((unsigned char)line[i] & 0xc0) != 0x80 && ++used > columns)
            break;
        i++;
    }
    return i;
}

void screen_draw(struct screen *s, const struct str *text)
{
    struct str frame = {0};
    const char *at = str_text(text);

    str_add(&frame, "\033[H");
    for (int row = 0; row < s->rows && *at; row++) {
        size_t len = strcspn(at, "\n");
        str_add(&frame, row ? "\r\n" : "");
        str_add_bytes(&frame, at, line_fit(at, len, s->columns));
        str_add(&frame, "\033[0m\033[K");
        at += len + (at[len] == '\n');
    }
    str_add(&frame, "\033[J");
    put(str_text(&frame), frame.len);
    str_done(&frame);
}

/* Reads the rest of an escape sequence: "[A" is up, "[B" is down. */
static int arrow(void)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char rest[2] = "";

    for (size_t i = 0; i < sizeof rest && poll(&in, 1, 20) > 0; i++)
        if (read(STDIN_FILENO, &rest[i], 1) != 1)
            break;
    return rest[0] == '[' && rest[1] == 'A' ? 'k' : rest[0] == '[' && rest[1] == 'B' ? 'j' : 0;
}

int screen_key(struct screen *s, int wait_ms)
{
    struct pollfd in[] = {
        {.fd = s->signal_fd, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN}
    };
    struct signalfd_siginfo info;
    char key;

    if (poll(in, 2, wait_ms) <= 0)
        return 0;
    if (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
        return info.ssi_signo == SIGWINCH ? 0 : 'q';
    if (read(STDIN_FILENO, &key, 1) != 1)
        return 'q';
    return key == '\033' ? arrow() : key;
}
