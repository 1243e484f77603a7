#!/usr/bin/env python3
"""Compares what the shared library exports with the list that is checked in; prints the difference, exits 1 if there is one.

    check_abi.py NM LIBRARY LIST
    check_abi.py --self-test NM LIBRARY LIST    lists with one line less and one more are found to differ
    check_abi.py --print NM LIBRARY             what LIST should be, to see in the diff of a deliberate change

A line that goes, or whose version changes, breaks programs that are linked already.
"""

import subprocess
import sys


def exported(nm, library):
    """Lines 'T name@@VERSION'; the versions themselves are 'A VERSION'."""
    lines = subprocess.run([nm, "-D", "--defined-only", "--with-symbol-versions", library], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    return sorted(" ".join(line.split()[1:]) for line in lines)


def listed(path):
    with open(path, encoding="utf-8") as lines:
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def differences(found, expected):
    gone = [f"no longer exported: {line}" for line in expected if line not in found]
    return gone + [f"exported, but not in the list: {line}" for line in found if line not in expected]


def self_test(found, expected):
    failures = [] if expected else ["the list is empty"]
    if len(differences(found, expected[1:])) != 1:
        failures.append("a symbol that is not in the list was not noticed")
    if len(differences(found, expected + ["T conclave_gone@@CONCLAVE_0.1"])) != 1:
        failures.append("a symbol that is gone was not noticed")
    if not differences(["W _ZNSt6vectorIcE@@CONCLAVE_0.1"] + found, expected):
        failures.append("a symbol of C++ was not noticed")
    return failures


def main(arguments):
    if arguments[:1] == ["--print"]:
        print("\n".join(exported(arguments[1], arguments[2])))
        return 0
    if arguments[:1] == ["--self-test"]:
        wrong = self_test(exported(arguments[1], arguments[2]), listed(arguments[3]))
    else:
        wrong = differences(exported(arguments[0], arguments[1]), listed(arguments[2]))
    print("\n".join(wrong) or "as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
