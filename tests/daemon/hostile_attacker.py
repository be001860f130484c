"""A hostile tenant: one attack on a daemon with a plain user's token, over many connections, for a given time.

    python3 hostile_attacker.py ATTACK URL TOKEN SECONDS

Prints one JSON object: for each kind of request the number of answers by status, and the bytes read. Every loop ends
when the time is over. The caller starts the program in a cgroup that limits it to half a core.
"""
import asyncio
import collections
import json
import resource
import sys
import time
import urllib.parse

CONNECTIONS = 64
MANY_CONNECTIONS = 1500
HUGE_VALUE, HUGE_COUNT = 12000, 40  # of a job's environment: 480 KB, within the bounds of a value and of a document
SLEEP = ["/bin/sleep", "3600"]
FORMULAS = [" + ".join(f"age * {i}" for i in range(1, 600)),
            "(function() local n = 0 while true do n = n + 1 end end)()",
            "#string.rep('x', 1000000) + age"]


class Attack:
    def __init__(self, url, token, seconds):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port, self.token = parts.hostname, parts.port, token
        self.end = time.monotonic() + seconds
        self.counts = collections.Counter()
        self.read = 0
        self.serial = 0

    def left(self):
        return self.end - time.monotonic()

    def request(self, method, path, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = (f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
                f"Content-Length: {len(data)}\r\n\r\n")
        return head.encode() + data

    async def open(self):
        return await asyncio.open_connection(self.host, self.port, limit=1 << 20)

    async def answer(self, reader):
        """Reads one answer; returns (status, whether the connection stays open)."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head.split(" ", 2)[1])
        if "transfer-encoding: chunked" in head:
            while size := int(await reader.readuntil(b"\r\n"), 16):
                self.read += size
                await reader.readexactly(size + 2)
            await reader.readuntil(b"\r\n")
        else:
            length = [line for line in head.split("\r\n") if line.startswith("content-length:")]
            size = int(length[0].split(":")[1]) if length else 0
            self.read += size
            await reader.readexactly(size)
        return status, "connection: close" not in head

    async def flood(self, name, make):
        """Sends requests one after the other over one connection, and reconnects when the daemon closes it."""
        writer = None
        while self.left() > 0:
            try:
                if not writer:
                    reader, writer = await self.open()
                writer.write(make())
                status, stays = await self.answer(reader)
                self.counts[f"{name} {status}"] += 1
                if not stays:
                    writer.close()
                    writer = None
                if status == 429:
                    await asyncio.sleep(0.01)
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                self.counts[f"{name} closed"] += 1
                writer = None
                await asyncio.sleep(0.01)

    async def hold(self, name, sent, pace):
        """Sends one request, then reads a few bytes at a time, or nothing."""
        while self.left() > 0:
            try:
                reader, writer = await self.open()
                writer.write(sent)
                self.counts[f"{name} opened"] += 1
                while self.left() > 0:
                    data = await reader.read(16)
                    if not data:
                        break
                    self.read += len(data)
                    await asyncio.sleep(pace)
                writer.close()
            except OSError:
                self.counts[f"{name} refused"] += 1
            await asyncio.sleep(0.05)

    def unique(self):
        self.serial += 1
        return f"x{self.serial}-{int(time.time() * 1000) % 10000000}"

    # One function for each attack; it returns the coroutines that run the attack.

    def replicas(self):
        def app():
            count = (3000000, 100000, 500)[self.serial % 3]
            command = (SLEEP, ["/bin/false"])[self.serial % 2]
            return self.request("POST", "/v1/apps", {"name": self.unique(), "command": command, "replicas": count})
        return [self.flood("app", app) for _ in range(CONNECTIONS)]

    def arrays(self):
        def job():
            return self.request("POST", "/v1/jobs", {"name": "a", "command": SLEEP, "array": "0-99999"})
        return [self.flood("array", job) for _ in range(CONNECTIONS)]

    def lists(self):
        paths = ["/v1/jobs?limit=10000", "/v1/instances?limit=10000", "/v1/events?limit=10000", "/v1/queue?limit=10000",
                 "/v1/nodes", "/openapi.json", "/metrics"]

        def one():
            self.serial += 1
            return self.request("GET", paths[self.serial % len(paths)])
        return [self.flood("list", one) for _ in range(CONNECTIONS)]

    def watches(self):
        watch = self.request("GET", "/v1/jobs?watch=1")
        return [self.hold("watch", watch, 0.01) for _ in range(4 * CONNECTIONS)]

    def formulas(self):
        def one():
            self.serial += 1
            path = ("/v1/policies/test?limit=1000", "/v1/what_if?limit=1000")[self.serial % 2]
            policy = {"formula": FORMULAS[self.serial % len(FORMULAS)]}
            return self.request("POST", path, policy if self.serial % 2 == 0 else {"policy": policy})
        return [self.flood("formula", one) for _ in range(CONNECTIONS)]

    def dry_runs(self):
        def one():
            self.serial += 1
            draft = {"name": "d", "command": SLEEP, "array": ("0-99999", "0-499", "0-9")[self.serial % 3]}
            path = ("/v1/jobs?dry_run=true", "/v1/jobs?dry_run=true&forecast=true")[self.serial // 3 % 2]
            return self.request("POST", path, draft)
        return [self.flood("dry run", one) for _ in range(CONNECTIONS)]

    def exec_floods(self):
        def one():
            return self.request("POST", f"/v1/instances/{self.instance}/exec", {"command": ["/bin/true"]})
        return [self.flood("exec", one) for _ in range(CONNECTIONS)]

    def slow_reads(self):
        sent = self.request("GET", "/v1/jobs?limit=10000") * 20
        return [self.hold("slow read", sent, 0.5) for _ in range(CONNECTIONS)]

    def huge_documents(self):
        env = {f"A{i}": "x" * HUGE_VALUE for i in range(HUGE_COUNT)}

        def one():
            return self.request("POST", "/v1/jobs", {"name": "h", "command": SLEEP, "hold": True, "env": env})
        return [self.flood("huge", one) for _ in range(CONNECTIONS)]

    def many_connections(self):
        return [self.hold("connection", b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n", 0.5) for _ in range(MANY_CONNECTIONS)]

    async def find_instance(self):
        """Returns an instance of the attacker's own, in which commands can be run."""
        reader, writer = await self.open()
        writer.write(self.request("GET", "/v1/instances?state=running&limit=1"))
        head = await reader.readuntil(b"\r\n\r\n")
        size = [line for line in head.decode().lower().split("\r\n") if line.startswith("content-length:")]
        body = await reader.readexactly(int(size[0].split(":")[1])) if size else b"{}"
        items = json.loads(body).get("items", [])
        self.instance = items[0]["id"] if items else 1
        writer.close()

    async def run(self, names):
        await self.find_instance()
        tasks = [asyncio.ensure_future(c) for name in names for c in getattr(self, name)()]
        await asyncio.wait(tasks, timeout=max(0, self.left()) + 0.5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


ATTACKS = ["replicas", "arrays", "lists", "watches", "formulas", "dry_runs", "exec_floods", "slow_reads",
           "huge_documents", "many_connections"]


def main():
    name, url, token, seconds = sys.argv[1:5]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    attack = Attack(url, token, float(seconds))
    begin = time.monotonic()
    asyncio.run(attack.run(ATTACKS if name == "all" else [name]))
    print(json.dumps({"counts": dict(attack.counts), "bytes": attack.read, "seconds": time.monotonic() - begin}))


if __name__ == "__main__":
    main()
