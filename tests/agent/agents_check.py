"""Cases of agents_check.sh: every kind of lost connection, flapping links, a longer outage of the daemon, random
kills."""
import os
import random
import signal
import time

from agent_kit import AGENT, BERTH, BERTHD, SHIM, case, net_sandbox_of, main, skip_unless, skip_unless_root, wait_for
from agents_net import NetCluster, fence_round

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3", "ip", "nsenter", "unshare")
skip_unless_root()
SLEEP = ["/bin/sleep", "600"]
FLAPS_S, CHAOS_S = 80, 60
# Longer than any program is delayed on a busy machine: a connected node is neither lost nor fenced, and on a
# disconnected node the instance has ended within a lease after its fence.
LEASE_S, FENCE_S = 6, 8
SEED = int(os.environ.get("BERTH_SEED", random.randrange(1 << 30)))


@case
def no_lost_connection_runs_a_job_twice():
    with NetCluster(4, lease=LEASE_S) as c:
        job = c.sole(FENCE_S)
        for how, kill in (("cut", None), ("mute", None), ("deafen", None), ("cut", signal.SIGKILL),
                          ("mute", signal.SIGSTOP),
                          ("deafen", signal.SIGKILL), (None, signal.SIGKILL), (None, signal.SIGSTOP)):
            fence_round(c, job, how, kill)


@case
def a_flapping_link_runs_no_job_twice():
    draw = random.Random(SEED)
    with NetCluster(4, lease=LEASE_S) as c:
        job = c.sole(FENCE_S)
        end = time.monotonic() + FLAPS_S
        while time.monotonic() < end:
            name = draw.choice(list(c.agents))
            getattr(c.net, draw.choice(["cut", "mute", "deafen"]))(name)
            time.sleep(draw.uniform(0.1, 2 * LEASE_S))
            c.net.heal(name)
            time.sleep(draw.uniform(0.1, 2))
            assert not [line for line in c.diary() if line[0] == "overlap"], (SEED, c.diary())
        c.wait_all()
        node, instance = c.instance_of(job)
        wait_for("one is left", lambda: sum(len(a.instances()) for a in c.agents.values()) == 1)
        begun = [line[1] for line in c.diary()]
        assert len(begun) == len(set(begun)), (SEED, c.diary())


@case
def a_paused_net_sandbox_is_replaced():
    with NetCluster(2) as c:
        job = c.job(SLEEP)
        c.wait_state("jobs", job, "running")
        name, _ = c.instance_of(job)
        agent = c.agents[name]
        before, half = agent.processes(), wait_for("the net sandbox runs", lambda: net_sandbox_of(agent))
        os.kill(half, signal.SIGSTOP)
        wait_for("there is another", lambda: net_sandbox_of(agent) not in (None, half))
        c.wait_all()
        assert agent.processes() == before
        wait_for("it says why", lambda: any("net sandbox does not answer" in line for line in agent.process.log))


@case
def workloads_run_while_the_daemon_is_down():
    with NetCluster(3, lease=2 * LEASE_S) as c:
        app = c.app(name="web", command=SLEEP, replicas=3, max_per_node=1)
        job = c.job(SLEEP)
        wait_for("three are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 3)
        c.wait_state("jobs", job, "running")
        go = c.shared / "go"
        os.mkfifo(go)
        go.chmod(0o666)
        short = c.job(["/bin/sh", "-c", f"read word <{go}; echo end $BERTH_INSTANCE >>{c.shared}/diary"], name="short")
        c.wait_state("jobs", short, "running")
        before = {n: a.processes() for n, a in c.agents.items()}
        instances = sorted(i["id"] for i in c.instances() if i["workload"] != str(short))
        c.daemon.end(signal.SIGKILL)
        go.write_text("now\n")
        wait_for("one ends while nobody listens", lambda: len(c.diary()) == 1)
        time.sleep(5 * LEASE_S)
        gone = set(sum(before.values(), [])) - set(sum((a.processes() for a in c.agents.values()), []))
        c.start()
        c.wait_state("jobs", short, "ended")
        assert len(c.diary()) == 1, c.diary()
        assert sorted(i["id"] for i in c.instances() if i["workload"] != str(short)) == instances
        assert not c.lost_ever(), c.lost_ever()
        assert len(gone) <= 1, gone  # the shell of the job that ended


# Records when the instance begins and when its work is done, so that a second run of the same instance is detected.
WORK = 'me="$BERTH_WORKLOAD $BERTH_INSTANCE"; echo "begin $me" >>"$1"/diary; sleep "$2"; echo "end $me" >>"$1"/diary'


def submit(c, draw, number):
    for _ in range(100):
        try:
            status, answer = c.ask("POST", "/v1/jobs", {
                "name": f"w{number}",
                "command": ["/bin/sh", "-c", WORK, "sh", str(c.shared), f"{draw.uniform(0, 6):.1f}"],
                "on_lost": "fence", "fence": "20s"})
            if status == 201:
                return answer["id"]
        except OSError:  # the daemon is being killed
            pass
        time.sleep(0.1)
    raise AssertionError("no job is taken")


def kill_someone(c, draw):
    victim = draw.choice(["daemon", *c.agents, *c.agents])
    if victim == "daemon":
        c.daemon.end(signal.SIGKILL)
        time.sleep(draw.uniform(0, 1))
        c.start()
        return
    agent = c.agents[victim]
    agent.process.end(signal.SIGKILL)
    time.sleep(draw.uniform(0, 1))
    agent.start(ready=False)


@case
def random_kills_lose_and_repeat_no_job():
    draw = random.Random(SEED)
    with NetCluster(4, ["--audit-every", "1"]) as c:
        jobs, end = [], time.monotonic() + CHAOS_S
        while time.monotonic() < end:
            jobs.extend(submit(c, draw, len(jobs) + n) for n in range(draw.randrange(3)))
            kill_someone(c, draw)
            time.sleep(draw.uniform(0, 1.5))
        c.wait_all()
        for job in jobs:
            c.wait_state("jobs", job, "ended", "failed")
        begun = [tuple(line[1:]) for line in c.diary() if line[0] == "begin"]
        ended = [tuple(line[1:]) for line in c.diary() if line[0] == "end"]
        assert len(begun) == len(set(begun)), f"seed {SEED}: an instance ran twice: {sorted(begun)}"
        assert set(ended) <= set(begun) and len(ended) == len(set(ended))
        for job in jobs:
            ends = [line for line in ended if line[0] == str(job)]
            begins = [line for line in begun if line[0] == str(job)]
            if c.state("jobs", job) == "ended":
                assert ends, f"seed {SEED}: job {job} is said to have ended, and has not: {begins}"
            # A job that did its work may be started again if its end was not recorded, but then it must not end twice.
            assert len(ends) <= 1, f"seed {SEED}: job {job} did its work {len(ends)} times"
        wait_for("nothing is left", lambda: not any(a.instances() or a.processes() for a in c.agents.values()))
        print(f"# seed {SEED}: {len(jobs)} jobs, {len(begun)} starts")


main()
