#!/usr/bin/env python3
"""Reads the includes and calls of all sources against cmake/layers.txt; prints FILE:LINE: what is wrong, exits 1 if any is.

    cmake/check_layers.py [ROOT]         check the tree
    cmake/check_layers.py --self-test    plant violations in a copy of nothing and see each of them found
"""

import fnmatch
import os
import re
import sys
import tempfile

TREES = ("base", "api", "server", "sdk", "samples", "ctl", "bench", "tests")
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
TEST_FILE = re.compile(r"^test_|_(test|fuzz)\.(cc|h|c)$")
STANDARD_C = {"assert.h", "errno.h", "stdbool.h", "stddef.h", "stdint.h"}  # what the public C headers may include


class Table:
    def __init__(self, path):
        self.rows, self.only, self.ban = {}, [], []
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                line = line.rstrip()
                if not line or line.startswith("#"):
                    continue
                if line.startswith("only <"):
                    pattern, _, folders = line[len("only <"):].partition(">:")
                    self.only.append((pattern, folders.split()))
                elif line.startswith("ban "):
                    pattern, _, folders = line[len("ban "):].rpartition(": ")
                    self.ban.append((re.compile(pattern), folders.split()))
                elif ":" in line:
                    folder, _, allowed = line.partition(":")
                    self.rows[folder] = allowed.split()
                else:
                    sys.exit(f"{path}:{number}: not understood: {line}")

    def row(self, path):
        """The deepest listed folder that holds `path`, or None."""
        while path:
            if path in self.rows:
                return path
            path = os.path.dirname(path)
        return None

    def below(self, folder, seen=None):
        """What `folder` may include, and what that may, all the way down."""
        seen = set() if seen is None else seen
        for place in self.rows.get(folder, []):
            if place not in seen:
                seen.add(place)
                self.below(place, seen)
        return sorted(seen)


def within(path, places):
    return any(path == place or path.startswith(place + "/") for place in places)


def strip_comments(text):
    """The text with comments and string literals blanked out, lines kept."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
    return token.sub(lambda m: "".join("\n" if c == "\n" else " " for c in m.group(0)), text)


def resolve(root, source, header):
    """The path of a quoted include of ours, relative to the root; None if it is not there (generated, or from outside)."""
    folder = os.path.dirname(source)
    parts = source.split("/")
    places = [folder, "", "server"]
    if parts[0] == "tests":
        places.append("tests")
    if parts[0] in ("sdk", "samples", "ctl", "tests", "bench"):
        places += ["sdk/cpp/include", "sdk/cpp/src", "sdk/c/include"]
    for place in places:
        path = os.path.normpath(os.path.join(place, header))
        if os.path.isfile(os.path.join(root, path)):
            return path
    if header.endswith(".pb.h"):
        return header  # made from api/*.proto
    return None


def check_include(root, table, source, is_test, quote, header):
    if quote == "<" and not header.startswith("conclave/"):
        for pattern, places in table.only:
            if fnmatch.fnmatch(header, pattern) and not within(source, places):
                return f"<{header}> belongs to {', '.join(places)} alone"
        if source.startswith(("sdk/cpp/include/", "sdk/c/include/")):
            allowed = "/" not in header and (not header.endswith(".h") or header in STANDARD_C)
            if not allowed and not header.startswith("tl/"):
                return f"<{header}>: public headers include the standard library only"
        return None
    target = resolve(root, source, header)
    if target is None:
        return f'"{header}" is no file of ours (includes are relative to the root or to server/)' if quote == '"' else None
    own, theirs = table.row(source), table.row(target)
    if own is None:
        return "this folder has no row in cmake/layers.txt"
    allowed = table.below(own) + ["tests", "base", "api"] if is_test else table.rows[own]
    if own == theirs or within(target, allowed):
        return None
    return f'"{header}" is above or beside: {own} may include {", ".join(allowed) or "nothing of ours"}'


def check(root):
    table = Table(os.path.join(root, "cmake/layers.txt"))
    found, files = [], 0
    for tree in TREES:
        for folder, folders, names in os.walk(os.path.join(root, tree)):
            folders.sort()
            for name in sorted(names):
                if not name.endswith((".h", ".cc", ".c")):
                    continue
                files += 1
                source = os.path.relpath(os.path.join(folder, name), root)
                is_test = bool(TEST_FILE.search(name)) or source.startswith(("tests/", "bench/"))
                with open(os.path.join(root, source), encoding="utf-8") as text:
                    text = text.read()
                for number, line in enumerate(text.split("\n"), 1):
                    match = INCLUDE.match(line)
                    wrong = match and check_include(root, table, source, is_test, match.group(1), match.group(2))
                    if wrong:
                        found.append(f"{source}:{number}: {wrong}")
                if is_test:
                    continue
                for number, line in enumerate(strip_comments(text).split("\n"), 1):
                    for pattern, places in table.ban:
                        match = pattern.search(line)
                        if match and not within(source, places):
                            found.append(f"{source}:{number}: {match.group(0).strip()} is for {', '.join(places)} alone "
                                         "(take the time, the random numbers and the disk from the World)")
    return found, files


def self_test():
    planted = {
        "base/up.h": ('#include "wal/wal.h"\n', 1, "above or beside"),
        "server/wal/wal.h": ('#include "base/fine.h"\n#include "wal/part.h"\n', None, None),
        "server/wal/part.h": ('#include "apply/applier.h"\n', 1, "above or beside"),
        "server/apply/applier.h": ('#include "mvcc/mvcc.h"\n', None, None),
        "server/mvcc/mvcc.h": ('\n#include "lease/table.h"\n', 2, "above or beside"),
        "server/lease/table.h": ("", None, None),
        "server/rpc/kv.cc": ('#include "http/handler.h"\n#include "http/server.h"\n', 2, "above or beside"),
        "server/http/handler.h": ("", None, None),
        "server/http/server.h": ("#include <sqlite3.h>\n", 1, "belongs to"),
        "server/odd/odd.cc": ('#include "missing.h"\n', 1, "no file of ours"),
        "server/wal/clock.cc": ("/* rand() */ // system_clock::now()\nauto t = std::chrono::system_clock::now();\n", 2,
                                "system_clock::now"),
        "server/wal/nap.cc": ('const char* a = "sleep_for(1)";\n\nstd::this_thread::sleep_for(1s);\n', 3, "sleep_for"),
        "server/wal/dice.cc": ("int operand(int);\nint a = operand(1);\nint b = rand();\n", 3, "rand("),
        "server/wal/wal_test.cc": ('#include "tests/sim/disk.h"\nvoid f() { usleep(1); }\n', None, None),
        "server/watch/hub_test.cc": ('#include "store/store.h"\n#include "apply/applier.h"\n', 2, "above or beside"),
        "server/store/store.h": ("", None, None),
        "tests/sim/disk.h": ("", None, None),
        "base/fine.h": ("inline auto f() { return std::chrono::system_clock::now(); }\n", None, None),
        "sdk/cpp/include/conclave/client.h": ("#include <string>\n#include <cpprest/json.h>\n", 2, "belongs to"),
        "samples/order_lock/main.cc": ("#include <conclave/client.h>\n#include \"base/fine.h\"\n", 2, "above or beside"),
    }
    with tempfile.TemporaryDirectory() as root:
        os.mkdir(os.path.join(root, "cmake"))
        with open(os.path.join(os.path.dirname(__file__), "layers.txt"), encoding="utf-8") as table:
            with open(os.path.join(root, "cmake/layers.txt"), "w", encoding="utf-8") as copy:
                copy.write(table.read())
        for path, (text, _, _) in planted.items():
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as out:
                out.write(text)
        found, files = check(root)
    expected = {f"{path}:{line}": text for path, (_, line, text) in planted.items() if line}
    failures = [] if files == len(planted) else [f"read {files} of {len(planted)} files"]
    for place, text in expected.items():
        if not any(line.startswith(place + ": ") and text in line for line in found):
            failures.append(f"not found: {place}: ... {text}")
    failures += [f"found for nothing: {line}" for line in found if ":".join(line.split(":")[:2]) not in expected]
    return failures


def main():
    if sys.argv[1:] == ["--self-test"]:
        wrong = self_test()
        print("\n".join(wrong) or "every planted violation was found, nothing else")
    else:
        root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
        wrong, files = check(root)
        if files == 0:
            wrong = [f"no sources under {root}"]
        print("\n".join(wrong) or f"{files} files, no include upward, no banned call")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
