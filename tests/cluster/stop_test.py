#!/usr/bin/env python3
"""What operators and harnesses do to the server: stop it, start it twice, give it wrong flags, pause it."""
import glob, http.client, json, os, signal, subprocess, sys, tempfile, time

from server import Server, b64, unb64


def stops_in_time_with_open_streams(program):
    with Server(program) as server:
        streams = []
        for _ in range(20):
            connection = server.connect(timeout=10)
            connection.request("POST", "/v3/watch", json.dumps({"create_request": {"key": b64("a")}}))
            response = connection.getresponse()
            assert b"created" in response.readline()
            streams.append((connection, response))
        idle = server.connect()
        server.post("/v3/kv/put", {"key": b64("a"), "value": b64("1")}, connection=idle)
        begin = time.monotonic()
        code = server.kill(signal.SIGTERM)
        took = time.monotonic() - begin
        assert code == 0, f"exit code {code}:\n{server.log()[-1000:]}"
        assert took < 1.5, f"stopping took {took:.2f} s"
        for _, response in streams:
            try:
                while response.readline():
                    pass
            except (OSError, http.client.HTTPException):
                pass
        server.start()
        status, answer = server.post("/v3/kv/range", {"key": b64("a")})
        assert unb64(answer["kvs"][0]["value"]) == "1"
        print(f"stopped with 20 open streams in {took * 1000:.0f} ms, exit 0")


def refuses_a_folder_in_use(program):
    with Server(program) as first:
        second = Server(program, folder=first.folder)
        second.log_path += ".second"
        second.start(wait=False)
        code = second.process.wait(timeout=10)
        assert code != 0 and "another conclave server is using this data folder" in second.log(), second.log()
        assert first.post("/v3/kv/range", {"key": b64("a")})[0] == 200
        print("a second server on the folder is refused")


def refuses_a_port_in_use_and_touches_nothing(program):
    with Server(program) as first, Server(program) as second:
        second.kill()
        second.port, own = first.port, second.folder
        with tempfile.TemporaryDirectory() as folder:
            second.folder = folder
            second.start(wait=False)
            code = second.process.wait(timeout=10)
            assert code != 0 and str(first.port) in second.log(), second.log()
            assert not os.path.exists(os.path.join(folder, "data")), "the data folder was touched"
        second.folder = own
        print("a port in use is refused, nothing touched")


def refuses_wrong_flags(program):
    for flags, words in [
        (["--no-such-flag"], "no-such-flag"),
        (["--election-timeout", "soon"], "election-timeout"),
        (["--auto-compaction-mode", "sometimes"], "auto-compaction-mode"),
        (["--listen-client-urls", "ftp://127.0.0.1:1"], "listen-client-urls"),
        (["--cert-file", "/x.pem"], "cert-file"),
        (["--initial-cluster-state", "existing"], "initial-cluster-state"),
    ]:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([program, "--data-dir", folder + "/data", *flags], capture_output=True, text=True, timeout=10, env={})
            assert done.returncode != 0 and words in done.stderr, (flags, done)
            assert not os.path.exists(folder + "/data"), f"{flags}: the data folder was touched"
    print("wrong flags are refused by name, nothing touched")


def survives_a_pause(program):
    with Server(program) as server:
        _, lease = server.post("/v3/lease/grant", {"TTL": 30})
        server.post("/v3/kv/put", {"key": b64("a"), "value": b64("1"), "lease": lease["ID"]})
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(3)
        server.process.send_signal(signal.SIGCONT)
        status, answer = server.post("/v3/kv/put", {"key": b64("b"), "value": b64("2")})
        assert status == 200, answer
        status, answer = server.post("/v3/lease/timetolive", {"ID": lease["ID"]})
        assert int(answer["TTL"]) > 20, answer
        print("a paused server goes on")


def remaining_time_survives_a_restart(program):
    with Server(program) as server:
        _, lease = server.post("/v3/lease/grant", {"TTL": 10})
        server.post("/v3/kv/put", {"key": b64("a"), "value": b64("1"), "lease": lease["ID"]})
        time.sleep(6.5)  # past the checkpoint at 0.4 TTL; nobody renews
        server.kill()
        server.start()
        _, answer = server.post("/v3/lease/timetolive", {"ID": lease["ID"], "keys": True})
        assert 0 <= int(answer["TTL"]) <= 6, f"the restart gave the lease new time: {answer}"
        assert answer["keys"] == [b64("a")]
        end = time.monotonic() + 8
        while time.monotonic() < end and "kvs" in server.post("/v3/kv/range", {"key": b64("a")})[1]:
            time.sleep(0.05)
        assert "kvs" not in server.post("/v3/kv/range", {"key": b64("a")})[1], "the key outlived its lease"
        print(f"remaining time of a lease after a restart: {answer['TTL']} s of 10, then it ended")


def tells_why_it_stops_itself(program):
    with Server(program) as server:
        value = os.urandom(9000)
        _, answer = server.post("/v3/kv/put", {"key": b64("k"), "value": b64(value)})
        server.post("/v3/kv/put", {"key": b64("k"), "value": b64("another")})
        assert server.kill(signal.SIGTERM) == 0
        assert "stopping" in server.log() and "signal" in server.log() and "cannot go on" not in server.log(), server.log()
        os.truncate(server.log_path, 0)
        server.start()  # nothing is cached
        for path in glob.glob(os.path.join(server.folder, "data/store/*/store.db*")):
            with open(path, "r+b") as file:
                at = file.read().find(value[5000:5100])
                if at >= 0:
                    file.seek(at)
                    file.write(bytes([value[5000] ^ 1]))
        server.post("/v3/kv/range", {"key": b64("k"), "revision": answer["header"]["revision"]})
        assert server.process.wait(timeout=10) == 1
        end = server.log()[server.log().index("stopping because the member cannot go on"):]
        assert "store.db" in end.splitlines()[0], end
        assert "signal" not in server.log(), server.log()
        print("a server that stops itself says why")


if __name__ == "__main__":
    for check in (stops_in_time_with_open_streams, refuses_a_folder_in_use, refuses_a_port_in_use_and_touches_nothing,
                  refuses_wrong_flags, survives_a_pause, remaining_time_survives_a_restart,
                  tells_why_it_stops_itself):
        check(sys.argv[1])
