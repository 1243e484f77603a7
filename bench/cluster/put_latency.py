#!/usr/bin/env python3
"""Latency of puts at a given offered load, three members, against other servers of etcd's JSON gateway.

    put_latency.py --server etcd='etcd {flags}' --server conclave='build/bin/conclave {flags}' [--rate 1000] [--seconds 20]

`{flags}` becomes the etcd-style flags of one member. The load goes to the leader over a fixed number of connections and is
open: each put is due at a time of its own, and its latency counts from then, so a server that stalls is charged for all that
waited. The servers take turns for ROUNDS rounds; printed is each round, and the median of the rounds' percentiles.
"""
import argparse, base64, http.client, json, multiprocessing, os, shutil, signal, socket, statistics, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "cluster"))
from server import free_port  # noqa: E402

CONNECTIONS = 16
VALUE = base64.b64encode(b"v" * 256).decode()


def post(port, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read() or b"{}")
    finally:
        connection.close()


class Cluster:
    def __init__(self, command):
        self.folder = tempfile.mkdtemp(prefix="put-latency-")
        ports = [(free_port(), free_port()) for _ in range(3)]
        initial = ",".join(f"m{i}=http://127.0.0.1:{peer}" for i, (_, peer) in enumerate(ports))
        self.clients, self.processes = [client for client, _ in ports], []
        for i, (client, peer) in enumerate(ports):
            flags = (f"--name m{i} --data-dir {self.folder}/m{i} --listen-client-urls http://127.0.0.1:{client} "
                     f"--advertise-client-urls http://127.0.0.1:{client} --listen-peer-urls http://127.0.0.1:{peer} "
                     f"--initial-advertise-peer-urls http://127.0.0.1:{peer} --initial-cluster {initial} "
                     "--initial-cluster-state new")
            with open(f"{self.folder}/m{i}.log", "wb") as log:
                self.processes.append(subprocess.Popen(command.replace("{flags}", flags).split(), stdout=log, stderr=log))

    def leader(self):
        end = time.monotonic() + 30
        while time.monotonic() < end:
            for port in self.clients:
                try:
                    status = post(port, "/v3/maintenance/status", {})
                    if status["leader"] == status["header"]["member_id"] != "0":
                        return port
                except (OSError, ValueError, KeyError, http.client.HTTPException):
                    pass
            time.sleep(0.05)
        raise SystemExit(f"no leader within 30 s; see {self.folder}")

    def stop(self):
        for process in self.processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def connection_load(port, number, rate, seconds, begin, found):
    """One connection's share of the load; its latencies in seconds."""
    body = json.dumps({"key": base64.b64encode(b"key-%02d" % number).decode(), "value": VALUE})
    request = (f"POST /v3/kv/put HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
    latencies, every = [], CONNECTIONS / rate
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(int(seconds / every)):
            due = begin + (i + number / CONNECTIONS) * every
            if (wait := due - time.monotonic()) > 0:
                time.sleep(wait)
            connection.sendall(request)
            answer = b""
            while b"}}" not in answer:  # {"header":{...}}
                piece = connection.recv(65536)
                if not piece:
                    raise SystemExit("the server closed a connection")
                answer += piece
            if not answer.startswith(b"HTTP/1.1 200"):
                raise SystemExit(answer.decode(errors="replace")[:300])
            latencies.append(time.monotonic() - due)
    found.put(latencies)


def one_round(command, rate, seconds):
    cluster = Cluster(command)
    try:
        port, found = cluster.leader(), multiprocessing.Queue()
        begin = time.monotonic() + 0.5
        workers = [multiprocessing.Process(target=connection_load, args=(port, i, rate, seconds, begin, found))
                   for i in range(CONNECTIONS)]
        for worker in workers:
            worker.start()
        latencies = []
        for _ in workers:
            latencies += found.get(timeout=seconds + 60)
        for worker in workers:
            worker.join()
        latencies.sort()
        return [1000 * latencies[min(len(latencies) - 1, int(len(latencies) * q))] for q in (0.5, 0.99, 1)]
    finally:
        cluster.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", action="append", required=True, metavar="NAME=COMMAND")
    parser.add_argument("--rate", type=float, default=1000, help="puts per second (default 1000)")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    servers = [text.split("=", 1) for text in options.server]
    figures = {name: [] for name, _ in servers}
    for _ in range(options.rounds):
        for name, command in servers:
            figures[name].append(one_round(command, options.rate, options.seconds))
            p50, p99, longest = figures[name][-1]
            print(f"{name}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, longest {longest:.1f} ms", flush=True)
    first = statistics.median(round[1] for round in figures[servers[0][0]])
    for name, _ in servers:
        p50, p99, longest = (statistics.median(values) for values in zip(*figures[name]))
        print(f"{name}, median of {options.rounds}, {options.rate:.0f} puts/s: p50 {p50:.2f} ms, p99 {p99:.2f} ms "
              f"({p99 / first:.2f} of {servers[0][0]}), longest {longest:.1f} ms")


if __name__ == "__main__":
    main()
