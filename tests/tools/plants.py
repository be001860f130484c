#!/usr/bin/env python3
"""Runs the simulator with each planted bug, seed after seed until a check detects it, and prints TAP.

    plants.py BERTH PLANT.H [NAME...]

BERTH was built with -Dplant=true. First, some seeds without a bug must pass; otherwise a detection would prove nothing.
Bugs whose names begin with TABLE_ break no invariant but must change the results of a trace: the simulators of traces
make no decisions themselves.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile

SEEDS = range(1, 41)
# Calm and faulty, small and large worlds: some bugs need many jobs, some need time.
KINDS = [
    ["--hours", "1"],
    ["--hours", "2", "--nodes", "3", "--users", "4", "--people", "200", "--trouble", "200"],
    ["--hours", "1", "--nodes", "6", "--users", "8", "--people", "200", "--trouble", "300"],
    ["--hours", "3", "--nodes", "4", "--users", "4", "--trouble", "150"],
]


def run(berth, plant, seed):
    """Returns None if the bug was not detected, else (the check that detected it, events)."""
    command = [berth, "sim", "cluster", "--seed", str(seed), "-o", "json", *KINDS[seed % len(KINDS)]]
    done = subprocess.run(command, env={**os.environ, "BERTH_PLANT": plant}, capture_output=True, text=True,
                          timeout=600)
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        assertion = re.search(r"Assertion .*", done.stderr)
        return (assertion[0] if assertion else f"signal {-done.returncode}", "?", command)
    said = json.loads(done.stdout)
    number = said["breach"]["invariant"]
    return (f"P{number - 100}" if number > 100 else f"invariant {number}", said["events"], command)


# Small traces: files, and the commands that run on them.
TABLES = [
    (
        {
            "nodes": "sn,cpu_milli,memory_mib,gpu,model\na,4000,4,2,T4\nb,8000,4,1,P100\n",
            "pods": "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,1000,1,1,500\np1,1000,1,2,1000\np2,1000,1,0,0\n",
            "arrivals": "# pods 3\n2\n0\n1\n# nodes 2\n0\n1\n",
        },
        ["openb", "--nodes", "{nodes}", "--pods", "{pods}", "--arrivals", "{arrivals}", "--policy", "bestfit", "-o",
         "csv"],
    ),
]


def tables(berth, plant):
    """Returns the results of the traces."""
    said = []
    for files, command in TABLES:
        with tempfile.TemporaryDirectory() as folder:
            paths = {name: os.path.join(folder, name) for name in files}
            for name, text in files.items():
                with open(paths[name], "w", encoding="ascii") as file:
                    file.write(text)
            words = [word.format(**paths) for word in command]
            done = subprocess.run([berth, "sim", *words], env={**os.environ, "BERTH_PLANT": plant}, capture_output=True,
                                  text=True, timeout=600, check=True)
            said.append(done.stdout)
    return said


def hunt(berth, plant):
    if plant.startswith("TABLE_"):
        changed = [command for (_, command), a, b in zip(TABLES, tables(berth, "none"), tables(berth, plant)) if a != b]
        return plant, 1, (("a table", "?", changed[0]) if changed else None)
    for count, seed in enumerate(SEEDS, 1):
        found = run(berth, plant, seed)
        if found:
            return plant, count, found
    return plant, len(SEEDS), None


def main():
    berth, header, *only = sys.argv[1:]
    with open(header, encoding="utf-8") as file:
        plants = dict(re.findall(r'X\((\w+),\s*"([^"]+)"\)', file.read().replace("\\\n", "")))
    names = [name for name in plants if not only or name in only]
    print(f"1..{len(names) + 1}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        healthy = list(pool.map(lambda seed: run(berth, "none", seed), range(1, 9)))
        broken = [found for found in healthy if found]
        print(f"{'not ok' if broken else 'ok'} 1 - without a bug nothing is found", *broken, flush=True)
        for number, (name, seeds, found) in enumerate(pool.map(lambda name: hunt(berth, name), names), 2):
            if found:
                print(f"ok {number} - {name}: caught by {found[0]} after {seeds} seeds, {found[1]} events of the last")
            else:
                print(f"not ok {number} - {name}: not caught in {seeds} seeds ({plants[name]})")
            sys.stdout.flush()


main()
