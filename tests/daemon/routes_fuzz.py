"""Sends random requests to every route of a real berthd with two real agents connected. Standard library only; prints
TAP.

    routes_fuzz.py [--seconds N] [--seed N] [--threads N] [--without-agents]

The routes, their parameters and bodies come from /openapi.json. Each request has the token of an administrator, an
operator, a group manager, a plain user or a node, or no token; routes for agents are also requested over mutual TLS.
Bodies are generated from the schema, then mutated: wrong types, huge numbers, long and odd texts, deep nesting,
repeated keys, bad UTF-8, truncation. Watches are opened and dropped.

The fuzzer keeps its own users, tokens, roles and nodes: it never asks to remove or disable them. It fails on a status
of 5xx that the route does not document; on a daemon or agent that ends or reports a sanitizer finding; and on a daemon
that accepts no changes any more, does not end well on SIGTERM under load, or does not start again with its stored
objects. With the same seed each thread sends the same sequence of draws, though answers and their order differ.
BERTH_UNDER is a command that runs berthd, such as "valgrind -q --error-exitcode=9".
"""
import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import re
import shlex
import signal
import ssl
import sys
import threading
import time
import urllib.parse

from agent_kit import BUILD, PATIENCE, Cluster, skip_unless, skip_unless_root, AGENT, BERTHD, SHIM

END_SECONDS = 5  # from SIGTERM to the end of the daemon, on an otherwise idle machine
EACH_MIN = 3     # least number of requests to each route
WATCHES_MAX = 24
REPAIR_EVERY = 150  # requests of a thread between repairs of settings that would end the test early
OWN = ["f-admin", "f-operator", "f-manager", "f-user", "f-group"]
NODES = ["fuzz-a", "fuzz-b", "fuzz-c"]  # fuzz-c has joined; the fuzzer acts as its agent
ROLES = {"f-admin": "admin", "f-operator": "operator", "f-manager": "manager", "f-user": "user"}
SANITIZER = re.compile(
    r"AddressSanitizer|LeakSanitizer|runtime error:|UndefinedBehavior|==\d+==.*(Invalid|uninit)|Assertion .* failed")
WORDS = ["a", "x1", "web", "batch", "default", "cpu", "memory", "pods", "gpu", "n1", "fuzz-a", "fuzz-b", "f-user",
         "f-group", "user", "group", "node",
         "job", "app", "vm", "token", "put", "delete", "true", "running", "1", "0", "-1", "10s", "1h", "30d", "100m",
         "64Mi", "1Gi", "2026-01-01T00:00:00Z",
         "*/5 * * * *", "cumulative", "capacity", "all", "own", "none", "127.0.0.1:9", "http://127.0.0.1:9/",
         "/nonexistent/x", "{}", "[]", "%", "%s%n"]
ODD = ["", " ", "\u0000", "\u202e", "é" * 40, "a" * 254, "b" * 5000, "../../etc", "a/b", "a\nb", "\x7f", "😀", "'; --",
       "${x}", "-", ".", ".."]
NUMBERS = [0, 1, -1, 2, 7, 255, 256, 1000, 65535, 65536, 2**31 - 1, 2**31, 2**53, 2**63 - 1, -2**63, 0.5, -0.0, 1e300]
# The keys that each kind needs to be accepted. Half of the generated bodies have them, so that requests pass the first
# checks.
GOOD = {
    "app": {"command": ["/bin/sleep", "2"], "name": "w{n}", "resources": {"cpu": "10m", "memory": "4Mi"}},
    "job": {"command": ["/bin/true"], "name": "j{n}", "resources": {"cpu": "10m", "memory": "4Mi"}},
    "vm": {"name": "guest-{n}", "image": "/nonexistent/x", "resources": {"cpu": "10m", "memory": "4Mi"},
           "stopped": True},
    "cron": {"id": "c{n}", "schedule": "* * * * *", "job": {"command": ["/bin/true"], "name": "c"}},
    "secret": {"id": "s{n}", "data": {"k": "x"}},
    "node": {"id": "m{n}", "allocatable": {"cpu": "4", "memory": "8Gi", "x{n}": "1"}},
    "volume": {"id": "d{n}"}, "resource": {"name": "r{n}", "kind": "cumulative", "period": "30d"},
    "queue": {"id": "q{n}"},
    "policy": {"id": "p{n}"}, "profile": {"id": "f{n}"},
    "window": {"id": "w{n}", "start": "2026-01-01T00:00:00Z", "end": "2036-01-01T00:00:00Z",
                                                                        "nodes": ["m1"], "maintenance": True},
    "domain": {"id": "o{n}", "nodes": ["m{n}"]}, "user": {"id": "u{n}"}, "group": {"id": "g{n}"},
    "role": {"id": "l{n}", "permissions": {"read": "own"}},
    "token": {"user": "u{n}"}, "optask": {"id": "t{n}", "script": "true", "nodes": ["fuzz-a"]},
    "scale": {"replicas": 2}, "exec": {"command": ["/bin/true"]},
    "signal": {"signal": "TERM"}, "resize": {"rows": 1, "columns": 1},
}
RAW_NUMBERS = ["1e999", "-1e999", "18446744073709551616", "9" * 400, "0x10", "NaN", "1.", "01"]


class Fuzzer:
    """The document of the routes, known objects of the cluster, and the results."""

    def __init__(self, cluster, seed):
        self.cluster, self.seed = cluster, seed
        self.url = urllib.parse.urlsplit(cluster.url)
        self.tokens = {"none": None}
        self.tls = None
        self.own = set(OWN) | set(ROLES.values()) | set(NODES) | {"admin"}
        self.known = collections.defaultdict(list)  # ids by the first word of their path
        self.statuses, self.asked, self.failures = collections.Counter(), collections.Counter(), []
        self.unavailable, self.accepted = collections.Counter(), collections.Counter()
        self.reports = 0
        self.lock = threading.Lock()
        self.ending = threading.Event()  # the daemon was told to stop
        self.done = threading.Event()
        self.document = cluster.ask("GET", "/openapi.json")[1]
        self.schemas = self.document["components"]["schemas"]
        self.routes = [(method.upper(), path, about) for path, methods in self.document["paths"].items()
                       for method, about in methods.items() if method != "parameters"]

    def begin(self):
        """Makes users of each role with tokens of their own, joins a node as its agent, and starts a workload."""
        self.must("POST", "/v1/groups", {"id": "f-group"})
        for user, role in ROLES.items():
            self.must("POST", "/v1/users", {"id": user, "role": role, "group": "f-group"})
            self.tokens[user] = self.must("POST", "/v1/tokens", {"user": user})["token"]
        self.must("POST", "/v1/apps",
                  {"name": "f-app", "command": ["/bin/sleep", "1000"], "replicas": 2, "resources": {"cpu": "10m"}})
        self.own |= {str(t["id"]) for t in self.cluster.ask("GET", "/v1/tokens?limit=1000")[1]["items"]}
        self.first_settings = self.cluster.ask("GET", "/v1/system/settings")[1]

    def must(self, method, path, body):
        status, answer = self.cluster.ask(method, path, body)
        assert status in (200, 201), f"{method} {path}: {status} {answer}"
        return answer

    def become_node(self, agent):
        """Returns the certificate of a joined node, for the agents' port."""
        self.tls = ssl.create_default_context()
        self.tls.check_hostname, self.tls.verify_mode = False, ssl.CERT_NONE
        files = sorted(p for p in agent.state.rglob("*") if p.is_file())
        keys = [p for p in files if b"PRIVATE KEY" in p.read_bytes()]
        certificates = [p for p in files if b"BEGIN CERTIFICATE" in p.read_bytes()]
        for certificate in certificates:
            for key in keys:
                with contextlib.suppress(ssl.SSLError):
                    self.tls.load_cert_chain(certificate, key)
                    return
        raise AssertionError(f"no certificate with its key among {files}")

    def fail(self, words):
        with self.lock:
            if words not in self.failures and len(self.failures) < 20:
                self.failures.append(words)

    def note(self, route, status):
        with self.lock:
            self.asked[route] += 1
            self.statuses[status] += 1
            self.accepted[route] += isinstance(status, int) and status < 300

    def learn(self, path, answer):
        """Records ids for later requests."""
        word = path.split("/")[2].split("?")[0] if path.startswith("/v1/") else ""
        items = answer.get("items") if isinstance(answer, dict) else None
        for item in (items if isinstance(items, list) else [answer])[:50]:
            if isinstance(item, dict) and "call" in item:
                word = "calls"
            if isinstance(item, dict) and isinstance(item.get("id", item.get("call")), (str, int)):
                with self.lock:
                    ids = self.known[word]
                    ids.append(str(item.get("id", item.get("call"))))
                    del ids[:-60]

    def check_answer(self, asked, route, status, text):
        _, about = route
        self.note(asked, status)
        if status >= 500:
            documented = str(status) in about.get("responses", {})
            with self.lock:
                self.unavailable[text[:160]] += 1
            if not documented or b"restart berthd" in text or b"see the log of berthd" in text:
                self.fail(f"{asked}: {status} {text[:300]!r}")


class Sender(threading.Thread):
    """One thread, with its own sequence of draws and its own connections."""

    def __init__(self, fuzzer, number, routes):
        super().__init__(daemon=True)
        self.fuzzer, self.routes = fuzzer, routes
        self.random = random.Random(f"{fuzzer.seed}-{number}")
        self.connections, self.watches, self.sent = {}, [], 0

    # ---- values ----------------------------------------------------------------------------------------------------

    def text(self):
        draw = self.random.random()
        if draw < 0.75:
            return self.random.choice(WORDS)
        return (self.random.choice(ODD) if draw < 0.9 else
                "".join(self.random.choices("abcxyz09-._/ ", k=self.random.randint(1, 30))))

    def value(self, schema, depth=0):
        """Returns a value that the schema allows, in most cases."""
        if depth > 6 or self.random.random() < 0.03:
            return self.wrong()
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            schema = self.fuzzer.schemas[name]
            if name in GOOD and depth == 0 and self.random.random() < 0.5:
                good = json.loads(json.dumps(GOOD[name]).replace("{n}", str(self.random.randrange(400))))
                more = self.value(schema, 1)
                keep = self.random.choice((0, 0, 1, 2))
                return {**good, **dict(list(more.items())[:keep])} if isinstance(more, dict) else good
        if "anyOf" in schema:
            return self.value(self.random.choice(schema["anyOf"]), depth + 1)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            properties = schema.get("properties", {})
            chosen = self.random.sample(sorted(properties), min(len(properties), self.random.choice((1, 2, 3, 5, 8))))
            made = {name: self.property(name, properties[name], depth) for name in chosen}
            more = schema.get("additionalProperties")
            if isinstance(more, dict):
                made.update({self.text(): self.value(more, depth + 1) for _ in range(self.random.randint(0, 4))})
            return made
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.random.randint(0, 4))]
        if kind == "integer" or kind == "number":
            low, high = schema.get("minimum", 0), schema.get("maximum", 100)
            return self.random.choice([low, high, low - 1, high + 1, 1,
                                       3]) if self.random.random() < 0.5 else self.random.choice(NUMBERS)
        if kind == "boolean":
            return self.random.random() < 0.5
        return self.text() if kind == "string" else self.random.choice([self.text(), 1, "1", {}, [self.text()]])

    def property(self, name, schema, depth):
        if name == "command":  # the commands that run are harmless
            return self.random.choice([["/bin/true"], ["/bin/sleep", "2"], ["/bin/echo", self.text().replace("\0", "")],
                                       ["/nonexistent/x"]])
        if name == "replicas":
            return self.random.choice([0, 1, 2, 3, -1, 2**31])
        return self.value(schema, depth + 1)

    def wrong(self):
        return self.random.choice([None, True, [], {}, "", [[[]]], {"a": {"b": {}}}, self.random.choice(NUMBERS),
                                   self.random.choice(ODD)])

    def body(self, method, about):
        """Returns (bytes, content type)."""
        content = about.get("requestBody", {}).get("content", {})
        kind, schema = next(((k, v.get("schema", {})) for k, v in content.items()), ("application/json", {}))
        if not content and self.random.random() < 0.8:
            return None, kind
        if "json" not in kind:
            return self.random.randbytes(self.random.choice((0, 1, 100, 70000))), kind
        special = {"transaction": self.transaction,
                   "report": self.report}.get(schema.get("$ref", "").rsplit("/", 1)[-1])
        made = special() if special else self.value(schema)
        if method == "PUT" and isinstance(made, dict) and self.random.random() < 0.7:  # the path has the id
            made.pop("id", None)
            made.pop("name", None)
        text = json.dumps(made, ensure_ascii=self.random.random() < 0.5).encode("utf-8", "surrogatepass")
        return (self.mutate(text) if self.random.random() < 0.25 else text), kind

    def report(self):
        """Returns a report of an agent, about own and other instances, and devices that exist or not."""
        with self.fuzzer.lock:
            self.fuzzer.reports += 1
            seq = self.fuzzer.reports
        made = self.value({"$ref": "#/components/schemas/report"}, 1)
        made = made if isinstance(made, dict) else {}
        instances = [{**(i if isinstance(i, dict) else {}), "id": self.random.randint(1, 60),
                      "state": self.random.choice(["starting", "running", "ended", "failed", "stopped"])}
                     for _ in range(2) for i in [self.value({"$ref": "#/components/schemas/instance-reported"}, 1)]]
        node = {"usage": {"cpu": "1", self.text(): "1"},
                "probed": {"allocatable": {"cpu": "2", "memory": "1Gi", self.text(): "1"}}}
        if self.random.random() < 0.3:
            return {**made, "seq": seq}
        return {"epoch": 1, "seq": seq, **({"instances": instances} if self.random.random() < 0.7 else {}),
                **({"node": node} if self.random.random() < 0.4 else {})}

    def transaction(self):
        changes = []
        for _ in range(self.random.randint(0, 6)):
            kind = self.random.choice(["app", "job", "vm", "node", "volume", "resource", "queue", "user", "group",
                                       "role", "secret", "cron", "window", "domain", "policy", "profile", self.text()])
            if kind in GOOD and self.random.random() < 0.7:
                good = json.loads(json.dumps(GOOD[kind]).replace("{n}", str(self.random.randrange(400))))
                changes.append({"op": "put", "kind": kind, "object": good,
                                **({"id": good["id"]} if "id" in good else {})})
                continue
            change = {"op": self.random.choice(["put", "put", "put", "delete", self.text()]), "kind": kind,
                      "object": self.value({"$ref": f"#/components/schemas/{kind}"} if kind in self.fuzzer.schemas
                                           else {})}
            if self.random.random() < 0.7:
                change["id"] = self.identity(kind + "s")
            changes.append(change)
        return {"changes": changes, **({"guards": [self.wrong()]} if self.random.random() < 0.1 else {})}

    def mutate(self, text):
        draw = self.random.randrange(9)
        at = self.random.randrange(len(text) + 1)
        if draw == 0:
            return text[:at]
        if draw == 1:
            return text[:at] + self.random.randbytes(self.random.randint(1, 4)) + text[at:]
        if draw == 2:  # the same keys once more
            return text[:-1] + b"," + text[1:] if text[:1] == b"{" and len(text) > 2 else text + text
        if draw == 3:
            depth = self.random.choice((10, 100, 5000, 100000))
            return b'{"a":' * depth + b"1" + b"}" * (depth if self.random.random() < 0.5 else 0)
        if draw == 4:
            return re.sub(rb"\d+", self.random.choice(RAW_NUMBERS).encode(), text, count=1)
        if draw == 5:
            return text.replace(b'"', b'"\xff\xfe', 1)
        if draw == 6:
            return text[:-1] + b',"' + b"k" * 70000 + b'":1}' if text[:1] == b"{" and len(text) > 2 else b"[" * 70000
        if draw == 7:
            return b"\xef\xbb\xbf" + text
        return bytes(self.random.choice((0, 10, 32, 255, byte)) if self.random.random() < 0.1 else byte
                     for byte in text)

    # ---- requests --------------------------------------------------------------------------------------------------

    def identity(self, word):
        """Returns an id, known or made up, but never one that the fuzzer needs."""
        with self.fuzzer.lock:
            known = [i for i in self.fuzzer.known[word] if i not in self.fuzzer.own]
        draw = self.random.random()
        if known and draw < 0.6:
            return self.random.choice(known)
        return self.random.choice(["1", "2", "3", "x1", "web",
                                   f"z{self.random.randrange(400)}"]) if draw < 0.85 else self.text()

    def path(self, method, path, about, agents):
        word = path.split("/")[2] if path.count("/") > 1 else ""
        reading = method == "GET"
        spared = reading or word == "nodes" and not (method in ("DELETE", "PUT") and path.endswith("{id}"))
        mine = {"nodes": NODES, "users": OWN, "apps": ["f-app.f-admin", "f-app.admin"]}.get(word)

        def fill(part):
            if part[0] == "{kind}":
                return self.random.choice(["app", "job", "vm", "node", "queue", "x"])
            if agents and word == "nodes" and part.start() < 12:
                return "fuzz-c" if self.random.random() < 0.8 else self.random.choice(NODES)
            if spared and mine and self.random.random() < 0.5:
                return urllib.parse.quote(self.random.choice(mine), safe="")
            made = self.identity(word)
            return urllib.parse.quote(made.encode("utf-8", "surrogatepass"), safe="") or "x"
        filled = re.sub(r"\{\w+\}", fill, path)
        query = [(p["name"], self.query(p["name"])) for p in about.get("parameters", [])
                 if p["in"] == "query" and self.random.random() < (0.05 if p["name"] in ("watch", "follow") else 0.25)]
        if self.random.random() < 0.05:
            query.append((self.text(), self.text()))
        return filled + ("?" + urllib.parse.urlencode(query, errors="surrogatepass") if query else "")

    def query(self, name):
        if self.random.random() < 0.4:
            return {"watch": "true", "follow": "true", "dry_run": "true",
                    "limit": self.random.choice(("1", "2", "1000", "0", "-1", "99999999999")),
                    "after": self.identity("apps"), "from": "1", "span": "1h", "by": "user",
                    "tail": "1"}.get(name, self.text())
        return str(self.random.choice([self.text(), *NUMBERS]))

    def connection(self, way):
        if way not in self.connections:
            if way == "agents":
                host, port = self.fuzzer.cluster.agents_address.rsplit(":", 1)
                self.connections[way] = http.client.HTTPSConnection(host, int(port), timeout=PATIENCE,
                                                                    context=self.fuzzer.tls)
            else:
                self.connections[way] = http.client.HTTPConnection(self.fuzzer.url.hostname, self.fuzzer.url.port,
                                                                   timeout=PATIENCE)
        return self.connections[way]

    def drop(self, way):
        if connection := self.connections.pop(way, None):
            connection.close()

    def send(self, route):
        method, path, about = route
        who = self.random.choice([*self.fuzzer.tokens, "f-admin", "f-admin"])
        agents = self.fuzzer.tls and ("/nodes/" in path or path == "/v1/join") and self.random.random() < 0.5
        way = "agents" if agents else "users"
        target = self.path(method, path, about, agents)
        body, kind = self.body(method, about) if method in ("POST", "PUT", "PATCH") else (None, "")
        headers = {"Content-Type": kind} if body is not None else {}
        if self.fuzzer.tokens[who] and not agents:
            headers["Authorization"] = f"Bearer {self.fuzzer.tokens[who]}"
        if self.random.random() < 0.05:
            headers[self.random.choice(["If-Match", "Idempotency-Key", "If-None-Match"])] = self.random.choice(
                ["1", "x", "*", "k" * 200])
        asked = f"{method} {path}"
        try:
            connection = self.connection(way)
            connection.request(method, target, body, headers)
            if re.search(r"[?&](watch|follow)=", target) or path.endswith(("/calls", "/calls/{id}")):
                self.watch(way, asked, about)
                return
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.drop(way)
            if isinstance(error, TimeoutError) and not self.fuzzer.ending.is_set():
                self.fuzzer.fail(f"{asked}: no answer after {PATIENCE} s to {target[:200]}")
            self.fuzzer.note(asked, type(error).__name__)
            return
        self.fuzzer.check_answer(asked, (path, about), answer.status, text)
        if answer.status < 300 and text[:1] == b"{":
            with contextlib.suppress(ValueError):
                self.fuzzer.learn(path, json.loads(text))

    def watch(self, way, asked, about):
        """Opens a stream, reads a little of it, and later drops it without closing it properly."""
        connection = self.connections.pop(way)
        connection.sock.settimeout(0.2)
        status = "watch"
        with contextlib.suppress(OSError, http.client.HTTPException):
            answer = connection.getresponse()
            status = answer.status
            self.fuzzer.check_answer(asked, (asked, about), status, b"")
            answer.read1(2000)
        if status == "watch":
            self.fuzzer.note(asked, status)
        self.watches.append(connection)
        while len(self.watches) > WATCHES_MAX // 4:
            self.watches.pop(self.random.randrange(len(self.watches))).close()

    def repair(self):
        """Puts back settings of the fuzzer's own requests that would end the test."""
        with contextlib.suppress(OSError):
            self.fuzzer.cluster.ask("PUT", "/v1/system/settings", {})

    def run(self):
        order = list(self.routes)
        self.random.shuffle(order)
        queue = order * EACH_MIN
        while not self.fuzzer.done.is_set():
            route = queue.pop() if queue else self.random.choice(self.fuzzer.routes)
            # some kinds get many objects, to grow tables
            burst = 20 if route[0] in ("POST", "PUT") and self.random.random() < 0.05 else 1
            for _ in range(burst):
                self.send(route)
            self.sent += 1
            if self.sent % REPAIR_EVERY == 0 and not self.fuzzer.ending.is_set():
                self.repair()
        for connection in [*self.connections.values(), *self.watches]:
            connection.close()


# ---- the test -------------------------------------------------------------------------------------------------------


def sanitized():
    with open(BUILD / "meson-info/intro-buildoptions.json", encoding="utf-8") as f:
        return any(o["name"] == "b_sanitize" and o["value"] != "none" for o in json.load(f))


def findings(process):
    return [line for line in process.log if SANITIZER.search(line) or "event=state.broken" in line]


def run(fuzzer, senders, seconds):
    """Waits until the time is over and every route was requested often enough; the senders continue."""
    end, cluster = time.monotonic() + seconds, fuzzer.cluster
    late = time.monotonic() + seconds + 2 * PATIENCE
    for sender in senders:
        sender.start()
    wanted = {f"{method} {path}" for method, path, _ in fuzzer.routes}
    while time.monotonic() < late and not fuzzer.failures and cluster.daemon.process.poll() is None:
        if time.monotonic() > end and all(fuzzer.asked[route] >= EACH_MIN for route in wanted):
            break
        time.sleep(0.2)
    return sorted(route for route in wanted if fuzzer.asked[route] < EACH_MIN)


def end_under_load(cluster, fuzzer):
    """Stops the daemon by SIGTERM during requests; returns the seconds until its end and its status."""
    fuzzer.ending.set()
    begin = time.monotonic()
    cluster.daemon.kill(signal.SIGTERM)
    status = cluster.daemon.process.wait(PATIENCE)
    return time.monotonic() - begin, status


class Cases:
    def __init__(self):
        self.number = self.failed = 0

    def case(self, name, ok, *words):
        self.number += 1
        self.failed += not ok
        print(f"{'ok' if ok else 'not ok'} {self.number} - {name}", flush=True)
        for line in words if not ok else []:
            print(f"# {line}", flush=True)


def fuzz(options):
    cases = Cases()
    print(f"# seed {options.seed}, {options.seconds} s", flush=True)
    with Cluster(prefix=shlex.split(os.environ.get("BERTH_UNDER", ""))) as cluster:
        fuzzer = Fuzzer(cluster, options.seed)
        if not options.without_agents:
            cluster.node("fuzz-a")
            cluster.node("fuzz-b")
            fuzzer.become_node(cluster.agent("fuzz-c").join())
        fuzzer.begin()
        routes = fuzzer.routes
        senders = [Sender(fuzzer, i, routes[i::options.threads]) for i in range(options.threads)]
        missed = run(fuzzer, senders, options.seconds)
        told = " ".join(f"{status}:{count}" for status, count in sorted(fuzzer.statuses.items(), key=str))
        print(f"# {sum(fuzzer.asked.values())} requests to {len(fuzzer.asked)} routes: {told}", flush=True)
        never = sorted(route for route in fuzzer.asked if not fuzzer.accepted[route])
        print(f"# {len(fuzzer.asked) - len(never)} routes accepted some request; never: {', '.join(never)}", flush=True)
        for text, count in fuzzer.unavailable.most_common(5):
            print(f"# {count} times {text.decode(errors='replace')}", flush=True)
        cases.case("every answer is documented", not fuzzer.failures, f"seed {options.seed}", *fuzzer.failures)
        alive = cluster.daemon.process.poll() is None
        cases.case("the daemon runs", alive, f"seed {options.seed}", f"status {cluster.daemon.process.returncode}",
                   *cluster.daemon.log[-60:])
        if alive:
            cases.case("every route was asked", not missed, *missed)
            status, answer = cluster.ask("GET", "/readyz")
            cases.case("the daemon is ready", status == 200, f"{status} {answer}")
            seconds, status = end_under_load(cluster, fuzzer)
            bound = END_SECONDS * max(1, PATIENCE / 60)
            cases.case("SIGTERM under load ends it in time with status 0", status == 0 and seconds <= bound,
                       f"status {status} after {seconds:.1f} s", *cluster.daemon.log[-40:])
            print(f"# ended {seconds:.1f} s after SIGTERM", flush=True)
        fuzzer.done.set()
        for sender in senders:
            sender.join(PATIENCE)
        for name, process in [("berthd", cluster.daemon)] + [(a.name, a.process) for a in cluster.agents.values()
                                                             if a.process]:
            found = findings(process)
            cases.case(f"{name} reports no finding", not found, f"seed {options.seed}", *found[:5], *process.log[-60:])
        for agent in cluster.agents.values():
            if agent.process:
                cases.case(f"agent {agent.name} runs", agent.process.process.poll() is None, *agent.process.log[-40:])
        try:
            cluster.start()
            status, answer = cluster.ask("GET", "/v1/whoami")
            cases.case("it starts again with what it stored", status == 200, f"{status} {answer}")
        except AssertionError as error:
            cases.case("it starts again with what it stored", False, f"seed {options.seed}", str(error))
    print(f"1..{cases.number}")
    return cases.failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60 if sanitized() else 10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--without-agents", action="store_true")
    options = parser.parse_args()
    skip_unless(BERTHD, AGENT, SHIM)
    if not options.without_agents:
        skip_unless_root()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(1 if fuzz(options) else 0)


if __name__ == "__main__":
    main()
