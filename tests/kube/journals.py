"""journals.py - berth-kube with a journal: its folders in tests, and a replay of every plan in it."""
import json
import os
import pathlib
import subprocess

PROGRAM = pathlib.Path(os.environ["BERTH_BUILD"]) / "src/kube/berth-kube"


def words(plane, name):
    """Returns options for a berth-kube of this name; a restarted one continues in the same folder."""
    return ["--journal", plane.work / f"journal-{name}"]


def installs(plane, manifests):
    """An API server accepts the component, which makes a volume for each replica."""
    folder = plane.work / "with-journal"
    folder.mkdir()
    where = pathlib.Path(os.path.relpath(manifests, folder.resolve()))
    (folder / "kustomization.yaml").write_text(json.dumps(
        {"resources": [str(where)], "components": [str(where / "components/journal")]}))
    made = plane.kubectl("kustomize", folder)
    assert ("kind: StatefulSet" in made and "kind: Deployment" not in made and
            "--journal=/var/lib/berth-kube" in made), made
    plane.kubectl("apply", "--dry-run=server", "-k", folder)


def replay(folder):
    done = subprocess.run([PROGRAM, "replay", folder, "-o", "json"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and done.stdout, done
    return json.loads(done.stdout)


def every_plan_is_made_again(plane):
    """Replays the journals of all berth-kubes: ended, killed and running ones."""
    plans = 0
    for folder in sorted(plane.work.glob("journal-*")):
        told = replay(folder)
        assert told["different"] == 0 and told["skipped"] == 0 and told["gaps"] == 0, (
            folder.name, json.dumps(told)[:4000])
        print(f"# {folder.name}: {told['plans']} plans, {told['inputs']} inputs, {told['bases']} bases", flush=True)
        plans += told["plans"]
    assert plans > 10, plans
