"""A real Kubernetes control plane for tests: etcd and kube-apiserver on loopback, optionally with kube-scheduler and
fakes of the kubelet and the volume controllers. Standard library only.

    with ControlPlane() as plane:
        plane.admin.create(objects.node("n1"))
        scheduler = plane.peer("mine")

tools/kube builds the programs; without them the test is skipped. Everything that was started is stopped however the
test ends.
"""
import atexit
import base64
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

import objects
from client import PATIENCE, Client, Refused, wait_for

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
from ports import free_ports  # noqa: E402  pylint: disable=wrong-import-position

ADMIN, BERTH, NOBODY = "admin-token", "berth-kube-token", "nobody-token"
# Plugins that wait for controllers which do not run here, or that set what only these controllers remove.
WITHOUT = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,DefaultStorageClass"
# Names of kinds in berth-kube's /metrics.
TOLD = {"Pod": "pods", "Node": "nodes", "PersistentVolume": "persistent volumes",
        "PersistentVolumeClaim": "persistent volume claims",
        "StorageClass": "storage classes", "CSIDriver": "CSI drivers"}


def skip(reason):
    print(f"skip: {reason}", flush=True)
    sys.exit(77)


def programs(build=False):
    """Returns the folder of the programs; skips the test if they are missing."""
    tool = HERE.parent.parent / "tools/kube"
    done = subprocess.run([tool, *([] if build else ["--cached"])], stdout=subprocess.PIPE, text=True, check=False)
    last = (done.stdout.strip().splitlines() or [""])[-1]
    if done.returncode == 77:
        skip(last.removeprefix("skip: "))
    assert done.returncode == 0, "tools/kube failed"
    return pathlib.Path(last)


class Program:
    """A program in the background with its output in a file. It ends with the test, even if the test is killed; then
    the folder `clear` is removed."""

    def __init__(self, words, log, env=None, clear=""):
        self.words, self.log = [str(word) for word in words], pathlib.Path(log)
        # A shell waits for the end of its input, which is the end of this process, then kills the program and removes
        # the folder. The program's output goes to the log, so that it does not come before the pid that is read here.
        guard = ('exec 3<&0; "$@" <&- >&2 3<&- & pid=$!; '
                 '{ read -r _ <&3; trap "" TERM; kill -KILL $pid; '
                 '[ -z "$CLEAR" ] || { sleep 1; rm -rf "$CLEAR"; }; } 2>/dev/null & '
                 'echo $pid; exec >&-; wait $pid; kill $! 2>/dev/null')
        with self.log.open("ab") as out:
            self.shell = subprocess.Popen(["sh", "-c", guard, "sh", *self.words], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE,
                                          stderr=out, env=dict(os.environ, CLEAR=str(clear), **(env or {})),
                                          start_new_session=True)
        self.pid = int(self.shell.stdout.readline())

    def running(self):
        return self.shell.poll() is None

    def kill(self, signo=signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signo)

    def end(self, signo=signal.SIGTERM):
        if self.running():
            self.kill(signo)
            try:
                self.shell.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self.shell.wait(PATIENCE)
        self.shell.stdin.close()
        self.shell.stdout.close()

    def tail(self, lines=30):
        return self.log.read_text(errors="replace").splitlines()[-lines:] if self.log.is_file() else []

    def cpu(self):
        """Returns the seconds of CPU time of all its threads."""
        words = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self, key="VmRSS"):
        """Returns bytes; VmHWM is the peak."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
        return 0


class ControlPlane:
    """etcd and kube-apiserver in a folder of their own."""

    def __init__(self, options=(), fast=True):
        self.bin = programs()
        memory = pathlib.Path("/dev/shm")
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="berth-kube-",
                                                  dir=memory if os.access(memory, os.W_OK) else None))
        atexit.register(shutil.rmtree, self.work, ignore_errors=True)
        self.options, self.fast = list(options), fast
        self.etcd = self.api = self.scheduler = None  # scheduler: the berth-kube of a test
        self.others = []
        self.port, self.etcd_port, peer = free_ports(3)
        self.peer_url = f"http://127.0.0.1:{peer}"
        self.url = f"https://127.0.0.1:{self.port}"
        self.certificates()
        self.admin = self.client(ADMIN)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise

    def __exit__(self, kind, value, trace):
        if kind:
            self.tell()
        self.end()

    def tell(self):
        """Prints the end of every program's log."""
        for program in [self.etcd, self.api, *self.others]:
            for line in program.tail() if program else []:
                print(f"# {program.log.stem}: {line}")

    def certificates(self):
        """Makes a CA, a certificate for 127.0.0.1, a key for tokens of service accounts, and the users' tokens."""
        def openssl(*words):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=self.work)
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.crt", "-days", "30", "-subj", "/CN=tests")
        openssl("req", *curve, "-keyout", "api.key", "-out", "api.csr", "-subj", "/CN=kube-apiserver")
        (self.work / "names").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\n")
        openssl("x509", "-req", "-in", "api.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "30",
                "-extfile", "names", "-out", "api.crt")
        openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "sa.key")
        (self.work / "tokens.csv").write_text(
            f'{ADMIN},admin,1,"system:masters"\n'
            f'{BERTH},system:serviceaccount:berth-system:berth-kube,2,'
            '"system:serviceaccounts,system:serviceaccounts:berth-system"\n'
            f"{NOBODY},nobody,3\n")

    def client(self, token, workers=8):
        return Client("127.0.0.1", self.port, self.work / "ca.crt", token, workers)

    def start(self):
        unsafe = ["--unsafe-no-fsync"] if self.fast else []
        self.etcd = Program([self.bin / "etcd", "--data-dir", self.work / "etcd", "--listen-client-urls",
                             f"http://127.0.0.1:{self.etcd_port}", "--advertise-client-urls",
                             f"http://127.0.0.1:{self.etcd_port}",
                             "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                             "--initial-cluster", f"default={self.peer_url}", "--log-level", "warn",
                             "--quota-backend-bytes", 4 << 30, *unsafe], self.work / "etcd.log", clear=self.work)
        self.start_api()
        return self

    def start_api(self):
        """Starts the API server; after a kill on the same port."""
        self.api = Program([
            self.bin / "kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}", "--bind-address",
            "127.0.0.1",
            "--secure-port", self.port, "--advertise-address", "127.0.0.1", "--tls-cert-file", self.work / "api.crt",
            "--tls-private-key-file", self.work / "api.key", "--token-auth-file", self.work / "tokens.csv",
            "--authorization-mode", "RBAC", "--anonymous-auth=false", "--service-account-issuer",
            "https://kubernetes.default.svc",
            "--service-account-key-file", self.work / "sa.key", "--service-account-signing-key-file",
            self.work / "sa.key",
            "--service-cluster-ip-range", "10.0.0.0/24", "--disable-admission-plugins", WITHOUT,
            "--endpoint-reconciler-type", "none",
            "--enable-priority-and-fairness=false", "--max-requests-inflight", "4000",
            "--max-mutating-requests-inflight", "2000",
            "--profiling=false", "--cert-dir", self.work, *self.options], self.work / "api.log")

        def ready():
            if not self.api.running() or not self.etcd.running():
                raise AssertionError(f"the control plane ended: {self.api.tail(5)} {self.etcd.tail(5)}")
            try:
                return (self.admin.ask("GET", "/readyz")[0] == 200 and
                        self.admin.ask("GET", "/api/v1/namespaces/default")[0] == 200)
            except OSError:
                return False
        wait_for("the API server is ready", ready, patience=2 * PATIENCE)

    def kill_api(self, signo=signal.SIGKILL):
        self.api.kill(signo)
        self.api.end()

    def end(self):
        for program in [*reversed(self.others), self.api, self.etcd]:
            if program:
                program.end(signal.SIGKILL)
        self.others = []
        self.admin.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def kubeconfig(self, token=ADMIN, port=None):
        """Writes a file for kubectl, kube-scheduler and berth-kube. port: of a proxy in front of the API server."""
        path = self.work / (f"{token}-{port}.kubeconfig" if port else f"{token}.kubeconfig")
        authority = base64.b64encode((self.work / "ca.crt").read_bytes()).decode()
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "clusters": [{"name": "tests",
                          "cluster": {"server": f"https://127.0.0.1:{port or self.port}",
                                      "certificate-authority-data": authority}}],
            "users": [{"name": "me", "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "me"}}]}))
        return path

    def kubectl(self, *words, token=ADMIN, check=True):
        done = subprocess.run([self.bin / "kubectl", "--kubeconfig", self.kubeconfig(token), *map(str, words)],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert not check or done.returncode == 0, f"kubectl {words}: {done.stderr}"
        return done.stdout if check else done

    def run(self, name, words, env=None):
        """Starts another program, which ends with the control plane."""
        self.others.append(Program(words, self.work / f"{name}.log", env))
        return self.others[-1]

    def leave(self, program, signo=signal.SIGTERM):
        program.end(signo)
        self.others.remove(program)

    def peer(self, name="default-scheduler", score_percent=None):
        """Starts kube-scheduler for this schedulerName with raised client limits, and waits until it schedules.
        score_percent: the share of nodes that it scores at most; None is its default, 100 all."""
        port = free_ports(1)[0]
        profile = {"schedulerName": name, **({"percentageOfNodesToScore": score_percent} if score_percent else {})}
        config = self.work / f"peer-{name}.json"
        config.write_text(json.dumps({
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig()), "qps": 100000, "burst": 100000},
            "podMaxBackoffSeconds": 1, "leaderElection": {"leaderElect": False}, "profiles": [profile]}))
        program = self.run(f"peer-{name}",
                           [self.bin / "kube-scheduler", "--config", config, "--secure-port", port, "--bind-address",
                            "127.0.0.1", "--cert-dir", self.work / f"peer-{name}", "--authentication-skip-lookup",
                            "--authorization-always-allow-paths", "*"])
        self.until_listening(port, program)
        return program

    @staticmethod
    def until_listening(port, program):
        def look():
            assert program.running(), f"it ended: {program.tail(5)}"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        wait_for(f"{program.words[0]} listens", look)

    def berth_kube(self, name, words, env=None):
        """Starts a berth-kube whose state caught_up() can read."""
        port = free_ports(1)[0]
        program = self.run(name, [*words, "--listen", f"127.0.0.1:{port}"], env)
        program.port = port
        return program

    def caught_up(self, *kinds, program=None):
        """Returns when the scheduler (or this other berth-kube) has seen all objects, or those of these kinds. Each of
        its watches lags independently, so it may still count deleted objects, or not know new ones."""
        program = program or self.scheduler

        def numbers():
            link = http.client.HTTPConnection("127.0.0.1", program.port, timeout=PATIENCE)
            try:
                link.request("GET", "/metrics")
                return link.getresponse().read().decode()
            except (OSError, http.client.HTTPException):
                return ""  # the program has just started
            finally:
                link.close()

        def look():
            told = numbers()
            seen = [f'berth_kube_objects{{what="{TOLD[kind]}"}} {len(self.admin.list(kind))}\n' in told
                    for kind in kinds or TOLD]
            return all(seen) or not program.running()
        if program:
            wait_for("the scheduler has caught up", look, pause=0.02)

    def priority_class(self, name, value):
        """Makes a class and waits until pods may name it: the admission plugin has a watch of its own."""
        def look():
            try:
                return self.admin.must("POST", "/api/v1/namespaces/default/pods?dryRun=All",
                                       objects.pod("x", priorityClassName=name))
            except Refused:
                return None
        self.admin.create(objects.priority_class(name, value))
        wait_for(f"{name} is known", look)

    def install_kinds(self, manifests):
        """Installs the kinds of berth.dev and waits until the API server serves them, which is a moment after they are
        established."""
        self.kubectl("apply", "-f", manifests / "crds")
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", f"--timeout={PATIENCE}s")
        for plural in ("jobs", "queues", "groups", "users", "domains", "policies"):
            wait_for(f"{plural} are served",
                     lambda which=plural: self.admin.ask("GET", f"/apis/berth.dev/v1/{which}")[0] == 200)

    def stand_ins(self, *parts):
        """Starts the fakes of standins.py: "kubelet", "volumes"; all by default."""
        return self.run("standins",
                        [sys.executable, HERE / "standins.py", self.port, self.work / "ca.crt", ADMIN, *parts])


def run_cases(cases, after=lambda plane: None):
    """Runs each case(plane), prints TAP, and exits; calls `after` after each case."""
    failed = 0
    with ControlPlane() as plane:
        for number, case in enumerate(cases, 1):
            try:
                case(plane)
                print(f"ok {number} - {case.__name__}", flush=True)
            except Exception:  # pylint: disable=broad-except
                failed += 1
                print(f"not ok {number} - {case.__name__}")
                print("\n".join(f"# {line}" for line in traceback.format_exc().splitlines()), flush=True)
                plane.tell()
            after(plane)
    print(f"1..{len(cases)}")
    sys.exit(1 if failed else 0)


def main():
    """Runs a control plane for experiments, until Ctrl-C."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin = time.monotonic()
    with ControlPlane() as plane:
        plane.stand_ins()
        print(f"ready after {time.monotonic() - begin:.1f} s\nexport KUBECONFIG={plane.kubeconfig()}\n"
              f"{plane.bin}/kubectl get nodes")
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
