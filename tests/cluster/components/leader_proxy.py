"""What a Service with the leader's label is to replicas of the controller: a port that leads to the leader.

Run as `python leader_proxy.py PORT REPLICA...`, all of them ports of it. A connection goes to the replica that
calls itself ready at that moment, stays with it, and is closed where there is none.
"""

import asyncio
import sys
from collections.abc import Sequence

HOST = "127.0.0.1"
PATIENCE_S = 1.0
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def leads(port: int) -> bool:
    """Whether the replica says so in time; one that is stopped does not."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(f"GET /readyz HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            status = await reader.readline()
            writer.close()
    except (OSError, TimeoutError):
        return False
    return b" 200 " in status


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one of the two ends."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()


async def come(near: Streams, replicas: Sequence[int]) -> None:
    answers = await asyncio.gather(*(leads(port) for port in replicas))
    found = [port for port, ready in zip(replicas, answers, strict=True) if ready]
    try:
        far = await asyncio.open_connection(HOST, found[0])
    except (OSError, IndexError):
        near[1].close()
        return
    await asyncio.gather(pass_on(near[0], far[1]), pass_on(far[0], near[1]))


async def main() -> None:
    port, *replicas = map(int, sys.argv[1:])
    server = await asyncio.start_server(lambda reader, writer: come((reader, writer), replicas), HOST, port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
