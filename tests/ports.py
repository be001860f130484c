"""Free ports of loopback, for tests that need a port number before it is bound, or the same one after a restart. As a
program it prints one."""
import contextlib
import pathlib
import random
import socket


def free_ports(count):
    """Returns ports that are free now, below the range from which the kernel assigns ports to outgoing connections. So
    no other program gets one by chance before it is bound, or while its daemon restarts."""
    first = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = []
    with contextlib.ExitStack() as stack:
        while len(found) < count:
            one = stack.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", random.randrange(first // 2, first)))
                found.append(one.getsockname()[1])
    return found


if __name__ == "__main__":
    print(*free_ports(1))
