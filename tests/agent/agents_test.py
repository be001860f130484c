"""Cases of agents_test.sh: a cluster whose machines, programs and networks fail and return.

No case checks how long something took. The jobs themselves take a lock in the kernel, which shows whether two of a kind
ever ran at once (agents_net.SOLE).
"""
import shutil
import signal
import time

from agent_kit import AGENT, BERTH, BERTHD, PATIENCE, SHIM, Agent, case, main, skip_unless, skip_unless_root, wait_for
from agents_net import FENCE_S, LEASE_S, Clock, NetCluster, fence_round

skip_unless(BERTH, BERTHD, AGENT, SHIM, "python3", "ip", "nsenter", "unshare")
skip_unless_root()
DAY_S = 86400
SLEEP = ["/bin/sleep", "600"]


@case
def a_lost_replica_is_replaced_and_the_extra_one_stops():
    with NetCluster(4) as c:
        app = c.app(name="web", command=SLEEP, replicas=3, on_lost="replace", max_per_node=1)
        wait_for("three are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 3)
        cut = c.instances(app)[0]["node"]
        agent = c.agents[cut]
        before = agent.processes()
        assert before
        c.net.cut(cut)
        c.wait_node(cut, "lost")
        assert c.lost_ever()
        wait_for("three are ready elsewhere", lambda: sum(
            i["ready"] and i["node"] != cut for i in c.instances(app)) == 3)
        assert agent.processes() == before, "a replicated service goes on where it is cut off"
        c.net.heal(cut)
        c.wait_node(cut, "ready")
        wait_for("the extra one is gone", lambda: len(c.instances(app)) == 3 and sum(
            len(a.instances()) for a in c.agents.values()) == 3 and c.get(f"/v1/apps/{app}")["status"]["ready"] == 3)
        assert not set(before) & set(agent.processes())


@case
def a_fenced_job_never_runs_twice():
    with NetCluster(4) as c:
        job = c.sole()
        fence_round(c, job, "cut")
        fence_round(c, job, "cut", kill=signal.SIGKILL)


PAUSED_LEASE_S = 8  # no agent may be lost: longer than a busy machine delays an agent


@case
def a_paused_daemon_loses_no_nodes():
    with NetCluster(3, lease=PAUSED_LEASE_S) as c:
        app = c.app(name="web", command=SLEEP, replicas=3, on_lost="replace", max_per_node=1)
        job = c.job(SLEEP)
        wait_for("three are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 3)
        c.wait_state("jobs", job, "running")
        before = {n: a.processes() for n, a in c.agents.items()}
        instances = [i["id"] for i in c.instances()]
        c.daemon.kill(signal.SIGSTOP)
        time.sleep(PAUSED_LEASE_S + 4)
        c.daemon.kill(signal.SIGCONT)
        c.wait_state("jobs", c.job(["/bin/true"], name="after"), "ended")
        wait_for("all is as it was", lambda: [i["id"] for i in c.instances() if i["state"] == "running"] == instances)
        time.sleep(PAUSED_LEASE_S)
        assert not c.lost_ever(), c.lost_ever()
        assert {n: a.processes() for n, a in c.agents.items()} == before


@case
def nothing_is_replaced_when_many_nodes_are_lost_at_once():
    with NetCluster(5) as c:
        app = c.app(name="web", command=SLEEP, replicas=5, on_lost="replace", max_per_node=1)
        wait_for("five are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 5)
        instances = sorted(i["id"] for i in c.instances())
        before = {n: a.processes() for n, a in c.agents.items()}
        assert "alarm" not in c.berth("status")
        for name in ("n1", "n2", "n3"):
            c.net.cut(name)
        for name in ("n1", "n2", "n3"):
            c.wait_node(name, "lost")
        wait_for("the alarm shows", lambda: "alarm" in c.berth("status").lower())
        time.sleep(LEASE_S)
        assert sorted(i["id"] for i in c.instances()) == instances, "something was replaced"
        for name in ("n1", "n2", "n3"):
            c.net.heal(name)
        c.wait_all()
        wait_for("five are ready again", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 5)
        wait_for("the alarm is over", lambda: "alarm" not in c.berth("status").lower())
        assert {n: a.processes() for n, a in c.agents.items()} == before


@case
def of_two_agents_with_one_name_the_newer_stays():
    with NetCluster(1) as c:
        old = c.agents["n1"]
        job = c.job(SLEEP)
        c.wait_state("jobs", job, "running")
        assert old.processes()
        new = c.agents["copy"] = Agent(c, "copy", c.net.host("copy"))
        shutil.copytree(old.state, new.state)
        new.start()
        assert old.process.process.wait(PATIENCE) == 3, old.process.log[-5:]
        assert not old.processes(), "it ended before what it ran"
        c.wait_node("n1", "ready")
        after = c.job(["/bin/true"], name="after")
        c.wait_state("jobs", after, "ended")


@case
def of_two_machines_from_one_image_one_stays():
    with NetCluster(1) as c:
        one = c.agents["n1"]
        one.process.end()
        two = c.agents["copy"] = Agent(c, "copy", c.net.host("copy"))
        shutil.copytree(one.state, two.state)
        for agent in (one, two):
            agent.start(ready=False)
        wait_for("one gives way", lambda: 3 in (one.process.process.poll(), two.process.process.poll()))
        left = one if two.process.process.poll() == 3 else two
        jobs = [c.job(["/bin/sh", "-c", f"echo begin $BERTH_INSTANCE >>{c.shared}/diary"], name=f"t{n}")
                for n in range(5)]
        for job in jobs:
            c.wait_state("jobs", job, "ended")
        assert len(c.diary()) == len(set(map(tuple, c.diary()))) == 5, c.diary()
        assert left.process.process.poll() is None


def running(c):
    return {n: a.processes() for n, a in c.agents.items()}


def settled(c):
    """Returns the running processes, once no more are being started."""
    first = running(c)
    time.sleep(1)
    return first if first == running(c) and all(first.values()) else None


AWAY_S = 60  # longer than a restart of an agent, much shorter than a clock jump


@case
def clock_jumps_expire_nothing():
    skip_unless("cc")
    with ClockCluster(3) as c:
        app = c.app(name="web", command=SLEEP, replicas=3, on_lost="replace", max_per_node=1)
        sole = c.sole(fence=AWAY_S)
        wait_for("three are ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 3)
        c.instance_of(sole)
        before = wait_for("all of it runs", lambda: settled(c))
        for who, days in (("berthd", 1), ("n1", -1), ("n1", 1), ("n1", 0), ("berthd", -1), ("berthd", 0)):
            c.clocks[who].set(days * DAY_S)
            time.sleep(LEASE_S / 2)
            c.agents["n1"].process.end()  # a restart checks the certificates
            c.agents["n1"].start()
            ran = c.job(["/bin/true"], name=f"{who}{days}")
            c.wait_state("jobs", ran, "ended")
            assert not c.lost_ever(), (who, days, c.lost_ever())
            wait_for(f"the same runs after {who} {days}", lambda: running(c) == before)
        time.sleep(FENCE_S)
        wait_for("the same runs in the end", lambda: running(c) == before)


WRONG_S = 14  # shorter than a lease


@case
def a_clock_that_was_weeks_ahead_leaves_no_traces():
    skip_unless("cc")
    with ClockCluster(2) as c:
        limited = c.job(SLEEP, name="limited", time_limit="1h")
        c.wait_state("jobs", limited, "running")
        before = wait_for("it runs", lambda: sum(map(len, running(c).values())) and running(c))
        assert "alarm" not in c.berth("status")
        c.clocks["berthd"].set(20 * DAY_S)  # agents' certificates are valid for two weeks
        wait_for("the alarm", lambda: "clock" in [a["alarm"] for a in c.get("/v1/alarms")["items"]])
        assert "ahead of the time that berthd uses" in c.berth("status")
        assert [e for e in c.get("/v1/events?limit=500")["items"] if e["type"] == "Alarm"]
        time.sleep(WRONG_S)
        c.clocks["berthd"].set(0)
        after = c.app(name="after", command=SLEEP, replicas=2, max_per_node=1)
        wait_for("both nodes are heard again, though berthd was not started anew",
                 lambda: c.get(f"/v1/apps/{after}")["status"]["ready"] == 2)
        assert not c.lost_ever(), c.lost_ever()
        assert c.state("jobs", limited) == "running" and all(set(before[n]) <= set(running(c)[n]) for n in before)
        wait_for("the alarm is over", lambda: not c.get("/v1/alarms")["items"])


class ClockCluster(NetCluster):
    """A cluster in which the daemon and n1 have clocks of their own."""

    def __init__(self, count):
        super().__init__(count, lease=AWAY_S)
        self.clocks = {name: Clock(self.work, name) for name in ("berthd", "n1")}
        self.prefix = self.clocks["berthd"].prefix

    def agent(self, name, prefix=(), options=()):
        return super().agent(name, [*prefix, *(self.clocks[name].prefix if name in self.clocks else [])], options)


main()
