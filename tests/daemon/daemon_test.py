"""Cases of daemon_test.sh: start a berthd, send HTTP requests to it, and stop it. Standard library only; prints TAP."""
import base64
import contextlib
import hashlib
import http.client
import json
import os
import queue
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BERTHD = sys.argv[1]
# Seconds until an expected event counts as missing; no speed is tested here.
PATIENCE = int(os.environ.get("BERTH_PATIENCE", "60"))
JOB = {"name": "k", "command": ["/bin/true"], "hold": True, "resources": {"cpu": "1", "memory": "16Mi"}}
CASES = []


def case(function):
    CASES.append(function)
    return function


class Daemon:
    """A running berthd. Its log is kept for failures."""

    def __init__(self, data, *options, listen="127.0.0.1:0", init=True, env=None):
        self.log = []
        self.out = queue.Queue()
        words = [BERTHD, "--data", data, "--listen", listen, *(["--init"] if init else []), *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **(env or {})))
        self.readers = [threading.Thread(target=self.read, args=(self.process.stdout, self.out.put)),
                        threading.Thread(target=self.read, args=(self.process.stderr, self.log.append))]
        for reader in self.readers:
            reader.start()
        self.url = None

    @staticmethod
    def read(pipe, take):
        for line in pipe:
            take(line.rstrip("\n"))
        take(None)

    def ready(self):
        line = self.out.get(timeout=PATIENCE)
        assert line and re.fullmatch(r"ready https?://\S+:[1-9]\d*", line), f"{line!r}; the log: {self.log}"
        self.url = line.split()[1]
        self.tls = self.url.startswith("https")
        host, self.port = self.url.split("//")[1].rsplit(":", 1)
        self.host, self.port = host.strip("[]"), int(self.port)
        return self

    def connect(self, timeout=PATIENCE):
        if self.tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method, path, body=None, token=None, headers=None, raw=None):
        """Returns (status, decoded body, headers)."""
        sent = dict(headers or {})
        if token:
            sent["Authorization"] = "Bearer " + token
        connection = self.connect()
        with contextlib.closing(connection):
            data = raw if raw is not None else json.dumps(body) if body is not None else None
            connection.request(method, path, data, sent)
            answer = connection.getresponse()
            text = answer.read()
            is_json = answer.getheader("Content-Type", "").startswith("application/json")
            return answer.status, json.loads(text) if is_json and text else text, answer.headers

    def logged(self, pattern):
        """Waits for a line of the log, which may arrive later than standard output."""
        until = time.monotonic() + PATIENCE
        while True:
            for line in list(self.log):
                if line and (found := re.search(pattern, line)):
                    return found
            assert time.monotonic() < until, f"no line like {pattern}: {self.log}"
            time.sleep(0.01)

    def end(self, signo=signal.SIGTERM):
        """Waits for the end and returns the exit code. None: send no signal, since it is stopping already."""
        if signo and self.process.poll() is None:
            self.process.send_signal(signo)
        code = self.process.wait(PATIENCE)
        for reader in self.readers:
            reader.join(PATIENCE)
        return code

    def stop_at_once(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join(PATIENCE)


class World:
    """A folder for the case, and the daemons that it starts."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="berth-daemon-")
        self.data = os.path.join(self.root, "data")
        self.daemons = []

    def start(self, *options, **more):
        self.daemons.append(Daemon(self.data, *options, **more))
        return self.daemons[-1]

    def token(self, path=None):
        with open(path or os.path.join(self.data, "admin.token"), encoding="ascii") as f:
            return f.read().strip()

    def done(self):
        for daemon in self.daemons:
            daemon.stop_at_once()
        shutil.rmtree(self.root, ignore_errors=True)


def fails(world, *options, init=False, listen="127.0.0.1:0", code=1, data=None):
    """Runs a start that must fail; returns the last line of its standard error."""
    words = [BERTHD, "--data", data or world.data, "--listen", listen, *(["--init"] if init else []), *options]
    run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE,
                         check=False)
    assert run.returncode == code, f"exit code {run.returncode}, not {code}: {run.stderr}"
    assert run.stdout == "", run.stdout
    return run.stderr.splitlines()[-1]


def equal(found, want):
    assert found == want, f"found {found!r}, not {want!r}"


def error(answer, status, code):
    equal(answer[0], status)
    equal(answer[1]["error"]["code"], code)
    assert answer[1]["error"]["message"]


def raw_talk(daemon, text, expect_close=True):
    """Sends the bytes unchanged. Returns everything received until the peer closes, or the first answer."""
    with socket.create_connection((daemon.host, daemon.port), timeout=PATIENCE) as s:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            s.sendall(text)
        got = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := s.recv(65536):
                got += piece
                if not expect_close and b"\r\n\r\n" in got:
                    break
        return got


# ---- the command line ------------------------------------------------------------------------------------------------


@case
def help_and_version(_):
    for option, word in ("--help", "usage: berthd --data DIR"), ("--version", "berthd "):
        run = subprocess.run([BERTHD, option], capture_output=True, text=True, timeout=PATIENCE, check=True)
        assert word in run.stdout and run.stderr == "", run


@case
def mistakes_end_with_2(world):
    assert "--data DIR is required" in subprocess.run([BERTHD], capture_output=True, text=True, check=False).stderr
    assert "unknown option --no" in fails(world, "--no", code=2)
    for address in "0.0.0.0:0", "[::]:0", "10.1.2.3:0":
        said = fails(world, listen=address, init=True, code=2)
        assert "--tls" in said and "127.0.0.1" in said, said
    assert not os.path.exists(world.data)


# ---- first start and restarts ----------------------------------------------------------------------------------------


@case
def without_init_there_must_be_a_cluster(world):
    assert "--init" in fails(world)
    os.mkdir(world.data)
    assert "--init" in fails(world)
    equal(os.listdir(world.data), [])


@case
def init_writes_the_token_once(world):
    path = os.path.join(world.root, "token")
    daemon = world.start("--token-file", path).ready()
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600)
    equal(stat.S_IMODE(os.stat(world.data).st_mode), 0o700)
    token = world.token(path)
    equal(daemon.ask("GET", "/v1/whoami", token=token)[0], 200)
    equal(daemon.end(), 0)
    assert not any(token in line for line in daemon.log if line)

    before = os.stat(path).st_mtime_ns
    daemon = world.start("--token-file", path).ready()
    equal((world.token(path), os.stat(path).st_mtime_ns), (token, before))
    equal(daemon.ask("GET", "/v1/whoami", token=token)[0], 200)
    equal(daemon.end(), 0)
    os.unlink(path)
    daemon = world.start("--token-file", path).ready()
    assert not os.path.exists(path)
    daemon.logged("event=token.absent")
    equal(daemon.end(), 0)


@case
def an_unusable_token_file_is_reported(world):
    said = fails(world, "--token-file", os.path.join(world.root, "no/such/file"), init=True)
    assert "no/such/file" in said, said
    assert not os.path.exists(os.path.join(world.data, "store.db"))
    world.start().ready()  # the next start is still a first start


@case
def a_start_killed_at_any_moment_can_be_repeated(world):
    for delay in 0, 0.002, 0.005, 0.01, 0.02, 0.05:
        daemon = world.start()
        time.sleep(delay)
        daemon.stop_at_once()
    daemon = world.start().ready()
    equal(daemon.ask("GET", "/v1/whoami", token=world.token())[0], 200)


@case
def work_survives_restarts(world):
    daemon = world.start().ready()
    token = world.token()
    status, answer, headers = daemon.ask("POST", "/v1/jobs", JOB, token)
    equal(status, 201)
    assert answer["id"] and answer["revision"] == int(headers["Berth-Revision"]), answer
    job = f"/v1/jobs/{answer['id']}"
    equal(daemon.end(), 0)

    daemon = world.start(init=False).ready()
    status, kept, _ = daemon.ask("GET", job, token=token)
    equal((status, kept["name"], kept["command"], kept["status"]["state"]), (200, "k", ["/bin/true"], "held"))
    answers = [daemon.ask("POST", "/v1/jobs", JOB, token)[1]["id"] for _ in range(5)]
    daemon.stop_at_once()  # kill -9: acknowledged jobs exist, and new ids are greater

    daemon = world.start().ready()
    equal([daemon.ask("GET", f"/v1/jobs/{i}", token=token)[0] for i in answers], [200] * 5)
    later = daemon.ask("POST", "/v1/jobs", JOB, token)[1]["id"]
    assert int(later) > int(answers[-1]), (answers, later)
    equal(daemon.end(signal.SIGINT), 0)


@case
def resources_up_to_the_limit_survive_kill_and_restart(world):
    """256 names, of which cpu, memory and pods are built in. One more is refused and changes nothing."""
    daemon = world.start().ready()
    token = world.token()
    for i in range(253):
        status, answer, _ = daemon.ask("PUT", f"/v1/resources/r{i}", {"kind": "cumulative", "period": f"{i + 1}d"},
                                       token)
        equal((status, i), (201, i))
    status, answer, _ = daemon.ask("PUT", "/v1/resources/r253", {"kind": "cumulative", "period": "30d"}, token)
    equal(status, 400)
    assert "256 distinct resources" in answer["error"]["message"], answer
    status, answer, _ = daemon.ask("POST", "/v1/jobs", {**JOB, "requests": {"r253": "1"}}, token)
    equal(status, 400)
    daemon.stop_at_once()
    for _ in range(2):
        daemon = world.start(init=False).ready()
        status, answer, _ = daemon.ask("GET", "/v1/resources?limit=1000", token=token)
        equal(status, 200)
        equal({r["name"]: (r["kind"], r["period"]) for r in answer["items"]},
              {f"r{i}": ("cumulative", f"{i + 1}d") for i in range(253)})
        equal(daemon.ask("PUT", "/v1/resources/r7", {"kind": "cumulative", "period": "8d"}, token)[0], 200)
        equal(daemon.end(), 0)


@case
def a_transaction_beyond_the_limit_of_resources_is_refused_whole(world):
    """Each of these jobs alone would fit. A stored job that does not fit would keep berthd from starting."""
    daemon = world.start().ready()
    token = world.token()
    jobs = [{**JOB, "resources": {f"x{j}-{i}": "1" for i in range(60)}} for j in range(6)]
    status, answer, _ = daemon.ask("POST", "/v1/txn",
                                   {"changes": [{"op": "put", "kind": "job", "object": job} for job in jobs]}, token)
    equal(status, 400)
    assert "256 distinct resources" in answer["error"]["message"], answer
    equal(daemon.ask("GET", "/v1/jobs", token=token)[1]["items"], [])
    equal(daemon.ask("GET", "/readyz")[0], 200)

    def submit(i, statuses):  # many submissions at once
        statuses.append(daemon.ask("POST", "/v1/jobs", {**JOB, "resources": {f"y{i}-{k}": "1" for k in range(10)}},
                                   token)[0])
    statuses = []
    threads = [threading.Thread(target=submit, args=(i, statuses)) for i in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal((set(statuses) <= {201, 400}, len(statuses)), (True, 30))
    equal(daemon.ask("GET", "/readyz")[0], 200)
    daemon.stop_at_once()
    daemon = world.start(init=False).ready()
    equal(len(daemon.ask("GET", "/v1/jobs?limit=100", token=token)[1]["items"]), statuses.count(201))


@case
def a_folder_has_one_daemon(world):
    daemon = world.start().ready()
    assert str(daemon.process.pid) in fails(world)
    equal(daemon.ask("GET", "/healthz")[0], 200)


@case
def a_foreign_folder_is_refused(world):
    os.mkdir(world.data)
    path = os.path.join(world.data, "store.db")
    for content in b"", b"no database at all, only text\n" * 100:
        with open(path, "wb") as f:
            f.write(content)
        for init in False, True:
            said = fails(world, init=init)
            assert "store.db" in said or world.data in said, said
        with open(path, "rb") as f:
            equal(f.read(), content)


@case
def a_port_in_use_is_reported(world):
    daemon = world.start().ready()
    other = os.path.join(world.root, "other")
    said = fails(world, init=True, data=other, listen=f"127.0.0.1:{daemon.port}")
    assert str(daemon.port) in said, said


# ---- requests --------------------------------------------------------------------------------------------------------


@case
def only_health_and_version_need_no_token(world):
    daemon = world.start().ready()
    for path in "/healthz", "/readyz", "/version", "/openapi.json":
        equal(daemon.ask("GET", path)[0], 200)
    token = world.token()
    wrong = [None, "", "x", token[:-1] + ("A" if token[-1] != "A" else "B"), token + "x",
             "berth_" + "a" * 12 + "_" + "b" * 43]
    for path in "/v1/jobs", "/v1/nodes", "/metrics", "/v1/rbac", "/nonsense":
        for bad in wrong:
            answer = daemon.ask("GET", path, headers={"Authorization": f"Bearer {bad}"} if bad is not None else {})
            error(answer, 401, "unauthenticated")
            equal(answer[2]["WWW-Authenticate"], "Bearer")
    error(daemon.ask("GET", "/v1/jobs", headers={"Authorization": "Basic " + token}), 401, "unauthenticated")
    equal(daemon.ask("GET", "/v1/jobs", headers={"Authorization": "bearer  " + token})[0], 200)


@case
def paths_and_methods(world):
    daemon = world.start().ready()
    token = world.token()
    error(daemon.ask("GET", "/v1/nothing", token=token), 404, "not-found")
    error(daemon.ask("DELETE", "/v1/jobs", token=token), 405, "method")
    error(daemon.ask("GET", "/v1/jobs/17", token=token), 404, "not-found")
    for path in "/v1/jobs/../nodes", "/v1/jobs/%2e%2e", "/v1//jobs", "/v1/jobs/", "/v1/nodes/%00", "/v1/nodes/a%0ab":
        assert daemon.ask("GET", path, token=token)[0] in (400, 404), path
    status, text, headers = daemon.ask("HEAD", "/healthz")
    equal((status, text), (200, b""))
    assert int(headers["Content-Length"]) > 0


@case
def derived_documents_have_an_etag(world):
    daemon = world.start().ready()
    token = world.token()
    equal(daemon.ask("POST", "/v1/nodes", {"id": "n1", "allocatable": {"cpu": 4, "memory": "8Gi"}}, token)[0], 201)
    status, config, headers = daemon.ask("GET", "/v1/nodes/n1/config", token=token)
    equal((status, config), (200, {"node": "n1", "instances": []}))
    equal(daemon.ask("GET", "/v1/nodes/n1/config", token=token)[2]["ETag"], headers["ETag"])
    assert re.fullmatch(r'"[0-9a-f]{32}"', headers["ETag"]), headers["ETag"]


@case
def metrics_and_backup(world):
    daemon = world.start().ready()
    token = world.token()
    status, text, headers = daemon.ask("GET", "/metrics", token=token)
    equal(status, 200)
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4"), headers["Content-Type"]
    assert b'\nberth_requests_total{class="2xx"} ' in text
    daemon.ask("POST", "/v1/jobs", JOB, token)
    status, text, headers = daemon.ask("GET", "/v1/backup", token=token)
    equal(status, 200)
    equal(len(text), int(headers["Content-Length"]))
    assert len(text) > 1000
    left = [name for name in os.listdir(world.data) if "backup" in name]
    equal(left, [])


@case
def a_forecast_request_that_fails_late_is_answered_once(world):
    """If-Match is checked after the forecast is made, and a request that waits for a forecast is answered only once."""
    daemon = world.start().ready()
    token = world.token()
    for condition in ("5", "x", "0") * 5:
        status = daemon.ask("POST", "/v1/jobs?dry_run=true&forecast=true", JOB, token,
                            headers={"If-Match": condition})[0]
        assert status in (200, 400, 412), (condition, status)
    equal(daemon.ask("GET", "/healthz")[0], 200)


# ---- streams ---------------------------------------------------------------------------------------------------------


class Stream:
    def __init__(self, daemon, path, token, accept=None):
        headers = {"Authorization": "Bearer " + token, **({"Accept": accept} if accept else {})}
        self.connection = daemon.connect()
        self.connection.request("GET", path, headers=headers)
        self.answer = self.connection.getresponse()
        self.status = self.answer.status

    def line(self):
        while (line := self.answer.readline()) == b"\n":
            pass
        return line

    def next(self):
        return json.loads(self.line())


@case
def streams_deliver_changes_and_end_orderly(world):
    daemon = world.start().ready()
    token = world.token()
    start = daemon.ask("GET", "/v1/jobs", token=token)[1]["revision"]
    live = Stream(daemon, f"/v1/jobs?watch={start}", token)
    equal((live.status, live.answer.getheader("Content-Type")), (200, "application/x-ndjson"))
    events = Stream(daemon, f"/v1/jobs?watch={start}", token, "text/event-stream")
    ids = [daemon.ask("POST", "/v1/jobs", JOB, token)[1]["id"] for _ in range(3)]
    equal([live.next()["object"]["id"] for _ in ids], ids)
    late = Stream(daemon, f"/v1/jobs?watch={start}", token)
    equal([late.next()["object"]["id"] for _ in ids], ids)
    equal(daemon.ask("DELETE", f"/v1/jobs/{ids[0]}", token=token)[0] // 100, 2)
    gone = live.next()
    equal((gone["type"], str(gone["id"])), ("gone", str(ids[0])))
    assert events.line().startswith(b"id: ")
    assert events.line().startswith(b"data: {")

    daemon.process.send_signal(signal.SIGTERM)
    equal(live.next(), {"type": "end", "code": "stopping"})
    equal(live.line(), b"")  # closed
    while (line := events.line()) and b"stopping" not in line:
        pass
    assert line, "the stream of events ended without a word"
    equal(daemon.end(None), 0)


@case
def a_revoked_token_closes_its_streams(world):
    daemon = world.start().ready()
    admin = world.token()
    equal(daemon.ask("POST", "/v1/users", {"id": "alice", "role": "user"}, admin)[0], 201)
    status, made, _ = daemon.ask("POST", "/v1/tokens", {"user": "alice"}, admin)
    equal(status, 201)
    alice = made["token"]
    start = daemon.ask("GET", "/v1/jobs", token=alice)[1]["revision"]
    stream = Stream(daemon, f"/v1/jobs?watch={start}", alice)
    foreign = daemon.ask("POST", "/v1/jobs", JOB, admin)[1]["id"]
    own = daemon.ask("POST", "/v1/jobs", JOB, alice)[1]["id"]
    equal(stream.next()["object"]["id"], own)
    error(daemon.ask("GET", f"/v1/jobs/{foreign}", token=alice), 404, "not-found")
    equal(daemon.ask("DELETE", f"/v1/tokens/{made['id']}", token=admin)[0] // 100, 2)
    equal(stream.next(), {"type": "end", "code": "unauthenticated"})
    error(daemon.ask("GET", "/v1/jobs", token=alice), 401, "unauthenticated")


@case
def a_watch_of_the_past_or_future_is_refused(world):
    daemon = world.start().ready()
    token = world.token()
    for bad in "99999999", "-1", "x", "1e3", "18446744073709551616":
        error(daemon.ask("GET", "/v1/jobs?watch=" + bad, token=token), 400, "invalid")


@case
def disconnected_watchers_are_removed(world):
    daemon = world.start().ready()
    token = world.token()
    streams = [Stream(daemon, "/v1/jobs?watch=1", token) for _ in range(20)]
    for stream in streams:
        stream.answer.close()
        stream.connection.close()
    until = time.monotonic() + PATIENCE
    while b"\nberth_watchers 0\n" not in daemon.ask("GET", "/metrics", token=token)[1]:
        assert time.monotonic() < until, "watchers are left"
        time.sleep(0.05)


# ---- TLS -------------------------------------------------------------------------------------------------------------


def public_key_pin(certificate):
    """Returns the pin of the certificate's public key, computed by openssl; None without openssl."""
    if not shutil.which("openssl"):
        return None
    key = subprocess.run("openssl x509 -pubkey -noout | openssl pkey -pubin -outform der", shell=True, check=True,
                         input=certificate.encode(), capture_output=True).stdout
    return "sha256//" + base64.b64encode(hashlib.sha256(key).digest()).decode()


@case
def tls_makes_a_certificate_and_logs_its_pin(world):
    pins = []
    for _ in range(2):  # a restart keeps the certificate
        daemon = world.start("--tls", listen="0.0.0.0:0").ready()
        assert daemon.url.startswith("https://0.0.0.0:"), daemon.url
        daemon.host = "127.0.0.1"
        pins.append(daemon.logged(r"pin=\"?(sha256//[^\s\"]+)")[1])
        equal(daemon.ask("GET", "/v1/whoami", token=world.token())[0], 200)
        certificate = ssl.get_server_certificate((daemon.host, daemon.port))
        assert public_key_pin(certificate) in (None, pins[-1])
        stream = Stream(daemon, "/v1/users?watch=0", world.token())
        equal(stream.next()["object"]["id"], "admin")
        assert b"HTTP/1.1 200" not in raw_talk(daemon, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        equal(daemon.end(), 0)
    equal(pins[0], pins[1])


@case
def ipv6_loopback(world):
    try:
        socket.socket(socket.AF_INET6).bind(("::1", 0))
    except OSError:
        print("# there is no IPv6 here")
        return
    daemon = world.start(listen="[::1]:0").ready()
    assert daemon.url.startswith("http://[::1]:"), daemon.url
    equal(daemon.ask("GET", "/healthz")[0], 200)


# ---- hostile input ---------------------------------------------------------------------------------------------------


@case
def invalid_json_bodies_are_refused(world):
    daemon = world.start().ready()
    token = world.token()
    bodies = [
        b"{", b"[]", b"null", b"17", b'"x"', b"{} {}", b"{}x", b"name: yaml",
        b'{"name": "a", "name": "b", "command": ["/bin/true"]}',
        b'{"name": "\xff\xfe"}', b'{"name": "\xed\xa0\x80"}', b'{"name": "\xc0\xaf"}',
        b'{"name": "a\\u0000b"}', b'{"name": "a\x00b"}', b"\x00", b'{"name": "a\nb"}', b'{"\\u0000": 1}',
        b'{"name": "\\ud800"}', b'{"priority": 1e999}', b'{"priority": 99999999999999999999}', b'{"priority": 1.5}',
        b'{"replicas": -1}', b'{"replicas": 4294967296}', b'{"resources": {"cpu": "1e400"}}',
        b'{"resources": {"cpu": -1}}', b'{"resources": {"memory": "9999999999999999Pi"}}', b'{"priority": NaN}',
        b'{"name": ' + b"[" * 100000 + b"]" * 100000 + b"}", b'{"a":' * 20000 + b"1" + b"}" * 20000,
        b'{"unknown": 1}', b'{"command": "rm -rf /"}', b'{"command": [["a"]]}', b'{"env": {"A=B": "x"}}',
    ]
    before = daemon.ask("GET", "/v1/jobs", token=token)[1]
    for body in bodies:
        answer = daemon.ask("POST", "/v1/jobs", raw=body, token=token)
        assert answer[0] == 400, (body[:60], answer)
        error(answer, 400, "invalid")
    after = daemon.ask("GET", "/v1/jobs", token=token)[1]
    equal((after["items"], after["revision"]), (before["items"], before["revision"]))


@case
def odd_but_legal_values_are_kept_byte_for_byte(world):
    daemon = world.start().ready()
    token = world.token()
    command = ["/bin/echo", "", " ", "$(id)", "`id`", "; rm -rf /", "\u202e", "\U0001f600", "a\tb\nc\u0001\u007f",
               "'\"\\"]
    job = dict(JOB, command=command, env={"X": "a=b;c\n"})
    made = daemon.ask("POST", "/v1/jobs", job, token)
    equal(made[0], 201)
    kept = daemon.ask("GET", f"/v1/jobs/{made[1]['id']}", token=token)[1]
    equal((kept["command"], kept["env"]), (job["command"], job["env"]))


@case
def a_body_too_large_is_refused_before_it_is_read(world):
    daemon = world.start().ready()
    token = world.token()
    head = f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    for size in 100 << 20, 10**18, 10**30:
        got = raw_talk(daemon, (head + f"Content-Length: {size}\r\n\r\n{{").encode(), expect_close=False)
        assert re.match(rb"HTTP/1.1 (413|400) ", got), got[:200]
    # A body without a length is refused.
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    got = raw_talk(daemon, (head + "Transfer-Encoding: chunked\r\n\r\n").encode() + chunk * 200)
    assert b"411" in got.split(b"\r\n")[0] or got == b"", got[:200]
    # The body of an unauthenticated request is never read.
    got = raw_talk(daemon, b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n{",
                   expect_close=False)
    assert got.startswith(b"HTTP/1.1 401 "), got[:200]
    equal(daemon.ask("GET", "/healthz")[0], 200)


@case
def headers_are_bounded_and_checked(world):
    daemon = world.start().ready()
    token = world.token()
    head = f"Host: x\r\nAuthorization: Bearer {token}\r\n"
    rows = [
        (f"GET /v1/jobs HTTP/1.1\r\n{head}X: {'a' * 100000}\r\n\r\n", b"431"),
        (f"GET /{'a' * 100000} HTTP/1.1\r\n{head}\r\n", b"4"),
        (f"GET /v1/jobs HTTP/1.1\r\n{head}" + "A: b\r\n" * 5000 + "\r\n", b"431"),
        (f"POST /v1/jobs HTTP/1.1\r\n{head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}", b"400"),
        (f"POST /v1/jobs HTTP/1.1\r\n{head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{{}}", b"400"),
        (f"GET /v1/jobs%00 HTTP/1.1\r\n{head}\r\n", b"400"),
        ("\x00\x01\x02\r\n\r\n", b""),
    ]
    for text, want in rows:
        got = raw_talk(daemon, text.encode(), expect_close=False)
        status = got.split(b" ")[1] if got else b""
        assert status.startswith(want) or got == b"", (text[:60], got[:200])
    for key in "x" * 129, "\u00e9".encode("latin-1").decode("latin-1"), " ":
        answer = daemon.ask("POST", "/v1/jobs", JOB, token, {"Idempotency-Key": key})
        assert answer[0] == 400 or (key == " " and answer[0] == 201), (key, answer)
    error(daemon.ask("PATCH", "/v1/users/admin", {"display": "A"}, token, {"If-Match": "x"}), 400, "invalid")
    error(daemon.ask("PATCH", "/v1/users/admin", {"display": "A"}, token, {"If-Match": "999"}), 412, "changed")


@case
def requests_with_a_key_happen_once(world):
    daemon = world.start().ready()
    token = world.token()
    key = {"Idempotency-Key": "one"}
    first = daemon.ask("POST", "/v1/jobs", JOB, token, key)
    again = daemon.ask("POST", "/v1/jobs", JOB, token, key)
    equal((again[0], again[1]), (first[0], first[1]))
    error(daemon.ask("POST", "/v1/jobs", dict(JOB, name="other"), token, key), 409, "conflict")
    daemon.stop_at_once()
    daemon = world.start().ready()
    equal(daemon.ask("POST", "/v1/jobs", JOB, token, key)[1], first[1])
    equal(len(daemon.ask("GET", "/v1/jobs", token=token)[1]["items"]), 1)


@case
def idle_and_slow_clients_do_not_delay_others(world):
    daemon = world.start().ready()
    token = world.token()
    with contextlib.ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection((daemon.host, daemon.port), timeout=PATIENCE))
                for _ in range(500)]
        slow = [stack.enter_context(socket.create_connection((daemon.host, daemon.port), timeout=PATIENCE))
                for _ in range(50)]
        for s in slow:
            s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nX-")
        for _ in range(20):
            equal(daemon.ask("POST", "/v1/jobs", JOB, token)[0], 201)
        got = slow[0].recv(65536)  # the time limit for a header ends
        assert got == b"" or got.startswith(b"HTTP/1.1 408 "), got
        del idle


def handshake(port, version):
    """Returns the negotiated version for a client that supports only this version, or None."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as s, context.wrap_socket(s) as tls:
            return tls.version()
    except (ssl.SSLError, ConnectionError):
        return None


@case
def agents_speak_tls_1_3_only(world):
    daemon = world.start("--tls", "--agents", "127.0.0.1:0").ready()
    agents = int(daemon.logged(r"agents\.ready .*url=\S*:(\d+)").group(1))
    equal(handshake(agents, ssl.TLSVersion.TLSv1_3), "TLSv1.3")
    equal(handshake(agents, ssl.TLSVersion.TLSv1_2), None)
    equal(handshake(daemon.port, ssl.TLSVersion.TLSv1_2), "TLSv1.2")  # the users' port takes TLS 1.2, too
    if shutil.which("openssl"):
        for option, agreed in ("-tls1_2", False), ("-tls1_3", True):
            run = subprocess.run(["openssl", "s_client", option, "-connect", f"127.0.0.1:{agents}"], input=b"",
                                 capture_output=True, timeout=PATIENCE, check=False)
            equal((option, run.returncode == 0), (option, agreed))


@case
def too_many_requests_are_refused(world):
    daemon = world.start("--requests-per-second", "2").ready()
    token = world.token()
    answers = [daemon.ask("GET", "/v1/whoami", token=token) for _ in range(40)]
    refused = [a for a in answers if a[0] == 429]
    assert refused and answers[0][0] == 200, [a[0] for a in answers]
    error(refused[0], 429, "rate")
    assert int(refused[0][2]["Retry-After"]) >= 1


@case
def connections_are_bounded(world):
    daemon = world.start("--max-connections", "10").ready()
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(socket.create_connection((daemon.host, daemon.port), timeout=PATIENCE))
    until = time.monotonic() + PATIENCE
    while True:  # once berthd has closed the other connections
        try:
            if daemon.ask("GET", "/healthz")[0] == 200:
                break
        except (OSError, http.client.HTTPException):
            pass
        assert time.monotonic() < until
        time.sleep(0.05)


# ---- shutdown --------------------------------------------------------------------------------------------------------


@case
def systemd_is_notified(world):
    path = os.path.join(world.root, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(PATIENCE)
        daemon = world.start(env={"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "200000"})
        heard = [s.recv(100)]
        daemon.ready()
        while heard.count(b"WATCHDOG=1") < 3:
            heard.append(s.recv(100))
        equal(heard[0], b"READY=1")
        daemon.process.send_signal(signal.SIGTERM)
        while heard[-1] != b"STOPPING=1":
            heard.append(s.recv(100))
        equal(daemon.end(None), 0)


@case
def a_second_signal_ends_berthd_at_once(world):
    daemon = world.start().ready()
    token = world.token()
    with socket.create_connection((daemon.host, daemon.port), timeout=PATIENCE) as s:
        s.sendall(f"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
                  "Content-Length: 99\r\n\r\n".encode())
        daemon.ask("GET", "/healthz")  # berthd has read the bytes sent before
        daemon.process.send_signal(signal.SIGTERM)
        daemon.logged("event=daemon.stopping")
        assert daemon.process.poll() is None  # berthd waits for the rest of the request
        equal(daemon.end(), 1)
    daemon.logged("event=daemon.forced")
    equal(world.start().ready().end(), 0)


@case
def sighup_changes_nothing(world):
    daemon = world.start().ready()
    daemon.process.send_signal(signal.SIGHUP)
    equal(daemon.ask("GET", "/healthz")[0], 200)
    equal(daemon.end(), 0)
    daemon.logged("event=daemon.hangup")


@case
def acknowledged_jobs_survive_a_stop_under_load(world):
    daemon = world.start().ready()
    token = world.token()
    kept, stop = [], threading.Event()

    def submit():
        with contextlib.closing(daemon.connect()) as connection:
            with contextlib.suppress(OSError, http.client.HTTPException):
                while not stop.is_set():
                    connection.request("POST", "/v1/jobs", json.dumps(JOB), {"Authorization": "Bearer " + token})
                    answer = connection.getresponse()
                    text = answer.read()
                    if answer.status == 201:
                        kept.append(json.loads(text)["id"])
                    else:
                        assert answer.status == 503, (answer.status, text)

    threads = [threading.Thread(target=submit) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(kept) < 50:
        time.sleep(0.01)
    equal(daemon.end(), 0)
    stop.set()
    for thread in threads:
        thread.join(PATIENCE)
    equal(len(set(map(str, kept))), len(kept))
    daemon = world.start().ready()
    found, page = set(), {"continue": "0"}
    while "continue" in page:
        page = daemon.ask("GET", f"/v1/jobs?limit=10000&after={page['continue']}", token=token)[1]
        found |= {str(item["id"]) for item in page["items"]}
    assert {str(i) for i in kept} <= found, {str(i) for i in kept} - found


@case
def logs_are_one_event_a_line(world):
    daemon = world.start("--log-level", "debug").ready()
    daemon.ask("GET", "/v1/jobs/%0atime=now%20level=error", token=world.token())
    equal(daemon.end(), 0)
    for line in daemon.log:
        assert line is None or re.match(r"time=\S+Z level=(debug|info|warn|error) event=\S+", line), line


def main():
    print(f"1..{len(CASES)}", flush=True)
    failed = 0
    for number, function in enumerate(CASES, 1):
        world = World()
        name = function.__name__.replace("_", " ")
        try:
            function(world)
            print(f"ok {number} - {name}", flush=True)
        except Exception:  # pylint: disable=broad-except
            failed += 1
            print(f"not ok {number} - {name}")
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            for daemon in world.daemons:
                daemon.stop_at_once()
                if daemon.process.returncode not in (0, -signal.SIGTERM, -signal.SIGKILL):
                    print(f"# berthd ended with {daemon.process.returncode}")
                for line in daemon.log[-10:]:
                    print(f"# log: {line}")
            sys.stdout.flush()
        finally:
            world.done()
    sys.exit(1 if failed else 0)


main()
