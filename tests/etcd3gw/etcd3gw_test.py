"""PyPI's etcd3gw against a server program (CONCLAVE_BIN): each call that its users make, with what they rely on."""

import os
import queue
import signal
import sys
import threading
import unittest
import uuid

import etcd3gw
from etcd3gw import exceptions

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cluster"))
from server import Server  # noqa: E402

EVENT_SECONDS = 10


class Etcd3gw(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(os.environ["CONCLAVE_BIN"])
        cls.addClassCleanup(cls.server.__exit__)
        cls.server.start()

    @classmethod
    def tearDownClass(cls):
        code = cls.server.kill(signal.SIGTERM)
        if os.path.basename(os.environ["CONCLAVE_BIN"]) == "conclave":  # etcd dies of the signal instead
            assert code == 0, "exit code %d after SIGTERM" % code

    def setUp(self):
        self.client = etcd3gw.client(host="127.0.0.1", port=self.server.port, timeout=10)
        self.prefix = uuid.uuid4().hex + "/"

    def key(self, name):
        return self.prefix + name

    def test_finds_the_api_by_the_version(self):
        self.assertEqual(self.client.api_path, "/v3/")

    def test_status_and_members(self):
        status = self.client.status()
        self.assertTrue(status["version"].startswith("3."))
        self.assertEqual(status["leader"], status["header"]["member_id"])
        members = self.client.members()
        self.assertEqual([member["name"] for member in members], ["m0"])
        self.assertEqual(members[0]["clientURLs"], ["http://127.0.0.1:%d" % self.server.port])

    def test_put_get_delete(self):
        key = self.key("k")
        self.assertEqual(self.client.get(key), [])
        self.assertTrue(self.client.put(key, "value"))
        self.assertEqual(self.client.get(key), [b"value"])
        self.assertTrue(self.client.put(key, b"\x00\xff bytes"))
        [(value, metadata)] = self.client.get(key, metadata=True)
        self.assertEqual(value, b"\x00\xff bytes")
        self.assertEqual(metadata["key"], key.encode())
        self.assertEqual(metadata["version"], "2")
        self.assertGreater(int(metadata["mod_revision"]), int(metadata["create_revision"]))
        self.assertTrue(self.client.delete(key))
        self.assertFalse(self.client.delete(key))
        self.assertEqual(self.client.get(key), [])

    def test_prefix_order_and_limits(self):
        for name in ("b", "a", "c"):
            self.client.put(self.key(name), "value " + name)
        found = self.client.get_prefix(self.prefix, sort_order="ascend", sort_target="key")
        self.assertEqual([value for value, _ in found], [b"value a", b"value b", b"value c"])
        found = self.client.get_prefix(self.prefix, sort_order="descend", sort_target="mod")
        self.assertEqual([value for value, _ in found], [b"value c", b"value a", b"value b"])
        self.assertEqual(self.client.get(self.key("a"), range_end=self.key("c"), limit=1, sort_order="ascend"), [b"value a"])
        old = int(found[-1][1]["mod_revision"])
        self.assertEqual(self.client.get(self.key("a"), revision=old), [])
        self.assertTrue(self.client.delete_prefix(self.prefix))
        self.assertEqual(list(self.client.get_prefix(self.prefix)), [])

    def test_create_and_replace(self):
        key = self.key("k")
        self.assertTrue(self.client.create(key, "first"))
        self.assertFalse(self.client.create(key, "second"))
        self.assertFalse(self.client.replace(key, "second", "third"))
        self.assertTrue(self.client.replace(key, "first", "second"))
        self.assertEqual(self.client.get(key), [b"second"])

    def test_transaction(self):
        encoded = lambda text: etcd3gw.utils._encode(self.key(text))
        self.client.put(self.key("guard"), "open")
        transaction = {
            "compare": [{"key": encoded("guard"), "result": "EQUAL", "target": "VALUE",
                         "value": etcd3gw.utils._encode("open")}],
            "success": [{"request_put": {"key": encoded("guard"), "value": etcd3gw.utils._encode("shut")}},
                        {"request_put": {"key": encoded("who"), "value": etcd3gw.utils._encode("me")}}],
            "failure": [{"request_range": {"key": encoded("guard")}}],
        }
        result = self.client.transaction(transaction)
        self.assertTrue(result["succeeded"])
        self.assertEqual(len(result["responses"]), 2)
        result = self.client.transaction(transaction)
        self.assertNotIn("succeeded", result)  # false is left out, as in etcd
        [found] = result["responses"][0]["response_range"]["kvs"]
        self.assertEqual(etcd3gw.utils._decode(found["value"]), b"shut")

    def test_lease_holds_refreshes_and_revokes(self):
        lease = self.client.lease(ttl=30)
        self.client.put(self.key("a"), "1", lease=lease)
        self.client.put(self.key("b"), "2", lease=lease)
        self.assertEqual(sorted(lease.keys()), [self.key("a").encode(), self.key("b").encode()])
        self.assertIn(lease.ttl(), range(25, 31))
        self.assertEqual(lease.refresh(), 30)
        self.assertTrue(lease.revoke())
        self.assertEqual(self.client.get(self.key("a")), [])
        self.assertEqual(self.client.get(self.key("b")), [])
        self.assertEqual(lease.refresh(), -1)
        self.assertEqual(lease.ttl(), -1)

    def test_lease_expires_with_its_keys(self):
        lease = self.client.lease(ttl=2)
        self.client.put(self.key("k"), "v", lease=lease)
        events, cancel = self.client.watch(self.key("k"))
        try:
            event = self.next_event(events)
            self.assertEqual((event["type"], event["kv"]["key"]), ("DELETE", self.key("k").encode()))
        finally:
            cancel()
        self.assertEqual(lease.ttl(), -1)

    def test_put_with_an_unknown_lease_is_an_error(self):
        lease = self.client.lease(ttl=30)
        lease.revoke()
        with self.assertRaises(exceptions.Etcd3Exception) as raised:
            self.client.put(self.key("k"), "v", lease=lease)
        self.assertIn("requested lease not found", raised.exception.detail_text)

    @staticmethod
    def next_event(events):
        """The iterator blocks without end: a thread takes one event for at most EVENT_SECONDS."""
        found = queue.Queue()
        threading.Thread(target=lambda: found.put(next(events)), daemon=True).start()
        return found.get(timeout=EVENT_SECONDS)

    def test_watch_tells_each_change_in_order(self):
        events, cancel = self.client.watch_prefix(self.prefix)
        try:
            self.client.put(self.key("a"), "1")
            self.client.put(self.key("b"), "2")
            self.client.delete(self.key("a"))
            seen = [self.next_event(events) for _ in range(3)]
        finally:
            cancel()
        self.assertEqual([(event.get("type", "PUT"), event["kv"]["key"], event["kv"].get("value")) for event in seen],
                         [("PUT", self.key("a").encode(), b"1"), ("PUT", self.key("b").encode(), b"2"),
                          ("DELETE", self.key("a").encode(), None)])

    def test_watch_from_a_past_revision(self):
        self.client.put(self.key("k"), "old")
        [(_, metadata)] = self.client.get(self.key("k"), metadata=True)
        self.client.put(self.key("k"), "new")
        events, cancel = self.client.watch(self.key("k"), start_revision=int(metadata["mod_revision"]))
        try:
            self.assertEqual([self.next_event(events)["kv"]["value"] for _ in range(2)], [b"old", b"new"])
        finally:
            cancel()

    def test_watch_once(self):
        key = self.key("k")
        self.client.put(key, "before")
        [(_, metadata)] = self.client.get(key, metadata=True)
        later = int(metadata["mod_revision"]) + 1
        self.client.put(key, "after")
        self.assertEqual(self.client.watch_once(key, timeout=EVENT_SECONDS, start_revision=later)["kv"]["value"], b"after")
        with self.assertRaises(exceptions.WatchTimedOut):
            self.client.watch_once(self.key("never"), timeout=0.3)

    def test_lock_excludes_and_is_released(self):
        name = self.prefix.strip("/")
        first, second = self.client.lock(name, ttl=30), self.client.lock(name, ttl=30)
        self.assertTrue(first.acquire())
        self.assertTrue(first.is_acquired())
        self.assertFalse(second.acquire())
        self.assertFalse(second.is_acquired())
        self.assertEqual(first.refresh(), 30)
        self.assertFalse(second.release())
        self.assertTrue(first.release())
        self.assertTrue(second.acquire())
        self.assertTrue(second.release())

    def test_lock_is_free_when_its_lease_has_expired(self):
        name = self.prefix.strip("/")
        first = self.client.lock(name, ttl=2)
        self.assertTrue(first.acquire())
        events, cancel = self.client.watch(first.key)
        try:
            self.assertEqual(self.next_event(events)["type"], "DELETE")
        finally:
            cancel()
        with self.client.lock(name, ttl=30) as second:
            self.assertTrue(second.is_acquired())


if __name__ == "__main__":
    unittest.main()
