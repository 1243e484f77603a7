"""Starts several real members for a test: kills, pauses, cuts off, adds and removes them."""
import http.client, os, random, shutil, signal, socket, tempfile, time

from proxy import Wires, has_socket, listen_on
from server import Server, b64

HEARTBEAT_MS, ELECTION_MS = 60, 600  # smaller than the defaults: the tests wait for many elections
ELECTION = ELECTION_MS / 1000
EVERYTHING = {"key": b64("\0"), "range_end": b64("\0")}


def fixed_port():
    """A free one that no outgoing connection takes while its member is down."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        first_ephemeral = int(file.read().split()[0])
    for _ in range(1000):
        port = random.SystemRandom().randrange(10_000, first_ephemeral)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise AssertionError("no free port")


def eventually(condition, seconds, what):
    """The first true answer of `condition`. No answer counts as no; so does a failed assertion until the end."""
    end, last = time.monotonic() + seconds, None
    while True:
        try:
            if answer := condition():
                return answer
        except (OSError, ValueError, http.client.HTTPException, AssertionError) as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:.1f} s: {what}" + (f" ({last})" if last else ""))
        time.sleep(0.01)


def spread(seconds):
    ordered = sorted(seconds) or [0]
    return f"{ordered[len(ordered) // 2]:.2f} s (median), {ordered[-1]:.2f} s (longest)"


class Member(Server):
    def __init__(self, cluster, name, state, initial, flags=()):
        super().__init__(cluster.program, flags, folder=os.path.join(cluster.folder, name))
        os.makedirs(self.folder, exist_ok=True)
        self.data = os.path.join(self.folder, "data")
        self.name, self.state, self.initial, self.token = name, state, initial, cluster.token
        self.port, self.peer_port = fixed_port(), fixed_port()
        self.advertised_port = fixed_port() if cluster.wires else self.peer_port
        self.paused, self.lives, self.member_id = False, 0, None

    @property
    def peer_url(self):
        return f"http://127.0.0.1:{self.advertised_port}"

    def command(self):
        client = f"http://127.0.0.1:{self.port}"
        return [self.program, "--name", self.name, "--data-dir", self.data,
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", f"http://127.0.0.1:{self.peer_port}",
                "--initial-advertise-peer-urls", self.peer_url, "--initial-cluster", self.initial,
                "--initial-cluster-state", self.state, "--initial-cluster-token", self.token,
                "--heartbeat-interval", str(HEARTBEAT_MS), "--election-timeout", str(ELECTION_MS), *self.flags]

    def start(self, wait=True):
        self.lives += 1
        super().start(wait)

    def kill(self, sig=signal.SIGKILL):
        if self.paused and sig != signal.SIGKILL:
            self.resume()
        self.paused = False
        return super().kill(sig)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def resume(self):
        self.paused = False
        self.process.send_signal(signal.SIGCONT)

    def took_snapshot(self, since):
        """By its log, of which this much was there before."""
        said = self.log()[since:]
        return "a store was built from a snapshot" in said and "the state of a snapshot is put in place" in said

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def status(self, timeout=1):
        code, answer = self.post("/v3/maintenance/status", {}, timeout=timeout)
        assert code == 200, f"{self.name}: {answer}"
        self.member_id = answer["header"]["member_id"]
        return answer

    def read(self, key, serializable=False, timeout=5, **more):
        """The answer to a range of one key; an AssertionError if it is refused."""
        body = {"key": b64(key), "serializable": serializable, **more}
        code, answer = self.post("/v3/kv/range", body, timeout=timeout)
        assert code == 200, f"{self.name}: {answer}"
        return answer

    def put(self, key, value, timeout=5, **more):
        code, answer = self.post("/v3/kv/put", {"key": b64(key), "value": b64(value), **more}, timeout=timeout)
        assert code == 200, f"{self.name}: {answer}"
        return answer


class Cluster:
    """`proxied`: with wires between the members that can be cut."""

    def __init__(self, program, size=3, proxied=False, flags=()):
        self.program, self.flags, self.token = program, list(flags), f"test-{os.getpid()}-{random.randrange(1 << 32)}"
        self.folder = tempfile.mkdtemp(prefix="conclave-cluster-")
        self.wires = Wires(self.owner) if proxied else None
        self.members = {}
        for _ in range(size):
            self.make("", "new")
        for member in self:
            member.initial = self.initial()

    def __iter__(self):
        return iter(list(self.members.values()))

    def initial(self):
        return ",".join(f"{member.name}={member.peer_url}" for member in self)

    def make(self, initial, state):
        member = Member(self, f"m{self.next_number()}", state, initial, self.flags)
        self.members[member.name] = member
        if self.wires:
            self.wires.add(member.name, listen_on(member.advertised_port), member.peer_port)
        return member

    def next_number(self):
        self.numbers = getattr(self, "numbers", -1) + 1
        return self.numbers

    def forget(self, member):
        """Of a member that is no part of it any more."""
        member.kill()
        if self.wires:
            self.wires.remove(member.name)
        self.members.pop(member.name, None)

    def __enter__(self):
        try:
            self.start()
        except BaseException as error:
            self.__exit__(type(error))
            raise
        return self

    def start(self):
        for member in self:
            member.start(wait=False)
        for member in self:
            member.wait_ready()
            member.status()

    def __exit__(self, kind, *_):
        for member in self:
            member.kill()
        if self.wires:
            self.wires.stop()
        if kind is None:
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            print(f"left for a look: {self.folder}", flush=True)

    def owner(self, inode):
        return next((m.name for m in self if m.process and has_socket(m.process.pid, inode)), None)

    # Who leads

    def statuses(self, members=None):
        found = {}
        for member in members or self:
            if member.alive() and not member.paused:
                try:
                    found[member] = member.status(timeout=1)
                except (OSError, ValueError, http.client.HTTPException, AssertionError):
                    pass
        return found

    def leader_now(self, members=None):
        """Who says of itself that it leads, of the latest term."""
        leaders = [(int(s["raftTerm"]), m) for m, s in self.statuses(members).items()
                   if s.get("leader", "0") == s["header"]["member_id"]]
        return max(leaders, key=lambda pair: pair[0])[1] if leaders else None

    def leader(self, members=None, seconds=15):
        return eventually(lambda: self.leader_now(members), seconds, "a leader")

    def followers(self):
        leader = self.leader()
        return [member for member in self if member is not leader]

    # Partitions

    def cut(self, *links):
        """Of (sender, receiver) each."""
        self.wires.cut([(a.name, b.name) for a, b in links])

    def isolate(self, inside, outgoing=True, incoming=True):
        """The members `inside` from all others."""
        outside = [member for member in self if member not in inside]
        self.cut(*([(a, b) for a in inside for b in outside] if outgoing else []),
                 *([(b, a) for a in inside for b in outside] if incoming else []))

    def heal(self, broken=False):
        self.wires.heal(broken)

    # The end

    def same_everywhere(self, seconds=30):
        """That all members hold the same; nothing may be written meanwhile. Gives the revision."""
        for member in self:
            eventually(lambda: member.read("x", timeout=2), seconds, f"{member.name} answers")
        found = {}
        for member in self:
            member.read("x")  # whatever was committed before is applied here now
            code, answer = member.post("/v3/kv/range", {**EVERYTHING, "serializable": True}, timeout=20)
            assert code == 200, answer
            found[member.name] = (answer["header"]["revision"], answer.get("kvs", []))
        revision = int(next(iter(found.values()))[0])
        for name, (at, kvs) in found.items():
            assert int(at) == revision, f"revisions differ: { {n: r for n, (r, _) in found.items()} }"
        first, *others = found
        for name in others:
            assert found[name] == found[first], f"{name} and {first} differ at revision {revision}"
        if others:
            self.same_hash(revision)
        return revision

    def same_hash(self, revision=None):
        """That hashkv is equal at this revision on all members, also while others write; without one, at what is
        there now. A member that does not answer is a failure."""
        revision = revision or int(self.leader().read("x")["header"]["revision"])
        hashes = {}
        for member in self:
            eventually(lambda: member.read("x", timeout=2), 15, f"{member.name} has revision {revision}")
            code, answer = member.post("/v3/maintenance/hashkv", {"revision": str(revision)}, timeout=20)
            assert code == 200, f"{member.name}: hashkv: {answer}"
            assert answer["hash_revision"] == str(revision), f"{member.name}: hashkv: {answer}"
            hashes[member.name] = (answer["hash"], answer.get("compact_revision"))
        assert len(set(hashes.values())) == 1, f"hashkv differs at revision {revision}: {hashes}"
        return revision
