"""Cases of gateway_test.sh: real load balancers in front of a service whose replicas move; no request fails."""
import http.client
import shutil
import signal
import socket
import threading
import time

from agent_kit import AGENT, BERTH, BERTHD, SHIM, Cluster, Process, case, main, skip_unless, skip_unless_root, wait_for
from ports import free_ports

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3")
skip_unless_root()

# A server that finishes its requests when it is told to stop. Its socket is passed to it: both nodes are this machine,
# so a port that one server has not bound yet would be free for the other.
SERVER = """
import http.server, os, signal, socket, threading
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = os.environ["BERTH_INSTANCE"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = False
server = Server(("", 0), Handler, bind_and_activate=False)
server.socket.close()
server.socket = socket.socket(fileno=3)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
"""


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class Visitors:
    """Threads that send requests continuously and count the results."""

    def __init__(self, port, threads=3):
        self.port, self.stop, self.good, self.bad, self.seen = port, False, 0, [], set()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.visit) for _ in range(threads)]
        for t in self.threads:
            t.start()

    def visit(self):
        while not self.stop:
            try:
                c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                c.request("GET", "/")
                answer = c.getresponse()
                body = answer.read()
                c.close()
                with self.lock:
                    if answer.status == 200:
                        self.good += 1
                        self.seen.add(body)
                    else:
                        self.bad.append(answer.status)
            except OSError as error:
                with self.lock:
                    self.bad.append(repr(error))
            time.sleep(0.005)

    def end(self):
        self.stop = True
        for t in self.threads:
            t.join()


def replicas_move(program, start, reload):
    if not shutil.which(program):
        print(f"# skip: there is no {program}")
        return
    with Cluster() as c:
        for name in ("n1", "n2"):
            agent = c.agent(name)
            agent.joining = ["--address", "127.0.0.1"]
            agent.join().start()
        app = c.app(name="web", command=["/usr/bin/python3", "-c", SERVER], replicas=2,
                    endpoints=[{"name": "http", "listen": "socket"}],
                    health={"http": {"endpoint": "http", "path": "/"}, "every": "1s", "timeout": "500ms"},
                    stop={"delay": "4s", "grace": "10s"}, spread="node", min_available=2)
        wait_for("two are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 2)
        (port,), config = free_ports(1), c.work / f"{program}.conf"
        words = ["gateway", program, f"{app}=127.0.0.1:{port}", "--out", config]
        c.berth(*words)
        balancer = Process(start(config, c.work))
        keeper = None
        try:
            wait_for("somebody answers", lambda: answers(port) or balancer.process.poll() is not None)
            assert answers(port), (balancer.log, config.read_text())
            env = {"BERTH_SERVER": c.url, "BERTH_TOKEN": c.token, "BERTH_CONFIG": str(c.work / "config")}
            keeper = Process([BERTH, *words, "--watch", "--", *reload(config, c.work, balancer)], env=env)
            visitors = Visitors(port)
            try:
                for node in ("n1", "n2"):
                    c.berth("node", "drain", node)
                    wait_for(f"{node} is empty", lambda n=node: not c.agents[n].processes())
                    c.berth("node", "enable", node)
                    wait_for("two are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 2)
                before = {i["id"] for i in c.instances(app)}
                c.berth("app", "restart", app)
                wait_for(f"both are new: {c.run('describe', 'app', app).stdout}",
                         lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 2 and
                         not before & {i["id"] for i in c.instances(app)})
                time.sleep(1)
            finally:
                visitors.end()
            assert not visitors.bad, (visitors.good, visitors.bad[:5], balancer.log[-5:], keeper.log[-5:])
            assert visitors.good > 100 and len(visitors.seen) >= 4, (visitors.good, visitors.seen)
            print(f"# {program}: {visitors.good} requests, {len(visitors.seen)} instances, none failed")
        finally:
            if keeper:
                keeper.end(signal.SIGKILL)
            balancer.end()


@case
def haproxy_loses_no_request():
    replicas_move("haproxy", lambda config, work: ["haproxy", "-W", "-f", config],
                  lambda config, work, balancer: ["kill", "-USR2", str(balancer.pid)])


@case
def nginx_loses_no_request():
    def start(config, work):
        return ["nginx", "-c", config, "-p", work, "-e", work / "nginx.err", "-g", f"daemon off; pid {work}/nginx.pid;"]
    replicas_move("nginx", start, lambda config, work, balancer: ["kill", "-HUP", str(balancer.pid)])


main()
