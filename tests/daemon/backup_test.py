"""Cases of backup_test.sh: berth backup and berth restore, with a real daemon and a real agent."""
import os
import pathlib
import shutil

from agent_kit import AGENT, BERTH, BERTHD, SHIM, Cluster, case, main, skip_unless, skip_unless_root, wait_for

skip_unless(BERTH, BERTHD, AGENT, SHIM)
skip_unless_root()
PHRASE = "a passphrase for tests"
MAGIC = b"BerthBk1"


def secret_file(cluster, name, text):
    path = cluster.work / name
    path.write_text(text)
    os.chmod(path, 0o600)
    return path


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@case
def a_restored_daemon_is_accepted_by_its_agent():
    with Cluster() as c:
        agent = c.node("n1")
        assert c.run("secret", "set", "pass", "word=hush").returncode == 0
        app = c.app(name="web", command=["/bin/sleep", "600"])
        job = c.job(["/bin/sleep", "600"])
        c.wait_state("jobs", job, "running")
        wait_for("the app is ready", lambda: c.get(f"/v1/apps/{app}")["status"]["ready"] == 1)
        processes = agent.processes()
        instances = sorted(i["id"] for i in c.instances())
        phrase = secret_file(c, "phrase", PHRASE + "\n")
        file = c.work / "all.backup"
        c.berth("backup", file, "--passphrase-file", phrase)
        assert oct(file.stat().st_mode & 0o777) == "0o600"
        raw = file.read_bytes()
        assert raw.startswith(MAGIC)
        key = (c.work / "data/ca-key.pem").read_bytes()
        assert b"PRIVATE KEY" in key and b"PRIVATE KEY" not in raw and b"SQLite" not in raw
        secret_key = (c.work / "data/secret.key").read_text()

        c.daemon.end()
        shutil.rmtree(c.work / "data")
        c.berth("restore", file, "--data", c.work / "data", "--passphrase-file", "-", stdin=PHRASE)
        assert (c.work / "data/secret.key").read_text() == secret_key
        assert oct((c.work / "data/ca-key.pem").stat().st_mode & 0o777) == "0o600"
        assert not (c.work / "data/restore.tmp").exists()
        c.start()  # on the same addresses; the agent stays as it is
        c.wait_state("jobs", c.job(["/bin/true"], name="after"), "ended")
        assert c.get("/v1/nodes/n1")["state"] == "ready"
        assert c.state("jobs", job) == "running"
        assert sorted(i["id"] for i in c.instances() if i["state"] == "running") == instances
        assert set(processes) <= set(agent.processes()), "the same processes go on"
        told = c.job(["/bin/sh", "-c", "test \"$(cat /tmp/word)\" = hush && exec sleep 600"], name="secret",
                     files=[{"path": "/tmp/word", "secret": "pass", "key": "word"}])
        c.wait_state("jobs", told, "running")


@case
def refused_backups_and_restores_change_nothing():
    with Cluster() as c:
        phrase, wrong = secret_file(c, "phrase", PHRASE), secret_file(c, "wrong", "another passphrase")
        key, other = secret_file(c, "key", "00" * 31 + "17\n"), secret_file(c, "other", "00" * 32)
        short, shown = secret_file(c, "short", "short"), secret_file(c, "shown", PHRASE)
        os.chmod(shown, 0o644)
        by_phrase, by_key = c.work / "phrase.backup", c.work / "key.backup"
        refused = c.work / "refused.backup"
        rows = [
            (["backup", refused], 2, "--passphrase-file"),
            (["backup", refused, "--passphrase-file", short], 1, "8 to"),
            (["backup", refused, "--passphrase-file", shown], 1, "chmod 600"),
            (["backup", refused, "--passphrase-file", phrase, "--key-file", key], 2, "cannot be combined"),
            (["backup", refused, "--key-file", phrase], 1, "64 hexadecimal"),
            (["backup", refused, "--store-only", "--key-file", key], 2, "--store-only"),
        ]
        for words, code, says in rows:
            done = c.run(*words)
            assert done.returncode == code and says in done.stderr, f"{words}: {done.returncode} {done.stderr}"
            assert not refused.exists()
        c.berth("backup", by_phrase, "--passphrase-file", phrase)
        c.berth("backup", by_key, "--key-file", key, "--data", c.work / "data")
        assert c.run("backup", by_key, "--key-file", key).returncode == 1

        good = by_key.read_bytes()
        for name, bytes_ in (("cut", good[:-1]), ("half", good[:len(good) // 2]), ("head", good[:40]),
                             ("longer", good + b"x"),
                             ("flipped", good[:-100] + bytes([good[-100] ^ 1]) + good[-99:]),
                             ("none", b"no backup at all"), ("joined", good + good)):
            (c.work / f"{name}.backup").write_bytes(bytes_)
        target = c.work / "new"
        rows = [
            ([by_phrase], 2, "--passphrase-file"),
            ([by_phrase, "--passphrase-file", wrong], 1, "the passphrase does not match"),
            ([by_phrase, "--key-file", key], 2, "with a passphrase"),
            ([by_key, "--key-file", other], 1, "the key does not match"),
            ([by_key, "--passphrase-file", phrase], 2, "--key-file"),
            *[([c.work / f"{n}.backup", "--key-file", key], 1, "damaged or truncated")
              for n in ("cut", "half", "longer", "flipped", "joined")],
            ([c.work / "head.backup", "--key-file", key], 1, "truncated"),
            ([c.work / "none.backup", "--key-file", key], 1, "is not a backup"),
        ]
        for words, code, says in rows:
            done = c.run("restore", *words, "--data", target)
            assert done.returncode == code and says in done.stderr, f"{words}: {done.returncode} {done.stderr}"
            assert not target.exists(), words
        target.mkdir()
        (target / "a file").write_text("of somebody")
        done = c.run("restore", by_key, "--key-file", key, "--data", target)
        assert done.returncode == 1 and "is not empty" in done.stderr
        assert tree(target) == {"a file": b"of somebody"}
        before = tree(c.work / "data")
        assert c.run("restore", by_key, "--key-file", key, "--data", c.work / "data").returncode == 1
        assert tree(c.work / "data").keys() == before.keys()

        (target / "a file").unlink()  # an existing empty folder, such as a mounted disk, is accepted
        c.berth("restore", by_key, "--key-file", key, "--data", target)
        made = tree(target)
        for name in ("ca-cert.pem", "ca-key.pem", "agents-key.pem", "secret.key"):
            assert made[name] == before[name], name


@case
def only_administrators_get_the_keys():
    with Cluster() as c:
        assert c.ask("POST", "/v1/users", {"id": "op", "role": "operator"})[0] == 201
        status, answer = c.ask("POST", "/v1/tokens", {"user": "op"})
        assert status == 201, answer
        body = {"key": "11" * 32}
        assert c.ask("POST", "/v1/backup", body, token=answer["token"])[0] == 403
        for wrong in ({}, {"key": "11"}, {"key": "zz" * 32}, {"key": "11" * 32, "salt": "1"},
                      {"key": "11" * 32, "x": 1},
                      {"key": "11" * 32, "salt": "22" * 16}, {"key": "11" * 32, "journal": "no"}):
            assert c.ask("POST", "/v1/backup", wrong)[0] == 400, wrong
        assert not list(pathlib.Path("/tmp").glob(f"berth-backup-*.store-{c.daemon.pid}"))


@case
def the_backup_includes_the_journal():
    with Cluster() as c:
        assert c.ask("PATCH", "/v1/system/settings", {"journal_segment_s": 1})[0] == 200
        c.job(["/bin/true"], hold=True)
        wait_for("a segment", lambda: list((c.work / "data/journal").glob("*.seg")))
        key = secret_file(c, "key", "ab" * 32)
        c.berth("backup", c.work / "all.backup", "--key-file", key)
        c.berth("backup", c.work / "less.backup", "--key-file", key, "--no-journal")
        c.berth("restore", c.work / "all.backup", "--key-file", key, "--data", c.work / "all")
        c.berth("restore", c.work / "less.backup", "--key-file", key, "--data", c.work / "less")
        assert list((c.work / "all/journal").glob("*.seg")) and not (c.work / "less/journal").exists()
        c.berth("journal", "verify", "--data", c.work / "all")
        c.berth("replay", "--data", c.work / "all")


main()
