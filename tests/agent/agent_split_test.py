"""Cases of agent_split_test.sh: the agent and its net sandbox on the real kernel: rights, sockets, death of the
sandbox, certificates."""
import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import time

from agent_kit import (AGENT, BERTH, BERTHD, PATIENCE, SHIM, Cluster, case, net_sandbox_of, main, skip_unless,
                       skip_unless_root, status_of, wait_for)

skip_unless(BERTH, BERTHD, AGENT, SHIM)
skip_unless_root()

NOBODY = 65534
DAY = 86400


def opened_of(pid):
    """Returns the targets of the process's descriptors, without those that are closed meanwhile."""
    links = []
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(link))
    return links


def sockets_of(pid):
    """Returns the inodes of the process's sockets."""
    return {link[len("socket:["):-1] for link in opened_of(pid) if link.startswith("socket:[")}


def internet():
    """Returns {inode: remote port} of every TCP and UDP socket."""
    found = {}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        path = pathlib.Path("/proc/net", table)
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            words = line.split()
            found[words[9]] = int(words[2].rsplit(":", 1)[1], 16)
    return found


def port_of(agent):
    return int((agent.state / "identity/node.json").read_text().split("https://")[1].split('"')[0].rsplit(":", 1)[1])


def assert_narrow(pid):
    status = status_of(pid)
    for key in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(status[key][0], 16) == 0, (key, status[key])
    assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"], status
    return status


def account():
    """Returns the default uid of the net sandbox."""
    try:
        return pwd.getpwnam("berth-agent").pw_uid
    except KeyError:
        return 199999


@case
def the_net_sandbox_has_no_rights_and_the_agent_no_network():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sleep", "600"])
        c.wait_state("jobs", job, "running")
        half = wait_for("the net sandbox runs", lambda: net_sandbox_of(agent))
        status = assert_narrow(half)
        assert status["Uid"] == [str(account())] * 4 and status["Groups"] == [], status
        assert int(status["CapBnd"][0], 16) == 0, status["CapBnd"]
        assert status_of(agent.process.pid)["Uid"][0] == "0"
        sockets = internet()
        assert port_of(agent) in {sockets.get(s) for s in sockets_of(half)}
        assert not sockets_of(agent.process.pid) & set(internet())
        # The sandbox has only the descriptors that it was given: no files of root, no folders.
        opened = opened_of(half)
        assert not [path for path in opened if str(c.work) in path], opened


@case
def workloads_survive_the_death_of_the_net_sandbox():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sh", "-c", "echo here; exec sleep 600"])
        c.wait_state("jobs", job, "running")
        before = agent.processes()
        for _ in range(3):
            half = wait_for("the net sandbox runs", lambda: net_sandbox_of(agent))
            os.kill(half, signal.SIGKILL)
            wait_for("there is another", lambda: net_sandbox_of(agent) not in (None, half))
            assert c.berth("exec", job, "--", "/bin/echo", "well") == "well\n"
            assert c.berth("logs", job) == "here\n"
        assert agent.processes() == before
        assert c.state("nodes", "n1") == "ready"
        c.wait_state("jobs", c.job(["/bin/true"]), "ended")
        wait_for("it says so", lambda: any("event=network.lost" in line for line in agent.process.log))


def log_lines(said):
    """Returns the numbers in the job's lines. Skips messages of berth and a last line that may be incomplete."""
    return [int(line.split()[1]) for line in said.read_text().split("\n")[:-1] if line.startswith("line ")]


@case
def logs_continue_and_a_shell_ends_when_the_net_sandbox_dies():
    with Cluster() as c:
        agent = c.node("n1")
        job = c.job(["/bin/sh", "-c", "n=0; while :; do n=$((n+1)); echo line $n; sleep 0.1; done"])
        c.wait_state("jobs", job, "running")
        rows = [("line 1\n", ["logs", "-f", job]),
                ("well", ["exec", job, "--", "/bin/sh", "-c", "echo well; exec sleep 600"])]
        followers = []
        for number, (word, words) in enumerate(rows):
            said = c.work / f"said-{number}"
            with said.open("w") as out:
                followers.append((subprocess.Popen([str(BERTH), *map(str, words)], env=c.berth_env(),
                                                   stdin=subprocess.DEVNULL, stdout=out, stderr=out), said))
            wait_for(f"it says {word}", lambda w=word, s=said: w in s.read_text())
        os.kill(wait_for("the net sandbox runs", lambda: net_sandbox_of(agent)), signal.SIGKILL)
        (logs, log), (shell, said) = followers
        assert shell.wait(PATIENCE) == 1, said.read_text()
        assert ("the connection to the node broke" in said.read_text() or
                "could not be sent" in said.read_text()), said.read_text()
        seen = len(log_lines(log))
        wait_for("the log goes on", lambda: len(log_lines(log)) > seen + 10)
        assert logs.poll() is None
        logs.terminate()
        logs.wait(PATIENCE)
        lines = log_lines(log)
        assert lines == list(range(1, len(lines) + 1)), log.read_text()


@case
def the_net_sandbox_ends_with_the_agent():
    with Cluster() as c:
        agent = c.node("n1")
        for signo in (signal.SIGKILL, signal.SIGTERM):
            half = wait_for("the net sandbox runs", lambda: net_sandbox_of(agent))
            agent.process.end(signo)
            wait_for("it has ended, too", lambda: not pathlib.Path(f"/proc/{half}").exists())
            agent.start()


@case
def the_user_of_the_net_sandbox_can_be_set():
    with Cluster() as c:
        agent = c.agent("n1", options=["--network-user", "nobody"]).join().start()
        assert status_of(wait_for("the net sandbox runs",
                                  lambda: net_sandbox_of(agent)))["Uid"] == [str(pwd.getpwnam("nobody").pw_uid)] * 4
        agent.process.end()
        for name, words in (("root", "is root"), ("no-such-account", "does not exist")):
            done = subprocess.run([str(AGENT), "--state", str(agent.state), "--shim", str(SHIM), "--cgroup",
                                   agent.group, "--network-user",
                                   name], capture_output=True, text=True, timeout=PATIENCE, check=False)
            assert done.returncode == 1 and words in done.stderr, done


def fetchers_of(agent, name):
    """Returns the pids of the processes of that name that fetch for this agent."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text() == name + "\n" and os.readlink(path / "cwd").startswith(str(agent.state)):
                found.append(int(path.name))
        except OSError:  # the process has ended meanwhile
            pass
    return found


@case
def image_fetchers_have_no_rights_and_end_with_the_agent():
    digest = "0" * 64
    kinds = [("skopeo", "skopeo", lambda port: {"image": f"127.0.0.1:{port}/app:1", "command": ["/bin/true"]}),
             ("curl", "qemu-system-x86_64",
              lambda port: {"runtime": "vm", "image": f"http://127.0.0.1:{port}/disk", "vm": {"sha256": digest},
                            "resources": {"cpu": "100m", "memory": "128Mi"}})]
    with Cluster() as c:
        agent = c.node("n1")
        for program, needed, keys in kinds:
            if not shutil.which(program) or not shutil.which(needed):
                print(f"# skip: there is no {program}, or no {needed}")
                continue
            with socket.create_server(("127.0.0.1", 0)) as silent:  # never answers
                keys = keys(silent.getsockname()[1])
                job = c.job(keys.pop("command", None), **keys, retries=0)
                (fetcher,) = wait_for(f"{program} runs", lambda p=program: fetchers_of(agent, p))
                status = assert_narrow(fetcher)
                assert status["Uid"] == [str(account())] * 4 and status["Groups"] == [], status
                assert int(status["CapBnd"][0], 16) == 0, status["CapBnd"]
                (folder,) = (agent.state / "images").glob("tmp-*/fetch")
                assert os.readlink(f"/proc/{fetcher}/cwd") == str(folder) and folder.stat().st_uid == account()
                agent.process.end(signal.SIGKILL)
                wait_for("it has ended, too", lambda p=program: not fetchers_of(agent, p))
                assert folder.exists()
                agent.start()
                wait_for("it is fetched once more", lambda p=program: fetchers_of(agent, p))
            c.wait_state("jobs", job, "failed")
            wait_for("what was left is gone", lambda: not list((agent.state / "images").glob("tmp-*")))


@case
def certificates_are_renewed_through_the_net_sandbox():
    with Cluster() as c:
        agent = c.agent("n1").join()
        pem = agent.state / "identity/node.pem"
        first = pem.read_text()
        os.utime(pem, (time.time(), time.time() - 8 * DAY))  # more than half of its lifetime ago
        agent.start()
        wait_for("it is renewed", lambda: any("event=certificate.renewed" in line for line in agent.process.log))
        assert pem.read_text() != first and pem.stat().st_mode & 0o777 == 0o600
        c.wait_state("jobs", c.job(["/bin/true"]), "ended")
        half = net_sandbox_of(agent)
        os.kill(half, signal.SIGKILL)
        wait_for("there is another", lambda: net_sandbox_of(agent) not in (None, half))
        c.wait_state("jobs", c.job(["/bin/true"]), "ended")
        # An invalid certificate is reported at the start.
        agent.process.end()
        pem.write_text("none\n")
        agent.start(ready=False)
        assert agent.process.process.wait(PATIENCE) == 1
        wait_for("it says so", lambda: any("certificate" in line for line in agent.process.log))


@case
def a_net_sandbox_without_a_certificate_is_restarted_until_there_is_one():
    with Cluster() as c:
        agent = c.node("n1")
        pem = agent.state / "identity/node.pem"
        good = pem.read_text()
        half = wait_for("the net sandbox runs", lambda: net_sandbox_of(agent))
        pem.write_text("none\n")
        os.kill(half, signal.SIGKILL)
        wait_for("it says so", lambda: any("event=network.failed" in line for line in agent.process.log))
        wait_for("it is given up", lambda: any("has no certificate" in line for line in agent.process.log))
        pem.write_text(good)
        c.wait_state("jobs", c.job(["/bin/true"]), "ended")
        assert agent.process.process.poll() is None


@case
def an_interrupted_change_is_not_lost():
    with Cluster() as c:
        agent = c.node("n1")
        app = c.app(name="reader", command=["/bin/sh", "-c", 'while :; do cat "$BERTH_SETTINGS"; sleep 0.3; done'],
                    settings={"title": "first"}, settings_schema={"title": {"type": "text"}})
        wait_for("it runs", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        wait_for("it reads", lambda: "first" in c.berth("logs", app))
        c.ask("PATCH", f"/v1/apps/{app}/settings", {"title": "second"})
        wait_for("it reads the change", lambda: "second" in c.berth("logs", app))
        (changed,) = agent.state.glob("instances/*/changed.json")
        wait_for("it is applied", lambda: "unapplied" not in changed.read_text())
        # The state of an agent that was killed in the middle of a change.
        (settings,) = [path for path in agent.state.glob("instances/*/**/*") if path.is_file()
                       and "second" in path.read_text("latin1") and path.name not in ("changed.json", "log")]
        agent.process.end(signal.SIGKILL)
        changed.write_text('{"unapplied":true,' + changed.read_text()[1:])
        settings.write_text(settings.read_text().replace("second", "old"))
        agent.start()
        wait_for("it is changed once more", lambda: "second" in settings.read_text())
        wait_for("that is known", lambda: "unapplied" not in changed.read_text())


@case
def a_failed_change_is_retried():
    with Cluster() as c:
        agent = c.node("n1")
        c.berth("secret", "set", "db", "password=hunter2")
        app = c.app(name="reader", command=["/bin/sleep", "600"], settings={"title": "first"},
                    settings_schema={"title": {"type": "text"}},
                    files=[{"path": "/run/secret/db", "secret": "db", "key": "password"}])
        wait_for("it runs", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        (settings,) = [path for path in agent.state.glob("instances/*/**/*") if path.is_file()
                       and "first" in path.read_text("latin1")
                       and path.name not in ("config.json", "changed.json", "log")]
        agent.process.kill(signal.SIGSTOP)  # the agent receives the change when the secret lacks the needed key
        assert c.ask("PATCH", f"/v1/apps/{app}/settings", {"title": "second"})[0] == 200
        c.berth("secret", "set", "db", "another=key")
        agent.process.kill(signal.SIGCONT)
        wait_for("it fails", lambda: any("event=instance.unchanged" in line for line in agent.process.log))
        assert "first" in settings.read_text()
        c.berth("secret", "set", "db", "password=hunter2")
        wait_for("it is changed", lambda: "second" in settings.read_text())
        (changed,) = agent.state.glob("instances/*/changed.json")
        wait_for("that is known", lambda: "unapplied" not in changed.read_text())


@case
def without_root_there_is_a_net_sandbox_too():
    if not shutil.which("setpriv"):
        print("# skip: there is no setpriv")
        return
    with Cluster() as c:
        prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        agent = c.agent("n1", prefix=prefix)
        programs = c.work / "programs"  # in a folder where every user may run them
        for program in (AGENT, SHIM):
            programs.mkdir(exist_ok=True, mode=0o755)
            shutil.copy(program, programs)
        if subprocess.run([*prefix, str(programs / AGENT.name), "--version"], capture_output=True,
                          check=False).returncode != 0:
            print("# skip: others cannot run what was built here")
            return
        agent.state.mkdir()
        os.chown(agent.state, NOBODY, NOBODY)
        agent.program, agent.shim = programs / AGENT.name, programs / SHIM.name
        agent.join().start()
        status = assert_narrow(wait_for("the net sandbox runs", lambda: net_sandbox_of(agent)))
        assert status["Uid"] == [str(NOBODY)] * 4, status
        c.wait_state("jobs", c.job(["/bin/true"]), "ended")


main()
