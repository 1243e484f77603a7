#!/usr/bin/env python3
"""The SDK's mutex across processes.

`contend`: 8 processes take one lock 1,000 times each. Holds never overlap, fencing tokens rise from holder to holder, and
the lock goes round in the order of arrival (a token is the revision at which its holder joined the queue).
`killed`: the holder dies by SIGKILL; the next in line has the lock within TTL + 1 s.
"""
import signal, subprocess, sys, time

from server import Server, b64

PROCESSES = 8


def worker(program, server, *arguments):
    return subprocess.Popen([program, f"http://127.0.0.1:{server.port}", *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)


def contend(server_program, worker_program, count):
    with Server(server_program) as server:
        begin = time.monotonic()
        workers = [worker(worker_program, server, "locks/contended", count, 10) for _ in range(PROCESSES)]
        holds, holders = [], {}
        for index, process in enumerate(workers):
            out, _ = process.communicate(timeout=600)
            assert process.returncode == 0, f"worker {index} ended with {process.returncode}{server.fate()}"
            mine = [tuple(map(int, line.split())) for line in out.splitlines()]
            assert len(mine) == count, f"worker {index}: {len(mine)} holds"
            holds += mine
            holders.update({token: index for token, _, _ in mine})
        took = time.monotonic() - begin
        assert len(holders) == PROCESSES * count, "a fencing token was given twice"
        holds.sort(key=lambda hold: hold[1])
        for (token, _, end), (next_token, next_begin, _) in zip(holds, holds[1:]):
            assert next_begin > end, f"holds {token} and {next_token} overlap by {end - next_begin} ns"
            assert next_token > token, f"token {next_token} after {token}: not in order of arrival"
        turns = sum(holders[a[0]] != holders[b[0]] for a, b in zip(holds, holds[1:]))
        print(f"{len(holds)} holds of {PROCESSES} processes in {took:.1f} s ({len(holds) / took:.0f}/s), "
              f"{turns} changes of holder, no overlap, in order of arrival")


def killed(server_program, worker_program, ttl):
    with Server(server_program) as server:
        holder = worker(worker_program, server, "locks/killed", "hold", ttl)
        assert holder.stdout.readline().startswith("held"), "the first worker never got the lock"
        waiter = worker(worker_program, server, "locks/killed", "hold", ttl)
        try:
            # The waiter is in line once its key is there.
            end = time.monotonic() + 20
            while time.monotonic() < end:
                _, answer = server.post("/v3/kv/range", {"key": b64("locks/killed/"), "range_end": b64("locks/killed0"), "count_only": True})
                if answer.get("count") == "2":
                    break
                time.sleep(0.01)
            else:
                raise AssertionError("the second worker never joined the queue")
            holder.send_signal(signal.SIGKILL)
            died = time.monotonic_ns()
            word, token, since = waiter.stdout.readline().split()
            waited = (int(since) - died) / 1e9
            assert word == "held" and waited <= ttl + 1, f"the next waiter had the lock only after {waited:.2f} s"
            assert waited > 0, "the lock changed hands while its holder was alive"
            print(f"holder killed; the next one had the lock after {waited:.2f} s (TTL {ttl} s)")
        finally:
            for process in (holder, waiter):
                process.kill()
                process.wait()


if __name__ == "__main__":
    what, server_program, worker_program, number = sys.argv[1:5]
    {"contend": contend, "killed": killed}[what](server_program, worker_program, int(number))
