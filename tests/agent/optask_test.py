"""Cases of optask_test.sh: OpTasks on real agents: run once in spite of kills, ended in time, undone, pinned; one
content per key."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from agent_kit import BUILD, GROUPS, Cluster, case, main, skip_unless_root, wait_for

skip_unless_root()


def add(c, key, script, **more):
    body = {"id": key, "script": script, "nodes": ["n1"], **more}
    status, answer = c.ask("POST", "/v1/optasks", body)
    assert status in (200, 201), answer
    return answer["id"]


def step(c, key, node="n1"):
    nodes = c.get(f"/v1/optasks/{key}")["status"]["nodes"]
    return [n for n in nodes if n["node"] == node][0]


def wait_step(c, key, *states, node="n1"):
    return wait_for(f"{key} is {states}", lambda: step(c, key, node)["state"] in states and step(c, key, node))


def groups(agent):
    """Returns the cgroups of this agent's OpTasks; other tests have cgroups beside them."""
    roots = [pathlib.Path("/sys/fs/cgroup", controller, agent.group) for controller in GROUPS]
    return [str(f) for root in roots for f in root.glob("o*") if f.is_dir()]


def lines(path):
    return path.read_text().split() if path.exists() else []


@case
def an_optask_runs_once_and_is_shown():
    with Cluster() as c:
        n1 = c.node("n1")
        out = c.work / "out"
        script = f"""set -e
echo "$BERTH_KEY $BERTH_NODE $BERTH_ATTEMPT ${{BERTH_UNDO:-forward}} $(id -u) $1 $2" >>{out}
test -d "$BERTH_CHECKPOINT"
env | cut -d= -f1 | sort | tr '\\n' ' '
"""
        add(c, "once", script, args=["a b", "c"])
        done = wait_step(c, "once", "done", "failed")
        assert done["state"] == "done" and done["exit"] == 0, done
        assert out.read_text() == "once n1 1 forward 0 a b c\n", out.read_text()
        known = c.berth("optask", "logs", "once").split()
        for name in ("BERTH_CHECKPOINT", "PATH", "HOME"):
            assert name in known, known
        assert not {"BERTH_TOKEN", "BERTH_BUILD", "BERTH_SOURCE"} & set(known), known
        # The same key and content again: nothing happens. Another content is refused.
        add(c, "once", script, args=["a b", "c"])
        status, answer = c.ask("POST", "/v1/optasks", {"id": "once", "script": "true", "nodes": ["n1"]})
        assert status == 409 and "different content" in answer["error"]["message"], answer
        # Even forgotten by the daemon and asked for anew it is not done again.
        assert c.ask("DELETE", "/v1/optasks/once")[0] == 204
        add(c, "once", script, args=["a b", "c"])
        wait_step(c, "once", "done")
        assert len(out.read_text().splitlines()) == 1
        # Nor does this node run another content under the key.
        assert c.ask("DELETE", "/v1/optasks/once")[0] == 204
        add(c, "once", f"echo other >>{out}")
        failed = wait_step(c, "once", "failed", "done")
        assert failed["fault"] == "refused", failed
        assert len(out.read_text().splitlines()) == 1
        assert not groups(n1), groups(n1)
        assert not list((n1.state / "optasks/instances").iterdir())


@case
def python_scripts_and_exit_codes():
    with Cluster() as c:
        c.node("n1")
        add(c, "py", "import sys, os\nprint('in python', os.environ['BERTH_KEY'], sys.argv[1:])\n",
            language="python", args=["x"])
        wait_step(c, "py", "done")
        assert "in python py ['x']" in c.berth("optask", "logs", "py", "n1")
        for key, script, fault in (("code", "exit 3", "script"), ("net", "exit 81", "network"),
                                   ("space", "echo 'cp: x: No space left on device'; exit 1", "no-space"),
                                   ("apt", "echo 'E: Unable to locate package nope' >&2; exit 100", "package-manager"),
                                   ("sig", "kill -SEGV $$", "script")):
            add(c, key, script)
            failed = wait_step(c, key, "failed", "done")
            assert failed["state"] == "failed" and failed["fault"] == fault, (key, failed)


@case
def a_timeout_ends_and_undoes_a_script():
    with Cluster() as c:
        n1 = c.node("n1")
        made, pids = c.work / "made", c.work / "pids"
        add(c, "slow", f"touch {made}; setsid sleep 1000 & echo $! >{pids}; sleep 1000",
            undo=f"test \"$BERTH_UNDO\" = 1 && rm {made}; echo taken back", timeout="8s")
        wait_for("it has a control group", lambda: groups(n1))
        over = wait_step(c, "slow", "undone", "failed", "done")
        assert over["state"] == "undone" and over["fault"] == "timeout", over
        assert not made.exists()
        assert not pathlib.Path(f"/proc/{pids.read_text().strip()}").exists()
        assert "taken back" in c.berth("optask", "logs", "slow", "--undo")
        assert not groups(n1), groups(n1)
        # A failed undo is reported, too.
        add(c, "worse", "exit 4", undo="exit 5")
        over = wait_step(c, "worse", "undone", "failed", "done")
        assert over["state"] == "failed" and "exit code 4; then the undo failed: exit code 5" in over["error"], over
        # The error has the exit code and the last printable line of the output; the rest is in the log.
        rows = {"echo 'the first line'; echo 'no\ttable is\033 here  ' >&2": "exit code 1: no table is  here",
                "printf 'without an end'": "exit code 1: without an end", "printf '\\377\\376\\n'": "exit code 1",
                "echo": "exit code 1", f"echo '{'ü' * 300}'": f"exit code 1: {'ü' * 120}"}
        for number, (script, want) in enumerate(rows.items()):
            add(c, f"words{number}", f"{script}; exit 1")
            over = wait_step(c, f"words{number}", "failed", "done")
            assert over["error"] == want, (script, over)


@case
def kills_of_the_agent_and_the_daemon():
    with Cluster() as c:
        n1 = c.node("n1")
        out, go = c.work / "out", c.work / "go"
        add(c, "long", f"echo begun >>{out}; while ! test -e {go}; do sleep 0.1; done; echo ended >>{out}")
        wait_for("it runs", lambda: lines(out) == ["begun"])
        n1.process.end(signal.SIGKILL)
        c.daemon.end(signal.SIGKILL)
        n1.start(ready=False)
        c.start()
        wait_for("the agent is back", lambda: c.get("/v1/nodes/n1")["status"]["state"] == "ready")
        time.sleep(0.5)
        assert lines(out) == ["begun"], lines(out)
        n1.process.end(signal.SIGKILL)
        go.touch()
        wait_for("it ends while there is no agent", lambda: lines(out) == ["begun", "ended"])
        c.daemon.end(signal.SIGKILL)
        n1.start(ready=False)
        time.sleep(0.3)
        n1.process.end(signal.SIGKILL)
        c.start()
        n1.start()
        wait_step(c, "long", "done")
        assert lines(out) == ["begun", "ended"], lines(out)
        # The agent is killed at many moments; each script starts exactly once.
        for i in range(6):
            add(c, f"k{i}", f"echo k{i} >>{out}; sleep 0.2")
            time.sleep(0.07 * i)
            n1.process.end(signal.SIGKILL)
            n1.start()
            over = wait_step(c, f"k{i}", "done", "failed")
            assert over["state"] == "done" and lines(out).count(f"k{i}") == 1, (over, lines(out))


@case
def interrupted_scripts_resume_or_are_undone():
    with Cluster() as c:
        n1 = c.node("n1")
        out = c.work / "out"
        # Exit code 75: the script runs again, with the same checkpoint.
        add(c, "steps", f"""n=$(cat "$BERTH_CHECKPOINT/n" 2>/dev/null || echo 0)
echo "step$n" >>{out}
echo $((n + 1)) >"$BERTH_CHECKPOINT/n"
test "$n" -ge 2 || exit 75
""")
        wait_step(c, "steps", "done", "failed")
        assert lines(out) == ["step0", "step1", "step2"], lines(out)

        def power_failure(key):
            """Kills the agent, the shim and the whole script at once."""
            wait_for("it runs", lambda: key in lines(out))
            n1.process.end(signal.SIGKILL)
            for shim in (n1.state / "optasks/instances").glob("*/shim"):
                os.kill(int(shim.read_text().split()[0]), signal.SIGKILL)
            time.sleep(0.2)
            n1.start()

        add(c, "again", f"""touch "$BERTH_CHECKPOINT/resumable"; echo again >>{out}
test "$BERTH_ATTEMPT" = 2 || sleep 1000""")
        power_failure("again")
        wait_step(c, "again", "done", "failed")
        assert lines(out).count("again") == 2, lines(out)
        add(c, "gone", f"echo gone >>{out}; sleep 1000", undo=f"echo back >>{out}")
        power_failure("gone")
        over = wait_step(c, "gone", "undone", "failed", "done")
        assert over["state"] == "undone" and over["fault"] == "lost", over
        assert lines(out).count("gone") == 1 and lines(out).count("back") == 1, lines(out)


@case
def a_run_given_up_as_lost_can_be_retried():
    with Cluster(options=["--lease", "1"]) as c:
        n1 = c.node("n1")
        out, go = c.work / "out", c.work / "go"
        add(c, "slow", f"echo begun >>{out}; while ! test -e {go}; do sleep 0.1; done", timeout="20s")
        wait_for("it runs", lambda: lines(out) == ["begun"])
        n1.process.kill(signal.SIGSTOP)
        time.sleep(1)
        go.touch()  # the script succeeds, but no agent reports it
        wait_step(c, "slow", "failed")
        assert step(c, "slow")["fault"] == "lost"
        c.berth("optask", "retry", "slow")
        n1.process.kill(signal.SIGCONT)
        over = wait_step(c, "slow", "done", "undone", "failed")
        assert over["state"] == "done" and lines(out) == ["begun"], (over, lines(out))


@case
def unpinned_scripts_are_refused():
    with Cluster() as c:
        n1 = c.node("n1")
        out = c.work / "out"
        n1.process.end()
        add(c, "pinned", f"echo honest >>{out}")
        wait_step(c, "pinned", "running")
        item = c.get("/v1/optasks/pinned")
        record = {"key": "pinned", "content": item["content"], "attempt": 1, "phase": "run", "state": "running",
                  "run": 1, "item": {"script": f"echo forged >>{out}", "sha256": item["sha256"], "timeout_ns": 10 ** 9}}
        keys = n1.state / "optasks/keys"
        keys.mkdir(parents=True, exist_ok=True)
        (keys / "pinned.json").write_text(json.dumps(record))
        n1.start()
        refused = wait_step(c, "pinned", "failed", "done")
        assert refused["state"] == "failed" and refused["fault"] == "refused", refused
        assert not out.exists()


@case
def an_unwritable_record_delays_reports_and_starts():
    """A folder in the way makes the record of a key unwritable for a while, as on a full disk."""
    with Cluster() as c:
        n1 = c.node("n1")
        out, go = c.work / "out", c.work / "go"
        keys = n1.state / "optasks/keys"

        def unwritten(key):
            return any("optask.unwritten" in line and key in line for line in n1.process.log)

        # An ended run is neither reported nor forgotten before it is recorded.
        add(c, "slow", f"echo begun >>{out}; while ! test -e {go}; do sleep 0.1; done")
        wait_for("it runs", lambda: lines(out) == ["begun"])
        (keys / "slow.json.new").mkdir()
        go.touch()
        wait_for("it has ended", lambda: unwritten("slow"))
        time.sleep(0.5)
        assert step(c, "slow")["state"] == "running"
        n1.process.end(signal.SIGKILL)
        (keys / "slow.json.new").rmdir()
        n1.start()
        wait_step(c, "slow", "done", "failed")
        assert lines(out) == ["begun"], lines(out)
        # Nor is it undone before; afterwards it continues by itself.
        add(c, "bad", f"echo bad >>{out}; mkdir {keys}/bad.json.new; exit 3", undo=f"echo back >>{out}")
        wait_for("it has ended", lambda: unwritten("bad"))
        time.sleep(0.5)
        assert lines(out) == ["begun", "bad"], lines(out)
        (keys / "bad.json.new").rmdir()
        over = wait_step(c, "bad", "undone", "failed")
        assert over["state"] == "undone" and lines(out) == ["begun", "bad", "back"], (over, lines(out))
        # A run that cannot be recorded does not start, is reported at once, and leaves nothing behind.
        (keys / "new.json.new").mkdir()
        add(c, "new", f"echo new >>{out}", undo=f"echo back >>{out}")
        over = wait_step(c, "new", "failed", "done", "undone")
        assert over["state"] == "failed" and "cannot record its start" in over["error"], over
        (keys / "new.json.new").rmdir()
        assert not (keys / "new.json").exists() and lines(out) == ["begun", "bad", "back"]
        c.berth("optask", "retry", "new")
        wait_step(c, "new", "done")
        assert lines(out)[3:] == ["new"], lines(out)
        assert not list((n1.state / "optasks/instances").iterdir())


@case
def a_run_that_never_started_is_not_undone():
    with Cluster() as c:
        n1 = c.node("n1")
        out = c.work / "out"
        (n1.state / "optasks/instances/1").mkdir()  # in the way of the first run
        add(c, "never", f"echo never >>{out}", undo=f"echo back >>{out}")
        over = wait_step(c, "never", "failed", "undone", "done")
        assert over["state"] == "failed" and not out.exists(), (over, lines(out))
        c.berth("optask", "retry", "never")
        wait_step(c, "never", "done")
        assert lines(out) == ["never"], lines(out)


@case
def a_retry_resets_the_count_of_runs():
    with Cluster() as c:
        n1 = c.node("n1")
        out, flag, keys = c.work / "out", c.work / "flag", n1.state / "optasks/keys"
        add(c, "tries", f"""test -e {flag} || exit 3
echo "attempt$BERTH_ATTEMPT" >>{out}
test ! -e "$BERTH_CHECKPOINT/once" || exit 0
touch "$BERTH_CHECKPOINT/once"
exit 75""")
        wait_step(c, "tries", "failed")
        n1.process.end(signal.SIGKILL)
        record = json.loads((keys / "tries.json").read_text())
        assert record["tries"] == 1, record
        (keys / "tries.json").write_text(json.dumps(dict(record, tries=100)))
        flag.touch()
        n1.start()
        c.berth("optask", "retry", "tries")
        over = wait_step(c, "tries", "done", "failed")
        assert over["state"] == "done" and lines(out) == ["attempt2", "attempt3"], (over, lines(out))


@case
def the_folder_of_an_ended_run_is_removed():
    with Cluster() as c:
        n1 = c.node("n1")
        runs, started, out, go = (n1.state / "optasks/instances", n1.state / "optasks/started",
                                  c.work / "out", c.work / "go")
        add(c, "k", f"echo begun >>{out}; while ! test -e {go}; do sleep 0.1; done")
        wait_for("it runs", lambda: lines(out) == ["begun"])
        shutil.copytree(runs / "1", c.work / "run")
        shutil.copy(started, c.work / "started")
        go.touch()
        wait_step(c, "k", "done")
        wait_for("it is cleared away", lambda: not list(runs.iterdir()))
        n1.process.end(signal.SIGKILL)
        # The state of an agent that was killed just after it recorded the result.
        shutil.copytree(c.work / "run", runs / "1")
        shutil.copy(c.work / "started", started)
        n1.start()
        wait_for("it is cleared away", lambda: not list(runs.iterdir()))
        assert step(c, "k")["state"] == "done" and lines(out) == ["begun"], lines(out)


@case
def a_refusal_is_repeated_until_the_daemon_receives_it():
    with Cluster() as c:
        n1 = c.node("n1")
        add(c, "k", "true")
        wait_step(c, "k", "done")
        assert c.ask("DELETE", "/v1/optasks/k")[0] == 204
        n1.process.kill(signal.SIGSTOP)
        add(c, "k", "echo other")
        wait_step(c, "k", "running")
        time.sleep(1)  # the agent has the configuration in its buffers when the daemon dies
        c.daemon.end(signal.SIGKILL)
        n1.process.kill(signal.SIGCONT)
        wait_for("nobody hears it", lambda: any("control.unreachable" in line for line in n1.process.log))
        c.start()
        over = wait_step(c, "k", "failed", "done")
        assert over["state"] == "failed" and over["fault"] == "refused", over


@case
def retry_undo_and_a_rollout():
    with Cluster() as c:
        c.node("n1")
        c.node("n2")
        flag, out = c.work / "flag", c.work / "out"
        status, _ = c.ask("POST", "/v1/optasks", {
            "id": "roll", "nodes": ["n1", "n2"], "undo": "self",
            "script": f"if test -n \"$BERTH_UNDO\"; then echo undo-$BERTH_NODE >>{out}; exit; fi\n"
                      f"echo $BERTH_NODE >>{out}; test -e {flag}"})
        assert status == 201
        over = wait_step(c, "roll", "undone", "failed", "done")
        assert over["state"] == "undone" and over["fault"] == "script", over
        wait_for("it stops", lambda: c.get("/v1/optasks/roll")["status"]["state"] == "stopped")
        assert step(c, "roll", "n2")["state"] == "pending"
        flag.touch()
        c.berth("optask", "retry", "roll")
        wait_for("done on both", lambda: c.get("/v1/optasks/roll")["status"]["state"] == "done")
        assert lines(out) == ["n1", "undo-n1", "n1", "n2"], lines(out)
        # Its manifest applies unchanged; another script under the same key is refused there, too.
        manifest = c.berth("get", "optasks", "-o", "yaml")
        assert "unchanged" in c.berth("apply", "-f", "-", stdin=manifest)
        assert c.run("apply", "-f", "-", stdin=manifest.replace("echo undo-", "echo other-")).returncode == 6
        rows = c.berth("optask", "list").splitlines()
        assert rows[1].split()[:3] == ["roll", "done", "2/2"], rows
        c.berth("optask", "undo", "roll", "n2")
        wait_step(c, "roll", "undone", node="n2")
        assert lines(out)[-1] == "undo-n2" and step(c, "roll", "n1")["state"] == "done"


@case
def a_new_node_runs_init_optasks_first():
    with Cluster() as c:
        go = c.work / "go"
        status, _ = c.ask("POST", "/v1/optasks", {"id": "setup", "init": True,
                                                  "script": f"while ! test -e {go}; do sleep 0.1; done"})
        assert status == 201
        c.node("n1")
        wait_step(c, "setup", "running")
        job = c.job(["true"])
        time.sleep(1.5)
        assert c.get("/v1/nodes/n1")["state"] == "joining"
        assert not c.instances()
        go.touch()
        wait_step(c, "setup", "done")
        c.wait_state("jobs", job, "ended", "succeeded", "done")


@case
def the_examples_of_the_manual():
    """Runs the examples of the manual unchanged, on a node with its own /etc."""
    manual = pathlib.Path(os.environ["BERTH_SOURCE"], "docs/optasks.md").read_text()
    examples = [part.split("```")[0] for part in manual.split("```sh\n")[1:]]
    assert len(examples) >= 5
    with Cluster() as c:
        own = c.work / "own"
        shutil.copytree("/etc", own, symlinks=True)
        inside = c.work / "inside"
        inside.write_text(f'#!/bin/sh\nmount --bind {own} /etc && exec "$@"\n')
        inside.chmod(0o755)
        c.node("n1", prefix=["unshare", "--mount", "--propagation", "private", inside])
        before = (own / "motd").read_text() if (own / "motd").exists() else None
        env = dict(c.berth_env(), PATH=f"{BUILD}/src/cli:{os.environ['PATH']}")
        for example in examples:
            done = subprocess.run(["bash", "-eu", "-o", "pipefail", "-c", example], env=env, cwd=c.work, text=True,
                                  capture_output=True, check=False)
            assert done.returncode == 0, f"{example}\n{done.stdout}{done.stderr}"
        said = c.berth("optask", "logs", "hello", "n1")
        assert said == "this is n1, for the-cellar\n", said
        assert c.berth("optask", "logs", "steps") == "step 2 of 2\n"
        assert len(c.get("/v1/optasks")["items"]) == 4
        assert ((own / "motd").read_text() if (own / "motd").exists() else None) == before
        assert step(c, "motd")["state"] == "undone"


if __name__ == "__main__":
    main()
