"""Cases of http_fair_test.sh: one user requests much and reads little; other users are served, and berthd stays small.
Standard library only; prints TAP. Asserts counts and memory but no times; the times are printed."""
import contextlib
import http.client
import json
import os
import re
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BERTHD = sys.argv[1]
PATIENCE = int(os.environ.get("BERTH_PATIENCE", "120"))
END_SECONDS = 5  # from SIGTERM to the end of berthd, on an otherwise idle machine
CASES = []
JOBS, JOB_BYTES, REQUESTS = 60, 480_000, 80
# The address sanitizer keeps 256 MB of freed memory, and shadow memory for all of it.
SANITIZER_MB = 500 if "ASAN_OPTIONS" in os.environ else 0


def case(function):
    CASES.append(function)
    return function


class Daemon:
    """A running berthd with an administrator, an attacker `mallory` and another user `alice`."""

    def __init__(self, *options):
        self.root = tempfile.mkdtemp(prefix="berth-fair-")
        self.log = open(os.path.join(self.root, "log"), "wb")
        data = os.path.join(self.root, "data")
        self.process = subprocess.Popen([BERTHD, "--data", data, "--listen", "127.0.0.1:0", "--init", *options],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.fullmatch(r"ready http://\S+:([1-9]\d*)\n", line).group(1))
        with open(os.path.join(data, "admin.token"), encoding="ascii") as f:
            self.tokens = {"admin": f.read().strip()}
        for user in "mallory", "alice":
            self.must(201, "admin", "POST", "/v1/users", {"id": user, "role": "user"})
            answer = self.must(201, "admin", "POST", "/v1/tokens", {"user": user})
            self.tokens[user] = answer["token"]

    def request_text(self, user, method, path, body=None, close=False):
        data = json.dumps(body).encode() if body is not None else b""
        head = [f"{method} {path} HTTP/1.1", "Host: h", f"Authorization: Bearer {self.tokens[user]}",
                f"Content-Length: {len(data)}"] + (["Connection: close"] if close else [])
        return "\r\n".join(head).encode() + b"\r\n\r\n" + data

    def dial(self, receive_bytes=None, address=None):
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        s.settimeout(PATIENCE)
        if receive_bytes:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        if address:
            s.bind((address, 0))
        s.connect(("127.0.0.1", self.port))
        return s

    def ask(self, user, method, path, body=None, address=None):
        """Returns (status, decoded body, headers); for a refused connection the status alone."""
        with contextlib.closing(self.dial(address=address)) as s:
            s.sendall(self.request_text(user, method, path, body, close=True))
            answer = http.client.HTTPResponse(s)
            answer.begin()
            text = answer.read()
            is_json = answer.getheader("Content-Type", "").startswith("application/json")
            return answer.status, json.loads(text) if is_json else text, answer.headers

    def must(self, status, *args, **more):
        found, body, _ = self.ask(*args, **more)
        assert found == status, f"{args[:3]}: {found}, not {status}: {str(body)[:300]}"
        return body

    def memory_mb(self, key="VmHWM"):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(rf"^{key}:\s+(\d+) kB", f.read(), re.M).group(1)) / 1024

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.log.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def fill(self, user="mallory", count=JOBS, size=JOB_BYTES):
        """Submits jobs without the rate limit: each 4 KiB of a body count as a request."""
        values = {f"V{i}": "x" * 4000 for i in range(size // 4010)}
        self.must(200, "admin", "PATCH", "/v1/system/settings", {"requests_per_s": 0})
        for _ in range(count):
            self.must(201, user, "POST", "/v1/jobs", {"hold": True, "command": ["/bin/true"], "env": values})
        self.must(200, "admin", "PATCH", "/v1/system/settings", {"requests_per_s": None})


class Crowd:
    """Many connections with one request each. All requests are sent, then answers are read as they arrive. `order` has
    each user and status."""

    def __init__(self, daemon, requests):
        self.order, self.bytes = [], 0
        self.selector = selectors.DefaultSelector()
        sockets = [daemon.dial() for _ in requests]
        for s, (user, path) in zip(sockets, requests):
            s.sendall(daemon.request_text(user, "GET", path, close=True))
            self.selector.register(s, selectors.EVENT_READ, (user, bytearray()))
        while self.selector.get_map():
            for key, _ in self.selector.select(PATIENCE):
                self.take(key)

    def take(self, key):
        user, head = key.data
        try:
            piece = key.fileobj.recv(1 << 20)
        except OSError:
            piece = b""
        self.bytes += len(piece)
        head.extend(piece[:12])
        if not piece:
            self.order.append((user, int(head[9:12] or 0)))
            self.selector.unregister(key.fileobj)
            key.fileobj.close()


def equal(found, want):
    assert found == want, f"found {found!r}, not {want!r}"


@case
def lists_of_one_user_do_not_delay_another(_):
    """Once, 80 concurrent requests for 60 jobs of 480 KB delayed every other user until all were answered."""
    daemon = Daemon()
    try:
        daemon.fill()
        begun = time.monotonic()
        crowd = Crowd(daemon, [("mallory", "/v1/jobs?limit=10000")] * REQUESTS + [("alice", "/v1/whoami")])
        served = crowd.order.count(("mallory", 200))
        refused = crowd.order.count(("mallory", 429))
        before = crowd.order[:crowd.order.index(("alice", 200))].count(("mallory", 200))
        print(f"# {REQUESTS} lists of {JOBS} jobs of {JOB_BYTES} bytes: {served} served, {refused} refused,"
              f" {crowd.bytes >> 20} MiB in {time.monotonic() - begun:.1f} s;"
              f" {before} of them before the request of another user;"
              f" berthd at most {daemon.memory_mb():.0f} MB", flush=True)
        equal(served + refused, REQUESTS)
        assert before <= 4, f"{before} lists were served before the request of another user: {crowd.order}"
        assert refused > 0, "a user may have any number of heavy requests at a time"
        assert daemon.memory_mb() < 400 + SANITIZER_MB, f"berthd took {daemon.memory_mb():.0f} MB"
    finally:
        daemon.end()


def status_of(s):
    """Returns the status of the next answer and leaves everything after its first line unread."""
    text = b""
    while len(text) < 12 and (piece := s.recv(12 - len(text))):
        text += piece
    return int(text[9:12] or 0)


@case
def unread_answers_are_bounded(_):
    """Once, berthd kept all large answers of a user who read none of them."""
    daemon = Daemon()
    held = []
    try:
        daemon.fill(count=20)
        base = daemon.memory_mb("VmRSS")
        for _ in range(64):
            s = daemon.dial(receive_bytes=4096)
            s.sendall(daemon.request_text("mallory", "GET", "/v1/jobs?limit=10000"))
            held.append(s)
        statuses = [status_of(s) for s in held]
        daemon.must(201, "alice", "POST", "/v1/jobs", {"command": ["/bin/true"], "hold": True})
        grown = daemon.memory_mb("VmRSS") - base
        served, refused = statuses.count(200), statuses.count(429)
        print(f"# 64 lists that nobody reads: {served} answered, {refused} refused; berthd grew by {grown:.0f} MB",
              flush=True)
        equal(served + refused, 64)
        assert served >= 8, statuses
        assert grown < 100 + SANITIZER_MB, f"berthd grew by {grown:.0f} MB"
    finally:
        for s in held:
            s.close()
        daemon.end()


@case
def clients_that_do_not_read_do_not_delay_the_shutdown(_):
    """Once, berthd waited 10 s at its end for clients that did not read their answers."""
    daemon = Daemon()
    held = []
    try:
        daemon.fill(count=20)
        for _ in range(16):
            s = daemon.dial(receive_bytes=4096)
            s.sendall(daemon.request_text("mallory", "GET", "/v1/jobs?limit=10000") * 4)
            held.append(s)
        equal({status_of(s) for s in held} - {200, 429}, set())
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        equal(daemon.process.wait(PATIENCE), 0)
        seconds = time.monotonic() - begin
        print(f"# ended {seconds:.1f} s after SIGTERM", flush=True)
        assert seconds < END_SECONDS * max(1, PATIENCE / 60), f"{seconds} s"
    finally:
        for s in held:
            s.close()
        daemon.end()


@case
def connections_of_one_address_leave_room_for_others(_):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 8192), limit))
    daemon = Daemon("--max-connections", "1500")
    held = []
    try:
        for _ in range(1500):
            held.append(daemon.dial(address="127.0.0.2"))
        daemon.must(200, "alice", "GET", "/v1/whoami")
        status, _, headers = daemon.ask("mallory", "GET", "/v1/whoami", address="127.0.0.2")
        equal((status, headers["Retry-After"]), (429, "1"))
    finally:
        for s in held:
            s.close()
        daemon.end()


@case
def connections_of_one_user_are_bounded(_):
    daemon = Daemon()
    held = []
    try:
        for i in range(300):  # from many addresses
            s = daemon.dial(address=f"127.0.1.{i % 200 + 1}")
            s.sendall(daemon.request_text("mallory", "GET", "/v1/whoami"))
            held.append(s)
        statuses = [status_of(s) for s in held]
        equal((statuses.count(200), statuses.count(429)), (256, 44))
        daemon.must(200, "alice", "GET", "/v1/whoami", address="127.0.1.1")
    finally:
        for s in held:
            s.close()
        daemon.end()


def main():
    wanted = sys.argv[2:]
    failed = 0
    for number, function in enumerate(CASES, 1):
        if wanted and function.__name__ not in wanted:
            continue
        try:
            function(None)
            print(f"ok {number} - {function.__name__}", flush=True)
        except Exception:  # report every case
            failed += 1
            print("# " + "\n# ".join(traceback.format_exc().splitlines()))
            print(f"not ok {number} - {function.__name__}", flush=True)
    print(f"1..{len(CASES)}")
    sys.exit(1 if failed else 0)


main()
