"""Writes down what the clients of a test asked and heard, for the checkers of tests/history (its README has the rules).

Values of more than some hundred bytes are written as what they begin with and a digest.
"""
import hashlib, json, os, subprocess, threading, time

from server import unb64

VALUE_MAX = 200
COMPARES = {"MOD": "mod_revision", "VERSION": "version", "CREATE": "create_revision", "VALUE": "value"}


def checker_of(program):
    """The history_check of the same build, or what HISTORY_CHECK names."""
    build = os.path.dirname(os.path.dirname(os.path.realpath(program)))
    path = os.environ.get("HISTORY_CHECK") or os.path.join(build, "tests", "history_check")
    assert os.access(path, os.X_OK), f"{path} is not there: build the target history_check"
    return path


def short(value):
    text = unb64(value or "")
    return text if len(text) <= VALUE_MAX else f"{text[:40]}..{hashlib.sha1(text.encode()).hexdigest()}"


def key_value(kv):
    numbers = {name: kv[name] for name in ("create_revision", "mod_revision", "version", "lease") if name in kv}
    return {"key": unb64(kv["key"]), "value": short(kv.get("value")), **numbers}


def get(body):
    return {"kind": "GET", "key": unb64(body["key"]), "end": unb64(body.get("range_end", ""))}


def put(body):
    return {"kind": "PUT", "key": unb64(body["key"]), "value": short(body.get("value")), "lease": body.get("lease", 0)}


def part(request):
    """Of a transaction: what tests use of it."""
    (kind, body), = request.items()
    return {"requestPut": put, "requestRange": get}[kind](body)


def compare(body):
    target = body["target"]
    found = body[COMPARES[target]]
    there = {"value": short(found)} if target == "VALUE" else {"number": found}
    return {"key": unb64(body["key"]), "target": target, "relation": body["result"], **there}


def heard(response):
    """Of one part of an answer."""
    return {"kvs": [key_value(kv) for kv in response.get("kvs", [])]}


def operation(path, body, answer):
    """The fields that say what was asked and, if it was answered, what was heard; None: of no interest here."""
    if path == "/v3/kv/range":
        fields = {"success": [get(body)], "serializable": body.get("serializable", False)}
        return {**fields, "answers": [heard(answer)]} if answer else None
    if path == "/v3/kv/put":
        return {"success": [put(body)], **({"answers": [{}]} if answer else {})}
    if path != "/v3/kv/txn":
        return None
    fields = {"compares": [compare(one) for one in body.get("compare", [])],
              "success": [part(one) for one in body.get("success", [])],
              "failure": [part(one) for one in body.get("failure", [])]}
    if answer:
        responses = [next(iter(one.values())) for one in answer.get("responses", [])]
        fields.update(answers=[heard(one) for one in responses], failed_compares=not answer.get("succeeded", False))
    return fields


class History:
    """Any thread may add to it."""

    def __init__(self, path, checker, ranges=None):
        """`ranges`: (key, end) of all keys in it, and nobody else's; without it, of all that there are."""
        self.path, self.checker, self.mutex, self.lives, self.clients = path, checker, threading.Lock(), {}, 0
        self.ranges = ranges
        self.file = open(path, "w", encoding="utf-8")

    def client(self):
        with self.mutex:
            self.clients += 1
            return self.clients

    def write(self, line):
        text = json.dumps(line)
        with self.mutex:
            self.file.write(text + "\n")

    def life(self, member, before):
        """A number for the member between two of its starts; `before`: how often it had started when it was asked."""
        with self.mutex:
            known = (member.name, before) if member.lives == before else ("either", len(self.lives))
            return self.lives.setdefault(known, len(self.lives) + 1)

    def post(self, client, member, path, body, **more):
        """member.post(), written down. What is refused counts as what is not answered: it may happen yet."""
        lives, call, code, answer = member.lives, time.monotonic(), None, None
        try:
            code, answer = member.post(path, body, **more)
            return code, answer
        finally:
            returned = time.monotonic()
            fields = operation(path, body, answer if code == 200 else None)
            if fields and code == 200:
                fields.update(returned=returned, outcome="OK", revision=answer["header"]["revision"])
            if fields:
                fields.update(client=client, call=call, member=self.life(member, lives))
                self.write({"operation": fields})

    def watch(self, name, body, revision):
        """It starts, or is resumed: what lies below was heard, and here it may be of keys that are left out."""
        if self.ranges and revision > 1:
            self.write({"watch": {"watch": name, "kind": "PROGRESS", "at": time.monotonic(), "revision": revision - 1}})
        self.write({"watch": {"watch": name, "kind": "STARTED", "at": time.monotonic(), "revision": revision,
                              "key": unb64(body["key"]), "end": unb64(body.get("range_end", ""))}})

    def events(self, name, result):
        events = [{"is_delete": event.get("type") == "DELETE", "kv": key_value(event["kv"])}
                  for event in result["events"] if self.is_in(unb64(event["kv"]["key"]))]
        if not events:
            return
        self.write({"watch": {"watch": name, "kind": "EVENTS", "at": time.monotonic(),
                              "revision": result["header"]["revision"], "events": events}})

    def is_in(self, key):
        return self.ranges is None or any(begin <= key < end for begin, end in self.ranges)

    def check(self):
        """What the checker says of it; the watch must have heard everything. The file stays if it is not sound."""
        with self.mutex:
            self.file.close()
        command = [self.checker, "--watches-complete", self.path]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=600)
        text = (ran.stdout + ran.stderr).strip()
        assert ran.returncode == 0, f"history_check: {ran.returncode}: {text[-4000:]}"
        assert "undecided" not in text, text[-4000:]
        return text.splitlines()[-1].removeprefix(self.path + ": ")
