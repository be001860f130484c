"""Ports of loopback for those who must know one before it is bound, or have it again after a restart. As a program it prints one."""
import contextlib
import pathlib
import random
import socket


def free_ports(count):
    """Ports that are free now, below those that the kernel gives to whoever connects: nobody is given one by chance before it is bound, or
    while a daemon that is to have it again is away."""
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
