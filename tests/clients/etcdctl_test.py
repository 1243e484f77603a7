"""etcdctl (ETCDCTL) against a server program (CONCLAVE_BIN), over gRPC: what its users type, and what they read."""

import json
import os
import select
import signal
import subprocess
import sys
import time
import unittest
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cluster"))
from cluster import Cluster  # noqa: E402
from server import Server  # noqa: E402

SECONDS = 20


def environment(*ports):
    endpoints = ",".join("127.0.0.1:%d" % port for port in ports)
    return {**os.environ, "ETCDCTL_ENDPOINTS": endpoints}


class Running:
    """A command that goes on; its lines as they come."""

    def __init__(self, env, *arguments):
        self.process = subprocess.Popen([os.environ["ETCDCTL"], *arguments], env=env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.unread = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def line(self):
        end = time.monotonic() + SECONDS
        while b"\n" not in self.unread:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            assert ready, "no line in %d s; before it: %r" % (SECONDS, self.unread)
            some = os.read(self.process.stdout.fileno(), 65536)
            assert some, "it ended; before it: %r" % self.unread
            self.unread += some
        line, self.unread = self.unread.split(b"\n", 1)
        return line.decode()

    def quiet(self, seconds):
        return not self.unread and not select.select([self.process.stdout], [], [], seconds)[0]


class Etcdctl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(os.environ["CONCLAVE_BIN"])
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.start()
        cls.env = environment(cls.server.port)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.kill(signal.SIGTERM) == 0, "exit code after SIGTERM"

    def setUp(self):
        self.prefix = uuid.uuid4().hex + "/"

    def ctl(self, *arguments, stdin=None, fails=False):
        done = subprocess.run([os.environ["ETCDCTL"], *arguments], env=self.env, input=stdin, timeout=SECONDS,
                              stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, text=True)
        if fails:
            self.assertNotEqual(done.returncode, 0, done.stdout)
            return done.stderr
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.ctl(*arguments, "-w", "json"))

    def running(self, *arguments):
        return Running(self.env, *arguments)

    def key(self, name):
        return self.prefix + name

    # --- Keys

    def test_put_get_del(self):
        a, b = self.key("a"), self.key("b")
        self.assertEqual(self.ctl("put", a, "1"), "OK\n")
        self.assertEqual(self.ctl("put", b, "2"), "OK\n")
        self.assertEqual(self.ctl("get", a), a + "\n1\n")
        self.assertEqual(self.ctl("get", self.prefix, "--prefix", "--keys-only"), a + "\n\n" + b + "\n\n")
        self.assertEqual(self.ctl("get", self.prefix, "--prefix", "--order=DESCEND", "--print-value-only"), "2\n1\n")
        self.assertEqual(self.ctl("get", self.prefix, "--prefix", "--limit=1", "--print-value-only"), "1\n")
        self.assertEqual(self.ctl("get", a, b), a + "\n1\n")
        self.assertEqual(self.ctl("get", self.key("none")), "")
        self.assertEqual(self.ctl("put", a, "3", "--prev-kv"), "OK\n" + a + "\n1\n")
        self.assertEqual(self.ctl("del", self.prefix, "--prefix", "--prev-kv"), "2\n%s\n3\n%s\n2\n" % (a, b))

    def test_old_revisions_and_compaction(self):
        key = self.key("k")
        self.ctl("put", key, "old")
        revision = self.json("get", key)["header"]["revision"]
        self.ctl("put", key, "new")
        self.assertEqual(self.ctl("get", key, "--rev=%d" % revision, "--print-value-only"), "old\n")
        self.assertEqual(self.ctl("compaction", str(revision + 1)), "compacted revision %d\n" % (revision + 1))
        said = self.ctl("get", key, "--rev=%d" % revision, fails=True)
        self.assertIn("etcdserver: mvcc: required revision has been compacted", said)
        said = self.ctl("get", key, "--rev=%d" % (revision + 1000), fails=True)
        self.assertIn("etcdserver: mvcc: required revision is a future revision", said)

    def test_large_values_and_many_keys(self):
        key, value = self.key("large"), "x" * 1_000_000
        self.ctl("put", key, stdin=value)
        self.assertEqual(self.ctl("get", key, "--print-value-only"), value + "\n")
        self.assertIn("etcdserver: request is too large", self.ctl("put", key, stdin="x" * 1_600_000, fails=True))
        for i in range(5):  # an answer of more than the pieces it is made in
            self.ctl("put", self.key("many%d" % i), stdin=value)
        self.assertEqual(self.ctl("get", self.key("many"), "--prefix", "--print-value-only"), (value + "\n") * 5)

    def test_txn(self):
        key = self.key("k")
        self.ctl("put", key, "1")
        script = 'value("%s") = "1"\n\nput %s 2\nget %s\n\nput %s 3\n\n' % (key, key, key, key)
        self.assertEqual(self.ctl("txn", stdin=script), "SUCCESS\n\nOK\n\n%s\n2\n" % key)
        self.assertEqual(self.ctl("txn", stdin=script), "FAILURE\n\nOK\n")
        self.assertEqual(self.ctl("get", key, "--print-value-only"), "3\n")
        twice = 'create("%s") = "0"\n\n\nput %s 2\nput %s 3\n\n' % (key, key, key)
        self.assertIn("etcdserver: duplicate key given in txn request", self.ctl("txn", stdin=twice, fails=True))

    # --- Watches

    def test_watch(self):
        a = self.key("a")
        self.ctl("put", a, "0")
        revision = self.json("get", a)["header"]["revision"]
        with self.running("watch", self.prefix, "--prefix", "--prev-kv", "--rev=%d" % (revision + 1)) as watch:
            self.ctl("put", a, "1")
            self.assertEqual([watch.line() for _ in range(5)], ["PUT", a, "0", a, "1"])
            self.ctl("del", a)
            self.assertEqual([watch.line() for _ in range(5)], ["DELETE", a, "1", a, ""])
            self.assertTrue(watch.quiet(0.2))
        with self.running("watch", a, "--rev=%d" % revision) as watch:
            self.assertEqual([watch.line() for _ in range(8)], ["PUT", a, "0", "PUT", a, "1", "DELETE", a])

    def test_watch_of_what_is_compacted(self):
        key = self.key("k")
        for value in "123":
            self.ctl("put", key, value)
        revision = self.json("get", key)["header"]["revision"]
        self.ctl("compaction", str(revision))
        said = self.ctl("watch", key, "--rev=%d" % (revision - 2), fails=True)
        self.assertIn("required revision has been compacted", said)

    # --- Leases

    def test_leases(self):
        lease = self.ctl("lease", "grant", "100").split()[1]
        self.ctl("put", self.key("k"), "v", "--lease=" + lease)
        told = self.ctl("lease", "timetolive", lease, "--keys")
        self.assertIn("lease %s granted with TTL(100s)" % lease, told)
        self.assertIn(self.key("k"), told)
        self.assertIn(lease, self.ctl("lease", "list"))
        self.assertEqual(self.ctl("lease", "keep-alive", "--once", lease),
                         "lease %s keepalived with TTL(100)\n" % lease)
        self.assertEqual(self.ctl("lease", "revoke", lease), "lease %s revoked\n" % lease)
        self.assertEqual(self.ctl("get", self.key("k")), "")
        self.assertIn("already expired", self.ctl("lease", "timetolive", lease))
        self.assertIn("requested lease not found", self.ctl("lease", "revoke", lease, fails=True))

    def test_keep_alive_keeps_alive(self):
        lease = self.ctl("lease", "grant", "2").split()[1]
        self.ctl("put", self.key("k"), "v", "--lease=" + lease)
        with self.running("lease", "keep-alive", lease) as alive:
            for _ in range(6):  # each third of its TTL
                self.assertEqual(alive.line(), "lease %s keepalived with TTL(2)" % lease)
            self.assertNotEqual(self.ctl("get", self.key("k")), "")

    # --- Locks and elections: they are leases, keys and watches

    def test_lock(self):
        name = self.key("lock")
        with self.running("lock", name) as first:
            held = first.line()
            self.assertTrue(held.startswith(name + "/"))
            with self.running("lock", name) as second:
                self.assertTrue(second.quiet(0.5))
                first.process.send_signal(signal.SIGINT)
                self.assertNotEqual(second.line(), held)
        self.assertEqual(self.ctl("lock", self.key("other"), "echo", "inside"), "inside\n")

    def test_elect(self):
        name = self.key("election")
        with self.running("elect", name, "first") as first:
            key = first.line()
            self.assertEqual(first.line(), "first")
            with self.running("elect", "-l", name) as listener:
                self.assertEqual([listener.line(), listener.line()], [key, "first"])
                with self.running("elect", name, "second") as second:
                    self.assertTrue(second.quiet(0.5))
                    first.process.send_signal(signal.SIGINT)
                    key = second.line()
                    self.assertEqual(second.line(), "second")
                    self.assertEqual([listener.line(), listener.line()], [key, "second"])

    # --- The cluster

    def test_the_cluster(self):
        self.ctl("endpoint", "health")  # prints it to one or the other output, by version
        status = self.json("endpoint", "status")[0]["Status"]
        self.assertEqual(status["leader"], status["header"]["member_id"])
        self.assertTrue(status["version"].startswith("3."))
        members = self.json("member", "list")["members"]
        self.assertEqual([member["name"] for member in members], ["m0"])
        hashed = self.json("endpoint", "hashkv")[0]["HashKV"]
        self.assertGreater(hashed["header"]["revision"], 0)
        self.assertEqual(self.ctl("alarm", "list"), "")


class ThreeMembers(unittest.TestCase):
    """While the leader is killed."""

    def test_through_another_member(self):
        with Cluster(os.environ["CONCLAVE_BIN"]) as cluster:
            env = environment(*[member.port for member in cluster])
            name = uuid.uuid4().hex

            def ctl(*arguments):
                done = subprocess.run([os.environ["ETCDCTL"], "--command-timeout=15s", *arguments], env=env,
                                      stdin=subprocess.DEVNULL, timeout=2 * SECONDS, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
                return done.stdout

            with Running(env, "watch", name, "--rev=1") as watch:
                ctl("put", name, "1")
                self.assertEqual([watch.line() for _ in range(3)], ["PUT", name, "1"])
                with Running(env, "lock", name + "/lock") as lock:
                    lock.line()
                    cluster.leader().kill()
                    self.assertEqual(ctl("get", name, "--print-value-only"), "1\n")
                    ctl("put", name, "2")
                    self.assertEqual([watch.line() for _ in range(3)], ["PUT", name, "2"])
                    with Running(env, "lock", name + "/lock") as waiting:
                        self.assertTrue(waiting.quiet(0.5))
                        lock.process.send_signal(signal.SIGINT)
                        waiting.line()


if __name__ == "__main__":
    unittest.main()
