"""Cases of agents_check.sh: every kind of silence, links that flap, a daemon that is down for longer, kills at random."""
import os
import random
import signal
import time

from agent_kit import AGENT, BERTH, BERTHD, SHIM, case, main, skip_unless, skip_unless_root, wait_for
from agents_net import LEASE_S, NetCluster, fence_round

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3", "ip", "nsenter", "unshare")
skip_unless_root()
SLEEP = ["/bin/sleep", "600"]
CHAOS_S = 60
SEED = int(os.environ.get("BERTH_SEED", random.randrange(1 << 30)))


@case
def no_kind_of_silence_makes_two():
    with NetCluster(4) as c:
        job = c.sole()
        for how, kill in (("cut", None), ("mute", None), ("deafen", None), ("cut", signal.SIGKILL), ("mute", signal.SIGSTOP),
                          ("deafen", signal.SIGKILL), (None, signal.SIGKILL), (None, signal.SIGSTOP)):
            fence_round(c, job, how, kill)


@case
def a_link_that_flaps_makes_no_two_either():
    draw = random.Random(SEED)
    with NetCluster(4) as c:
        job = c.sole()
        end = time.monotonic() + 40
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
def the_daemon_is_down_and_nothing_stops():
    with NetCluster(3) as c:
        app = c.app(name="web", command=SLEEP, replicas=3, max_per_node=1)
        job = c.job(SLEEP)
        wait_for("three are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 3)
        c.wait_state("jobs", job, "running")
        short = c.job(["/bin/sh", "-c", f"sleep 5; echo end $BERTH_INSTANCE >>{c.shared}/diary"], name="short")
        c.wait_state("jobs", short, "running")
        before = {n: a.processes() for n, a in c.agents.items()}
        instances = sorted(i["id"] for i in c.instances() if i["workload"] != str(short))
        c.daemon.end(signal.SIGKILL)
        wait_for("one ends while nobody listens", lambda: len(c.diary()) == 1)
        time.sleep(10 * LEASE_S)
        gone = set(sum(before.values(), [])) - set(sum((a.processes() for a in c.agents.values()), []))
        c.start()
        c.wait_state("jobs", short, "ended")
        assert len(c.diary()) == 1, c.diary()
        assert sorted(i["id"] for i in c.instances() if i["workload"] != str(short)) == instances
        assert not c.lost_ever(), c.lost_ever()
        assert len(gone) <= 2, gone  # the shell and the sleep of the one that ended


# It says when it begins and when it has done its work; a second one of the same number would be seen.
WORK = 'me="$BERTH_WORKLOAD $BERTH_INSTANCE"; echo "begin $me" >>"$1"/diary; sleep "$2"; echo "end $me" >>"$1"/diary'


def submit(c, draw, number):
    for _ in range(100):
        try:
            status, answer = c.ask("POST", "/v1/jobs", {
                "name": f"w{number}", "command": ["/bin/sh", "-c", WORK, "sh", str(c.shared), f"{draw.uniform(0, 6):.1f}"],
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
def kills_at_random_lose_and_double_nothing():
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
            # One that did its work and is begun again was not believed: only where its end could not be kept.
            assert len(ends) <= 1, f"seed {SEED}: job {job} did its work {len(ends)} times"
        wait_for("nothing is left", lambda: not any(a.instances() or a.processes() for a in c.agents.values()))
        print(f"# seed {SEED}: {len(jobs)} jobs, {len(begun)} starts")


main()
