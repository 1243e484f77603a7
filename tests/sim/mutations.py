#!/usr/bin/env python3
"""Shows that the simulation can fail: applies deliberate faults (mutations_table.py) one at a time to a copy of the tree,
builds the test that should notice, and runs seeds until one does.

    tests/sim/mutations.py                        all of them; those with a result already are left out
    tests/sim/mutations.py --only NAME,NAME       these
    tests/sim/mutations.py --again                forget the results so far
    tests/sim/mutations.py --list                 the table, and the results so far
    tests/sim/mutations.py --markdown             the same as a table for mutations.md
    tests/sim/mutations.py --check                does each old text stand exactly once in its file?
    tests/sim/mutations.py --baseline             no fault: every suite must pass --seeds seeds
    tests/sim/mutations.py --revision HEAD        of what is committed, where others are changing the files meanwhile

The tree itself is never changed: the copy is in --work (default build/mutations), brought up to date at each start, which
also takes back whatever an interrupted run left in it. Results are in WORK/results.json, with the revision they are of.
Exit code 0: everything that was run is caught.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

from mutations_table import TABLE

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SEED_SECONDS_MAX = 60  # a run that hangs has noticed something, too
BUILD_SECONDS_MAX = 3600

def one_seed(seed):
    return {"CONCLAVE_SIM_FIRST": str(seed), "CONCLAVE_SIM_SEEDS": "1"}


# name -> target, gtest filter, how to run one seed: None when the test has none
SUITES = {
    "raft": ("raft_test", "Faults.*", lambda seed: {"CONCLAVE_RAFT_SEED": str(seed)}),
    "power": ("sim_power_test", "Power.*", one_seed),
    "damage": ("sim_damage_test", "Failing.*:Full.*", one_seed),
    "cluster": ("sim_cluster_test", "Cluster.IsLinearizable*", one_seed),
    "members": ("sim_cluster_test", "Cluster.MembersComeAndGo", one_seed),
    "store": ("store_crash_test", "StoreFaults.*", None),
    "record": ("sim_etcd_record_test", "EtcdRecord.WhoHearsNobody*", None),
}
RAFT_SEEDS = 6000  # some take less than the start of a process: all in one, and alone only the one that fails


def say(text):
    print(text, flush=True)


def edited(text, edits, path):
    """`text` of the file at `path` with the edits that are meant for it, or what is wrong with them."""
    for file, old, new in edits:
        if file != path:
            continue
        count = text.count(old)
        if count != 1:
            return None, f"{file}: the old text stands there {count} times: {old.splitlines()[0]}"
        text = text.replace(old, new)
    return text, None


def faults_of(mutation, root):
    """What does not fit between the table and the tree."""
    faults = [f"{name}: no such suite" for name in mutation.suites if name not in SUITES]
    for path in sorted({file for file, _, _ in mutation.edits}):
        try:
            with open(os.path.join(root, path), encoding="utf-8") as file:
                _, fault = edited(file.read(), mutation.edits, path)
        except OSError as error:
            fault = f"{path}: {error.strerror}"
        if fault:
            faults.append(fault)
    return faults


class Copy:
    """The tree that is broken, and its build."""

    def __init__(self, work, ninja):
        self.tree = os.path.join(work, "tree")
        self.build = os.path.join(self.tree, "build")  # as of a checkout: ccache finds what was compiled there
        self.ninja = ninja

    def bring_up_to_date(self, revision):
        if revision:
            source = os.path.join(os.path.dirname(self.tree), "source")
            shutil.rmtree(source, ignore_errors=True)
            os.makedirs(source)
            archive = subprocess.run(["git", "-C", ROOT, "archive", revision], check=True, stdout=subprocess.PIPE)
            subprocess.run(["tar", "-x", "-C", source], check=True, input=archive.stdout)
            wanted = {os.path.relpath(os.path.join(folder, name), source)
                      for folder, _, names in os.walk(source) for name in names}
        else:
            source = ROOT
            listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard"], check=True,
                                    stdout=subprocess.PIPE).stdout.decode()
            wanted = {path for path in listed.split("\0") if path and os.path.isfile(os.path.join(ROOT, path))}
        for path in sorted(wanted):
            self.copy_file(source, path)
        for folder, folders, names in os.walk(self.tree):
            if folder == self.tree and "build" in folders:
                folders.remove("build")
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.tree) not in wanted:
                    os.remove(path)

    def copy_file(self, source, path):
        target = os.path.join(self.tree, path)
        with open(os.path.join(source, path), "rb") as file:
            content = file.read()
        try:
            with open(target, "rb") as file:
                if file.read() == content:
                    return  # keeps its time, and so what was built of it
        except OSError:
            os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
        shutil.copymode(os.path.join(source, path), target)

    def apply(self, mutation):
        """The texts as they were before, by path, for restore()."""
        before, after = {}, {}
        for path in {file for file, _, _ in mutation.edits}:
            with open(os.path.join(self.tree, path), encoding="utf-8") as file:
                before[path] = file.read()
            after[path], fault = edited(before[path], mutation.edits, path)
            if fault:
                raise ValueError(fault)
        self.restore(after)
        return before

    def restore(self, texts):
        for path, text in texts.items():
            with open(os.path.join(self.tree, path), "w", encoding="utf-8") as file:
                file.write(text)

    def make(self, target):
        """None, or the end of what the compiler said."""
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            command = ["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"]
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                return done.stdout.decode(errors="replace")[-2000:]
        command = [*self.ninja, "-C", self.build, target]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=BUILD_SECONDS_MAX, env={"CCACHE_BASEDIR": self.tree, "CCACHE_NOHASHDIR": "1",
                                                              **os.environ})
        return None if done.returncode == 0 else done.stdout.decode(errors="replace")[-2000:]

    def notice(self, suite, seeds):
        """The first seed that notices something and what that is, or None."""
        first = 1
        if SUITES[suite][2] is None:
            seeds = 1
        if suite == "raft":
            seeds = RAFT_SEEDS
            said = self.run(suite, {"CONCLAVE_RAFT_SEEDS": str(seeds)})
            if not said:
                return None
            first = int(said[1] or first)
        for seed in range(first, seeds + 1):
            variables = SUITES[suite][2](seed) if SUITES[suite][2] else {}
            said = self.run(suite, variables)
            if said:
                return seed, said[0]
        return None

    def run(self, suite, variables):
        """None: nothing is noticed; else the first line that says what, and the seed if that is told."""
        target, filters, _ = SUITES[suite]
        command = [os.path.join(self.build, "tests", target), f"--gtest_filter={filters}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.build,
                                   env={**os.environ, **variables}, start_new_session=True)
        try:
            output = process.communicate(timeout=SEED_SECONDS_MAX)[0].decode(errors="replace")
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return f"does not end within {SEED_SECONDS_MAX} s", None
        if "Running 0 tests" in output:
            raise ValueError(f"{target} has no tests {filters}")
        if process.returncode == 0:
            return None
        seed = re.search(r": seed (\d+)$", output, re.MULTILINE)
        return first_fault(output, process.returncode), seed and seed[1]


def first_fault(output, code):
    lines = output.splitlines()
    for number, line in enumerate(lines):
        if "CHECK" in line or "check failed" in line.lower():
            return line.strip()[:200]
        if line.endswith(": Failure") and number + 1 < len(lines):
            said = []
            for text in lines[number + 1:number + 6]:
                if not text.strip() or text.startswith("Google Test trace"):
                    break
                said.append(text.strip())
            return " ".join(text for text in said if text != "Failed")[:200]
    return f"ends with code {code}: {lines[-1].strip()[:160] if lines else ''}"


def try_mutation(copy, mutation, seeds):
    """What happened, for results.json."""
    result = {"caught": False, "missed": []}
    begin = time.monotonic()
    before = copy.apply(mutation)
    try:
        for suite in mutation.suites:
            fault = copy.make(SUITES[suite][0])
            if fault:
                return {**result, "error": fault}
            noticed = copy.notice(suite, seeds)
            if noticed:
                return {**result, "caught": True, "suite": suite, "seed": noticed[0], "notice": noticed[1],
                        "seconds": round(time.monotonic() - begin)}
            result["missed"].append(suite)
        return {**result, "seconds": round(time.monotonic() - begin)}
    finally:
        copy.restore(before)


def line_of(name, result):
    if result is None:
        return f"{name:32} -"
    if "error" in result:
        return f"{name:32} cannot be tried: {result['error'].strip().splitlines()[-1][:120]}"
    if not result["caught"]:
        return f"{name:32} NOT CAUGHT by {', '.join(result['missed'])}"
    return f"{name:32} {result['suite']} seed {result['seed']}: {result['notice']}"


def markdown_of(mutation, result):
    if not result or not result.get("caught"):
        return f"| {mutation.name} | {mutation.what} | not caught | | |"
    notice = re.sub(r"^seed \d+ at [\d.]+ s: |^\.\./|^/\S*/tree/|\.{5,}.*", "", result["notice"]).replace("|", "\\|")
    notice = notice if len(notice) < 110 else notice[:110].rsplit(" ", 1)[0] + " …"
    return f"| {mutation.name} | {mutation.what} | {result['suite']} | {result['seed']} | {notice} |"


def baseline(copy, seeds):
    good = True
    for suite in SUITES:
        fault = copy.make(SUITES[suite][0])
        if fault:
            say(f"{suite}: {fault}")
            good = False
            continue
        noticed = copy.notice(suite, seeds)
        say(f"{suite}: " + (f"seed {noticed[0]}: {noticed[1]}" if noticed else "passes"))
        good = good and not noticed
    return 0 if good else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=os.path.join(ROOT, "build", "mutations"))
    parser.add_argument("--only", help="names, with commas")
    parser.add_argument("--suite", help="try this suite alone")
    parser.add_argument("--seeds", type=int, default=200, help="of each suite, before it is given up (default 200)")
    parser.add_argument("--ninja", default="ninja", help="how to build, such as 'nice ninja -j1'")
    parser.add_argument("--revision", help="a commit, instead of the files as they are")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--baseline", action="store_true")
    arguments = parser.parse_args()

    names = [mutation.name for mutation in TABLE]
    chosen = arguments.only.split(",") if arguments.only else names
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        parser.error(f"no such fault: {', '.join(unknown)}")
    table = [mutation for mutation in TABLE if mutation.name in chosen]
    if arguments.suite:
        table = [mutation._replace(suites=(arguments.suite,)) for mutation in table]

    if arguments.check:
        faults = [f"{mutation.name}: {fault}" for mutation in table for fault in faults_of(mutation, ROOT)]
        say("\n".join(faults) or f"{len(table)} faults fit the tree")
        return 1 if faults else 0

    results_path = os.path.join(arguments.work, "results.json")
    results = {}
    if os.path.exists(results_path):
        with open(results_path, encoding="utf-8") as file:
            results = json.load(file)
    if arguments.list:
        for mutation in table:
            say(line_of(mutation.name, results.get(mutation.name)) + f"\n{'':32} {mutation.what}")
        return 0

    if arguments.markdown:
        say("| fault | what it breaks | caught by | seed | what was said |\n|---|---|---|---|---|")
        for mutation in table:
            say(markdown_of(mutation, results.get(mutation.name)))
        return 0

    copy = Copy(arguments.work, shlex.split(arguments.ninja))
    copy.bring_up_to_date(arguments.revision)
    if arguments.baseline:
        return baseline(copy, arguments.seeds)
    describe = ["git", "-C", ROOT, "describe", "--always", arguments.revision or "--dirty"]
    revision = subprocess.run(describe, check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    for mutation in table:
        if not arguments.again and "error" not in results.get(mutation.name, {"error": "not tried"}):
            continue
        faults = faults_of(mutation, copy.tree)
        result = {"error": faults[0]} if faults else try_mutation(copy, mutation, arguments.seeds)
        results[mutation.name] = {**result, "revision": revision}
        with open(results_path + ".new", "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
        os.replace(results_path + ".new", results_path)
        say(line_of(mutation.name, result))
    caught = sum(1 for mutation in table if results.get(mutation.name, {}).get("caught"))
    say(f"{caught} of {len(table)} caught")
    return 0 if caught == len(table) else 1


if __name__ == "__main__":
    sys.exit(main())
