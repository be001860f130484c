"""delay_proxy.py - a TCP proxy in front of an API server that delays every answer. It forwards TLS unread."""
import asyncio
import contextlib
import threading

CHUNK = 1 << 16


class DelayProxy:
    """Listens on a free port of 127.0.0.1 and forwards to another port there. Bytes of the client are forwarded at
    once, bytes of the server `delay_s` later, in order: the handshake of a new connection is delayed once, and each
    answer is."""

    def __init__(self, to_port, delay_s):
        self.to_port, self.delay_s, self.port = to_port, delay_s, None
        self.loop, self.listens = asyncio.new_event_loop(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()
        assert self.listens.wait(60), "the proxy does not listen"

    def run(self):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.connected, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self.listens.set()
        self.loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.close()

    def end(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    async def connected(self, reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.to_port)
        except OSError:
            writer.close()
            return
        with contextlib.suppress(asyncio.CancelledError):  # cancelled by end()
            await asyncio.gather(self.forward(reader, far_writer, 0), self.forward(far_reader, writer, self.delay_s))

    async def forward(self, reader, writer, delay_s):
        """Continues to read while earlier bytes wait: the delay is a latency, not a rate limit."""
        waiting = asyncio.Queue()
        deliver = asyncio.ensure_future(self.deliver(waiting, writer))
        try:
            while data := await reader.read(CHUNK):
                waiting.put_nowait((self.loop.time() + delay_s, data))
        except OSError:
            pass
        waiting.put_nowait((0, b""))
        await deliver

    async def deliver(self, waiting, writer):
        try:
            while (item := await waiting.get())[1]:
                await asyncio.sleep(item[0] - self.loop.time())
                writer.write(item[1])
                await writer.drain()
        except OSError:
            pass
        writer.close()
