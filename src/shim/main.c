#include "shim/shim.h"

#include <stdio.h>
#include <string.h>

#include "machine/launch/pid_namespace.h"

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "run") == 0)
        return shim_run(argv[2]);
    if (argc == 3 && strcmp(argv[1], "exec") == 0)
        return shim_exec(argv[2]);
    if (argc == 3 && strcmp(argv[1], "hold") == 0)
        return pid_namespace_hold(argv[2]) ? 1 : 0;
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("berth-shim " BERTH_VERSION);
        return 0;
    }
    fputs("berth-shim is started by berth-agent, once for each instance\n", stderr);
    return 2;
}
