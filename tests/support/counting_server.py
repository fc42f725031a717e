"""An HTTP server on loopback that notes when each request reaches it: `counting_server.py REFUSALS DELAY`.

The first REFUSALS requests of each body are refused with 429 and `Retry-After: 1`; the others are answered after DELAY
seconds with the JSON of `{"asked": body, "usage": …}`. GET gives all that was noted: the moments of the monotonic clock
and the bodies. The port is printed when the server listens.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter

REFUSALS, DELAY = (int(sys.argv[1]), float(sys.argv[2])) if __name__ == "__main__" else (0, 0.0)
NOTED: list[tuple[float, str]] = []
ASKED = Counter[str]()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            moment = time.monotonic()
            lengths = [
                line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")
            ]
            body = (await reader.readexactly(int(lengths[0]))).decode() if lengths else ""
            if head.startswith(b"GET"):
                answer(writer, 200, NOTED)
                continue
            NOTED.append((moment, body))
            ASKED[body] += 1
            if ASKED[body] <= REFUSALS:
                answer(writer, 429, {"error": "busy"})
                continue
            if DELAY:
                await asyncio.sleep(DELAY)
            answer(writer, 200, {"asked": body, "usage": {"input_tokens": len(body), "output_tokens": 1}})
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


def answer(writer: asyncio.StreamWriter, status: int, reported: object) -> None:
    body = json.dumps(reported).encode()
    after = "Retry-After: 1\r\n" if status == 429 else ""
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{after}Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=256)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
