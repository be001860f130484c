/* config_test.c - berthd's configuration file: entries, and required ownership. */
#include "berthd/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct folder {
    char dir[64], file[96], program[96];
};

static int folder_open(void **state)
{
    static struct folder f;
    (void)snprintf(f.dir, sizeof f.dir, "/tmp/berthd-config-XXXXXX");
    assert_non_null(mkdtemp(f.dir));
    (void)snprintf(f.file, sizeof f.file, "%s/berthd.conf", f.dir);
    (void)snprintf(f.program, sizeof f.program, "%s/sendmail", f.dir);
    *state = &f;
    return 0;
}

static int folder_close(void **state)
{
    struct folder *f = *state;
    (void)unlink(f->file);
    (void)unlink(f->program);
    (void)rmdir(f->dir);
    return 0;
}

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void needs_root(void)
{
    if (getuid() != 0) {
        print_message("skip: only root has files of root\n");
        skip();
    }
}

static void entries_are_read(void **state)
{
    struct folder *f = *state;
    struct daemon_config c;
    struct berth_err err = {0};
    char text[256];

    needs_root();
    put(f->program, "#!/bin/sh\n", 0755);
    (void)snprintf(text, sizeof text, "# mail\n\n  mail_command =  %s \n", f->program);
    put(f->file, text, 0644);
    if (daemon_config_read(f->file, &c, &err) != 0)
        fail_msg("%s", err.text);
    assert_string_equal(c.mail_command, f->program);
    daemon_config_done(&c);
    put(f->file, "mail_command =\n", 0644);
    assert_int_equal(daemon_config_read(f->file, &c, &err), 0);
    assert_null(c.mail_command);
}

static void errors_are_reported(void **state)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"mail_command /usr/sbin/sendmail\n",  "line 1: expected NAME = VALUE"      },
        {"\nshell = /bin/sh\n",                "line 2: there is no setting 'shell'"},
        {"mail_command = /bin/sh\n",           "the absolute path of sendmail"      },
        {"mail_command = sendmail\n",          "the absolute path of sendmail"      },
        {"mail_command = /nowhere/sendmail\n", "No such file"                       },
    };
    struct folder *f = *state;
    struct daemon_config c;
    struct berth_err err = {0};

    needs_root();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        put(f->file, rows[i].text, 0644);
        assert_true(daemon_config_read(f->file, &c, &err) < 0);
        if (!strstr(err.text, rows[i].says))
            fail_msg("%s: %s", rows[i].text, err.text);
    }
    assert_int_equal(unlink(f->file), 0);
    assert_int_equal(daemon_config_read(f->file, &c, &err), -ENOENT);
}

/* A file, program or folder that a user other than root can change is rejected. */
static void files_of_other_users_are_rejected(void **state)
{
    struct folder *f = *state;
    struct daemon_config c;
    struct berth_err err = {0};
    char text[256];

    needs_root();
    (void)snprintf(text, sizeof text, "mail_command = %s\n", f->program);
    put(f->program, "#!/bin/sh\n", 0755);
    put(f->file, text, 0644);
    static const struct {
        const char *label;
        mode_t file, program, dir;
        uid_t file_uid, program_uid, dir_uid;
    } rows[] = {
        {"others write the file",    0646, 0755, 0755, 0,    0,    0   },
        {"a group writes the file",  0664, 0755, 0755, 0,    0,    0   },
        {"another's file",           0644, 0755, 0755, 1234, 0,    0   },
        {"others write the program", 0644, 0757, 0755, 0,    0,    0   },
        {"another's program",        0644, 0755, 0755, 0,    1234, 0   },
        {"no program",               0644, 0644, 0755, 0,    0,    0   },
        {"another's folder",         0644, 0755, 0755, 0,    0,    1234},
        {"others write the folder",  0644, 0755, 0777, 0,    0,    0   },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(chown(f->file, rows[i].file_uid, 0), 0);
        assert_int_equal(chown(f->program, rows[i].program_uid, 0), 0);
        assert_int_equal(chown(f->dir, rows[i].dir_uid, 0), 0);
        assert_int_equal(chmod(f->file, rows[i].file), 0);
        assert_int_equal(chmod(f->program, rows[i].program), 0);
        assert_int_equal(chmod(f->dir, rows[i].dir), 0);
        if (daemon_config_read(f->file, &c, &err) >= 0)
            fail_msg("%s: it is taken", rows[i].label);
    }
}

/* A link that its owner could redirect later is rejected, even if it leads to a program of root. */
static void links_of_other_users_are_rejected(void **state)
{
    struct folder *f = *state;
    struct daemon_config c;
    struct berth_err err = {0};
    char text[256], real[112];

    needs_root();
    (void)snprintf(real, sizeof real, "%s/real", f->dir);
    put(real, "#!/bin/sh\n", 0755);
    assert_int_equal(symlink(real, f->program), 0);
    (void)snprintf(text, sizeof text, "mail_command = %s\n", f->program);
    put(f->file, text, 0644);
    assert_int_equal(daemon_config_read(f->file, &c, &err), 0);
    daemon_config_done(&c);
    assert_int_equal(lchown(f->program, 1234, 1234), 0);
    assert_int_equal(daemon_config_read(f->file, &c, &err), -EPERM);
    assert_int_equal(unlink(real), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(entries_are_read, folder_open, folder_close),
        cmocka_unit_test_setup_teardown(errors_are_reported, folder_open, folder_close),
        cmocka_unit_test_setup_teardown(files_of_other_users_are_rejected, folder_open, folder_close),
        cmocka_unit_test_setup_teardown(links_of_other_users_are_rejected, folder_open, folder_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
