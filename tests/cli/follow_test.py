"""Cases of follow_test.sh: `berth run` against a fake daemon whose logs begin and never end. Ctrl-C must work at any
time."""
import http.server
import json
import os
import signal
import subprocess
import tempfile
import threading

from agent_kit import BERTH, PATIENCE, case, main, skip_unless, wait_for

skip_unless(BERTH)
INSTANCE = {"id": 3, "instance": 3, "ordinal": 0, "node": "n1", "state": "running", "exit": 0}


class Pretended(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.cancelled |= self.path.endswith("/cancel")
        self.answer(201, {"id": 7, "revision": 9})

    def do_GET(self):
        if "/logs" not in self.path:
            over = self.server.state != "running"
            self.answer(200, {"id": 7,
                              "status": {"state": self.server.state, "replicas": 1, "running": 0 if over else 1,
                                         "instances": [] if over else [INSTANCE], "last": [INSTANCE] if over else []}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(b"6\r\nbegun\n\r\n")
        self.server.over.wait(PATIENCE)


class Daemon(http.server.ThreadingHTTPServer):
    """A fake daemon with a job in this state; as a context it serves, with `berth run` as its client."""

    def __init__(self, state):
        super().__init__(("127.0.0.1", 0), Pretended)
        self.state, self.cancelled, self.over = state, False, threading.Event()
        self.said = tempfile.TemporaryFile("w+")

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        env = dict(os.environ, BERTH_SERVER=f"http://127.0.0.1:{self.server_address[1]}", BERTH_TOKEN="berth_a_b",
                   NO_COLOR="1", BERTH_CONFIG="/nonexistent")
        self.run = subprocess.Popen([str(BERTH), "run", "--", "true"], env=env, stdin=subprocess.DEVNULL,
                                    stdout=self.said, stderr=self.said)
        wait_for("the log has begun", lambda: "begun" in self.words() or self.run.poll() is not None)
        return self

    def __exit__(self, *_):
        self.run.kill()
        self.run.wait()
        self.over.set()
        self.shutdown()
        self.server_close()
        self.said.close()

    def words(self):
        return os.pread(self.said.fileno(), 1 << 16, 0).decode()

    def press(self):
        self.run.send_signal(signal.SIGINT)

    def ends(self, words):
        assert self.run.wait(PATIENCE) == 130, self.words()
        assert words in self.words(), self.words()


@case
def a_log_that_does_not_end_after_its_job():
    with Daemon("ended") as d:
        d.press()
        d.ends("job/7 has ended; 'berth logs 7' shows the rest of its log")
        assert not d.cancelled


@case
def a_job_that_does_not_end_when_cancelled():
    with Daemon("running") as d:
        d.press()
        wait_for("it is cancelled", lambda: d.cancelled)
        assert d.run.poll() is None, d.words()
        d.press()
        d.ends("job/7 is being cancelled; 'berth logs -f 7' follows its log")


@case
def a_log_that_does_not_end_after_its_job_was_cancelled():
    with Daemon("running") as d:
        d.press()
        wait_for("it is cancelled", lambda: d.cancelled)
        d.state = "cancelled"
        d.press()
        d.ends("job/7 has ended; 'berth logs 7' shows the rest of its log")


@case
def a_second_ctrl_c_leaves_the_job_running():
    with Daemon("running") as d:
        d.press()
        wait_for("it is told", lambda: "press Ctrl-C again to leave it running" in d.words())
        d.press()
        d.ends("job/7 keeps running")
        assert not d.cancelled


main()
