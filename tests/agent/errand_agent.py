#!/usr/bin/env python3
"""errand_agent.py URL NODE TOKEN [INSTANCE STATE]... - a minimal agent for errand_test.sh.

It reports instances and serves sessions on this machine: logs come from a file in the working folder, commands are run.
Prints "ready" when it is connected. SIGTERM ends it.
"""
import base64
import fcntl
import json
import os
import pty
import queue
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import urllib.error
import urllib.request

PIECE = 64 * 1024
url, node, token = sys.argv[1:4]
errands = {}


def ask(method, path, body=None, stream=False):
    request = urllib.request.Request(url + path, data=body, method=method)
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("Content-Type", "application/octet-stream")
    answer = urllib.request.urlopen(request, timeout=None if stream else 120)
    return answer if stream else answer.read()


class Errand:
    def __init__(self, line):
        self.id = line["call"]
        self.input = queue.Queue()
        self.process = None
        self.terminal = None
        self.closed = False
        self.brought = 0
        threading.Thread(target=self.run, args=(line,), daemon=True).start()

    def bring(self, query, body=b""):
        try:
            ask("POST", f"/v1/nodes/{node}/calls/{self.id}?{query}", body)
            self.brought += len(body)
            with open("brought", "w", encoding="ascii") as out:
                out.write(f"{self.brought}\n")
            return True
        except urllib.error.HTTPError as error:
            print("refused", error.code, query, flush=True)
            self.end()
            return False

    def end(self):
        self.closed = True
        if self.process and self.process.poll() is None:
            self.process.kill()

    def run(self, line):
        try:
            getattr(self, line["verb"])(line)
        except (OSError, subprocess.SubprocessError) as error:
            self.bring("end=true", json.dumps({"error": str(error)}).encode())
        errands.pop(self.id, None)

    def logs(self, line):
        with open(f"log.{line['instance']}", "rb") as log:
            lines = log.readlines()
            tail = lines if line["tail"] < 0 else lines[len(lines) - min(line["tail"], len(lines)):]
            text = b"".join(tail)
            for at in range(0, len(text), PIECE):
                if not self.bring("stream=out", text[at:at + PIECE]):
                    return
            while line["follow"] and not self.closed:
                more = log.read(PIECE)
                if more and not self.bring("stream=out", more):
                    return
                if not more:
                    threading.Event().wait(0.05)
                if b"THE END" in more:
                    break
        self.bring("end=true")

    def signal(self, line):
        with open("signals", "a", encoding="ascii") as out:
            out.write(f"{line['instance']} {line['signal']}\n")
        self.bring("end=true")

    def exec(self, line):
        environment = dict(os.environ, **line.get("env", {}))
        if line.get("terminal"):
            self.terminal, slave = pty.openpty()
            self.size(line)
            # Runs the command in a session with standard input as its terminal and with the default action for SIGINT,
            # even if the tests run with SIGINT ignored. External programs do that, since forking code in a threaded
            # process is unsafe.
            self.process = subprocess.Popen(["setsid", "--ctty", "env", "--default-signal=INT", *line["command"]],
                                            stdin=slave, stdout=slave, stderr=slave, env=environment)
            os.close(slave)
            pipes = {"out": self.terminal}
            stdin = self.terminal
        else:
            self.process = subprocess.Popen(line["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, env=environment)
            pipes = {"out": self.process.stdout.fileno(), "err": self.process.stderr.fileno()}
            stdin = self.process.stdin.fileno()
        threading.Thread(target=self.feed, args=(stdin,), daemon=True).start()
        lock = threading.Lock()  # one write at a time per session
        readers = [threading.Thread(target=self.read, args=(name, fd, lock)) for name, fd in pipes.items()]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        code = self.process.wait()
        self.bring(f"end=true&exit={code if code >= 0 else 128 - code}")

    def read(self, name, fd, lock):
        while not self.closed:
            try:
                piece = os.read(fd, PIECE)
            except OSError:  # the terminal's other side is closed
                break
            if not piece:
                break
            with lock:
                if not self.bring(f"stream={name}", piece):
                    break

    def feed(self, fd):
        while True:
            piece = self.input.get()
            try:
                if piece is None:
                    if self.terminal is None:
                        self.process.stdin.close()
                    return
                while piece:
                    piece = piece[os.write(fd, piece):]
            except OSError:
                return

    def size(self, line):
        if self.terminal is not None and line.get("rows"):
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", line["rows"], line["columns"], 0, 0))
            if self.process:
                os.killpg(self.process.pid, signal.SIGWINCH)


def hear(line):
    if "verb" in line:
        errands[line["call"]] = Errand(line)
        return
    errand = errands.get(line.get("call"))
    if not errand:
        return
    if "input" in line:
        errand.input.put(base64.b64decode(line["input"]))
    if line.get("eof"):
        errand.input.put(None)
    if "rows" in line:
        errand.size(line)
    if line.get("close"):
        print("closed", line["call"], flush=True)
        errand.end()


def report(seq):
    pairs = zip(sys.argv[4::2], sys.argv[5::2])
    said = {"epoch": 1, "seq": seq, "node": {"usage": {"cpu": "2", "memory": "8Gi"}},
            "instances": [{"id": int(i), "state": s, "ready": True, "ports": [{"endpoint": "http", "port": 20000}],
                           "usage": {"cpu": "250m", "memory": "64Mi"}} for i, s in pairs]}
    request = urllib.request.Request(f"{url}/v1/nodes/{node}/report", data=json.dumps(said).encode(), method="POST")
    request.add_header("Authorization", "Bearer " + token)
    request.add_header("Content-Type", "application/json")
    urllib.request.urlopen(request, timeout=30).read()


def report_on():
    while True:
        time.sleep(5)
        report(time.time_ns())


def main():
    report(time.time_ns())
    threading.Thread(target=report_on, daemon=True).start()
    with ask("GET", f"/v1/nodes/{node}/calls?epoch=1", stream=True) as stream:
        print("ready", flush=True)
        for line in stream:
            if line.strip():
                hear(json.loads(line))


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
main()
