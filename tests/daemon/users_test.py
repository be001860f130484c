"""User ids of the cluster: two real agents had assigned different uids to the same users before the daemon assigned
any."""
import os
import pathlib
import signal

from agent_kit import AGENT, BERTH, BERTHD, SHIM, Cluster, case, main, skip_unless, skip_unless_root, wait_for

USERS = ("ann", "bob")
# An agent does not renumber while any process of the machine has the uid, so each test needs its own range.
FIRST = 210000 + os.getpid() % 40000 * 2
HISTORIES = {"n1": {"ann": FIRST, "bob": FIRST + 1}, "n2": {"bob": FIRST, "ann": FIRST + 1}}


def give(path, number):
    os.lchown(path, number, number)


def history(agent, numbers):
    """Writes the state folder of an agent that does not know the cluster's uids yet."""
    (agent.state / "users").write_text("".join(f"{user} {number}\n" for user, number in numbers.items()))
    for user, number in numbers.items():
        for folder in agent.state / "homes" / user, agent.state / "volumes" / f"data.{user}":
            folder.mkdir(parents=True, mode=0o700)
            (folder / "mine").write_text(user)
            (folder / "out").symlink_to(pathlib.Path("/etc/hostname"))
            for path in folder / "mine", folder / "out", folder:
                give(path, number)


def log_of(c, job):
    c.wait_state("jobs", job, "ended")
    return c.berth("logs", job).split()


@case
def users_have_one_uid_everywhere():
    with Cluster() as c:
        for user in USERS:
            c.berth("user", "add", user)
        numbers = {user: c.get(f"/v1/users/{user}")["uid"] for user in USERS}
        assert len(set(numbers.values())) == 2 and min(numbers.values()) >= 300000, numbers
        etc = os.stat("/etc/hostname")
        for name, before in HISTORIES.items():
            agent = c.agent(name).join()
            history(agent, before)
            agent.start()
            c.berth("node", "cordon", name)
        for name in HISTORIES:
            state = c.agents[name].state
            c.berth("node", "enable", name)
            for user in USERS:
                job = c.job(["/bin/sh", "-c", 'id -u; cat "$HOME/mine"; echo more >>"$HOME/mine"'], owner=user,
                            restart_policy="never")
                assert log_of(c, job) == [str(numbers[user]), user], (name, user, c.berth("logs", job))
                for folder in state / "homes" / user, state / "volumes" / f"data.{user}":
                    for path in folder, folder / "mine", folder / "out":
                        assert path.lstat().st_uid == path.lstat().st_gid == numbers[user], (path, path.lstat())
            c.berth("node", "cordon", name)
        after = os.stat("/etc/hostname")
        assert (etc.st_uid, etc.st_gid) == (after.st_uid, after.st_gid)


@case
def files_keep_their_uid_while_a_process_runs():
    with Cluster() as c:
        c.berth("user", "add", "ann")
        number = c.get("/v1/users/ann")["uid"]
        agent = c.agent("n1").join()
        history(agent, {"ann": FIRST})
        # Stands for a process that was started with the old uid by an agent that did not know the cluster's uids.
        pid = os.fork()
        if pid == 0:
            os.setresuid(FIRST, FIRST, FIRST)
            signal.pause()
        wait_for("it runs", lambda: os.stat(f"/proc/{pid}").st_uid == FIRST)
        try:
            agent.start()
            job = c.job(["/bin/sh", "-c", "id -u"], owner="ann", restart_policy="never")
            assert log_of(c, job) == [str(FIRST)], c.berth("logs", job)
            assert any("event=user.old-number" in line for line in agent.process.log), agent.process.log[-20:]
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        wait_for("nothing of ann is there", lambda: not agent.instances())
        job = c.job(["/bin/sh", "-c", "id -u; cat $HOME/mine"], owner="ann", restart_policy="never")
        assert log_of(c, job) == [str(number), "ann"], c.berth("logs", job)
        agent.process.end()
        agent.start()
        job = c.job(["/bin/sh", "-c", "id -u"], owner="ann", restart_policy="never")
        assert log_of(c, job) == [str(number)], c.berth("logs", job)


if __name__ == "__main__":
    skip_unless_root()
    skip_unless(BERTH, BERTHD, AGENT, SHIM)
    main()
