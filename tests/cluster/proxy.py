"""The wires between members, each direction by itself: what a member dials it says over its own connections, so
holding those of one sender to one receiver is a partition in one direction.

Every member advertises the port of its proxy as its peer URL. Who dials is looked up in /proc: the owner of the
socket at the other end. That works for any protocol and tells a member that was started anew from its former life.
"""
import asyncio, errno, os, socket, struct, threading

CHUNK_BYTES = 64 * 1024
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20


def inode_of(port, to_port):
    """Of the loopback socket that is bound to `port` and connected to `to_port`; None: it is gone.

    Asked of the kernel for this one socket (struct inet_diag_req_v2 and inet_diag_msg of linux/inet_diag.h): reading
    /proc/net/tcp takes milliseconds, and a dozen dialers at once would give up before their turn.
    """
    host = socket.inet_aton("127.0.0.1") + bytes(12)
    request = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
    request += struct.pack(">HH", port, to_port) + host + host + struct.pack("=I", 0) + b"\xff" * 8
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
            kernel.send(struct.pack("=IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY, 1, 1, 0) + request)
            answer = kernel.recv(4096)
        kind = struct.unpack_from("=H", answer, 4)[0]
        if kind == SOCK_DIAG_BY_FAMILY:
            return str(struct.unpack_from("=I", answer, 16 + 68)[0])
        if struct.unpack_from("=i", answer, 16)[0] == -errno.ENOENT:
            return None
    except OSError:
        pass
    return inode_by_table(port, to_port)


def inode_by_table(port, to_port):
    """The same where the kernel does not answer such questions."""
    ends = f" 0100007F:{port:04X} 0100007F:{to_port:04X} "
    with open("/proc/net/tcp") as table:
        for line in table:
            if ends in line:
                return line.split()[9]
    return None


def has_socket(pid, inode):
    try:
        for number in os.listdir(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{number}") == f"socket:[{inode}]":
                    return True
            except OSError:
                pass
    except OSError:
        pass
    return False


class Wires:
    """`who(inode)` names the member that owns a socket, or None."""

    def __init__(self, who):
        self.who, self.loop = who, asyncio.new_event_loop()
        self.open, self.tasks, self.servers = {}, {}, {}  # by (sender, receiver); by receiver
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout=10)

    def add(self, receiver, listening, to_port):
        """From now on what comes in at the socket `listening` goes to `to_port`."""
        port = listening.getsockname()[1]

        async def start():
            async def accept(reader, writer):
                await self.connection(receiver, port, to_port, reader, writer)
            self.servers[receiver] = await asyncio.start_server(accept, sock=listening)
        self.do(start())

    def remove(self, receiver):
        async def stop():
            self.servers.pop(receiver).close()
            for link in list(self.tasks):
                if receiver in link:
                    self.break_off(link)
        self.do(stop())

    def event(self, link):
        if link not in self.open:
            self.open[link] = asyncio.Event()
            self.open[link].set()
        return self.open[link]

    def cut(self, links):
        """Nothing passes any more; what is under way stays where it is."""
        async def run():
            for link in links:
                self.event(link).clear()
        self.do(run())

    def heal(self, broken):
        """All wires pass again: what was held goes on, or (`broken`) its connections are at an end."""
        async def run():
            for link, event in self.open.items():
                if not event.is_set():
                    if broken:
                        self.break_off(link)
                    event.set()
        self.do(run())

    def break_off(self, link):
        for task in list(self.tasks.get(link, ())):
            task.cancel()

    async def connection(self, receiver, port, to_port, reader, writer):
        up = None
        try:
            inode = inode_of(writer.get_extra_info("peername")[1], port)
            sender = inode and self.who(inode)
            if not sender:
                return  # gone already
            link = (sender, receiver)
            task = asyncio.current_task()
            self.tasks.setdefault(link, set()).add(task)
            try:
                await self.event(link).wait()
                up_reader, up = await asyncio.open_connection("127.0.0.1", to_port)
                pumps = [asyncio.ensure_future(self.pump(link, reader, up)),
                         asyncio.ensure_future(self.pump(link, up_reader, writer))]
                try:
                    await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for pump in pumps:
                        pump.cancel()
            finally:
                self.tasks[link].discard(task)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (writer, up):
                if end:
                    end.transport.abort()

    async def pump(self, link, reader, writer):
        try:
            while data := await reader.read(CHUNK_BYTES):
                await self.event(link).wait()
                writer.write(data)
                await writer.drain()
            await self.event(link).wait()
        except OSError:
            pass

    def stop(self):
        async def run():
            for server in self.servers.values():
                server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.do(run())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


def listen_on(port):
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(64)
    return listening
