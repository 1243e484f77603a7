#!/usr/bin/env python3
"""The disk of one of three members is full, under the load of load.py: of a follower, of the leader, of a follower
that is started so. The number is how often each (default: 5). As in disk_test.py, a disk is a small tmpfs or, where
that is not allowed, a limit on the size of files.

Shows: the others write on without a pause, under another leader if it is the leader's; a lease is kept alive all
along; the member says what is wrong; once there is space it has what the others have, by itself.
"""
import glob, http.client, os, random, resource, subprocess, sys, time

from cluster import ELECTION, Cluster, eventually, spread
from disk_test import MOUNTED, file_size_limit, get, way_to_mount
from leases import Keeper
from load import Load
from pulse import Pulse

VALUE = "v" * 2_000
TMPFS = 256       # MiB for five rounds, of which the Raft log takes 32 from the start
TMPFS_ROUND = 48  # for each further one: what is written meanwhile
ROOM = 64 << 20      # left on each, lest they fill up by themselves
WRITES_AGAIN = 2 * ELECTION
LED_AGAIN = 3 * ELECTION  # once it is told: the leader looks each half second, and whom it asks has to win
TTL = 5


class Tmpfs:
    """One for each member; its log is elsewhere."""

    size = TMPFS  # MiB
    stays_full = True

    def __init__(self, member):
        self.member, self.mount = member, os.path.join(member.folder, "disk")
        self.ballast = os.path.join(self.mount, "ballast")
        member.data = os.path.join(self.mount, "data")
        os.mkdir(self.mount)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.size}m", "tmpfs", self.mount], check=True)

    def fill(self):
        self.has_room()
        with open(self.ballast, "ab", buffering=0) as ballast:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        ballast.write(bytes(size))
                except OSError:
                    pass

    def free(self):
        os.remove(self.ballast)

    def has_room(self):
        space = os.statvfs(self.mount)
        assert space.f_bavail * space.f_frsize > ROOM, f"{self.member.name}: the disks of this test are too small"

    def start_full(self):
        self.fill()
        self.member.start(wait=False)

    def remove(self):
        subprocess.run(["umount", self.mount], check=True)


class FileSizeLimit:
    """No file can grow beyond what the journal of the member's store has by now; once that begins anew there is room."""

    stays_full = False

    def __init__(self, member):
        self.member = member

    def size(self):
        return max(os.path.getsize(file) for file in glob.glob(os.path.join(self.member.data, "store/*/store.db-wal")))

    def limit(self, size):
        resource.prlimit(self.member.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def fill(self):
        self.limit(self.size())

    def free(self):
        self.limit(resource.RLIM_INFINITY)

    def start_full(self):
        with file_size_limit(self.size()):
            self.member.start(wait=False)

    def remove(self):
        pass


def is_told(member):
    assert member.alive(), f"{member.name} stopped:\n{member.log()[-2000:]}"
    try:
        code, body = get(member, "/health", timeout=2)
    except (OSError, http.client.HTTPException):  # one that starts on a full disk answers after some seconds
        return False
    return code == 503 and "the disk is full" in body


class FullCluster(Cluster):
    """Its members have disks of the kind `space`."""

    def __init__(self, program, space):
        super().__init__(program)
        self.disks = {member: space(member) for member in self}

    def __exit__(self, kind, *_):
        for member, disk in self.disks.items():
            member.kill()
            disk.remove()
        super().__exit__(kind)


class Round:
    def __init__(self, cluster, load, choose, led):
        self.cluster, self.load, self.choose, self.disks, self.led = cluster, load, choose, cluster.disks, led

    def of_follower(self):
        leader, full = self.cluster.leader(), self.choose.choice(self.cluster.followers())
        pause = self.full(full, self.disks[full].fill)
        assert self.cluster.leader() is leader, "a follower's full disk cost the leader its office"
        return pause

    def of_leader(self):
        full = self.cluster.leader()
        others = [member for member in self.cluster if member is not full]

        def is_led_again():  # by one that applies: keepalives and the ends of leases are its business
            begin = time.monotonic()
            has_room = (lambda: False) if self.disks[full].stays_full else (lambda: not is_told(full))
            eventually(lambda: self.cluster.leader_now(others) or has_room(), LED_AGAIN, "another leader")
            if self.cluster.leader_now(others):
                self.led.append(time.monotonic() - begin)
        return self.full(full, self.disks[full].fill, is_led_again)

    def of_one_that_starts(self):
        full = self.choose.choice(self.cluster.followers())

        def start_full():
            full.kill()
            self.disks[full].start_full()
        return self.full(full, start_full)

    def full(self, full, fill, then=lambda: None):
        """The longest pause of writes through the others, from `fill` until there is space again."""
        others = [member for member in self.cluster if member is not full]
        with Pulse(others, self.choose, VALUE) as pulse:
            pulse.wait_for(5, 10)
            pulse.longest = 0
            fill()
            eventually(lambda: is_told(full), 60, f"{full.name} says that its disk is full")
            then()
            pulse.wait_for(20, 20)
            pause = pulse.pause()
            full.read("pulse/0", serializable=True)
            self.disks[full].free()
            eventually(lambda: get(full, "/health")[0] == 200, 10, f"{full.name} is well once there is space")
        applied = int(self.cluster.leader().status()["raftAppliedIndex"])
        eventually(lambda: int(full.status()["raftAppliedIndex"]) >= applied, 15, f"{full.name} has what it missed")
        self.cluster.same_hash()
        self.load.fail_early()
        return pause


KINDS = [Round.of_follower, Round.of_leader, Round.of_one_that_starts]


def run(program, count, seed, space):
    print(f"seed {seed}", flush=True)
    choose, pauses, led = random.Random(seed), {kind: [] for kind in KINDS}, []
    with FullCluster(program, space) as cluster:
        keeper = Keeper(cluster, choose, TTL)
        with Load(cluster, choose, writers=2, incrementers=1, readers=2) as load:
            keeper.start()
            load.wait_for_writes(10, 20)
            for _ in range(count):
                for kind in KINDS:
                    pauses[kind].append(kind(Round(cluster, load, choose, led)))
            keeper.finish(count)
        assert keeper.fault is None, keeper.fault
        assert keeper.renewals > count and keeper.lost == 0, f"{keeper.renewals} renewals, {keeper.lost} lost"
        for kind in (Round.of_follower, Round.of_one_that_starts):
            assert sorted(pauses[kind])[(count - 1) // 2] <= ELECTION, f"{kind.__name__}: writes paused: {pauses[kind]}"
        assert max(pauses[Round.of_leader]) <= WRITES_AGAIN, f"writes paused for {pauses[Round.of_leader]}"
        print("; ".join(f"{kind.__name__}: writes paused {spread(found)}" for kind, found in pauses.items()))
        print(f"{3 * count} full disks; a leader's once told, led by another after {spread(led) if led else 'no time'}; longest gap of "
              f"renewals {keeper.longest:.2f} s; {load.summary()}: ok")


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 32)
    if MOUNTED in os.environ:
        Tmpfs.size = TMPFS + TMPFS_ROUND * max(0, count - 5)
        return run(program, count, seed, Tmpfs)
    way = way_to_mount() if "limit" not in sys.argv[4:] else None
    if way is None:
        print("full disks: a limit on the size of files", flush=True)
        return run(program, count, seed, FileSizeLimit)
    print(f"full disks: a tmpfs for each member ({' '.join(way)})", flush=True)
    done = subprocess.run([*way, sys.executable, __file__, program, str(count), str(seed)],
                          env={**os.environ, MOUNTED: "each"})
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
