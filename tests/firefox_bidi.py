"""Runs Firefox for Playwright over WebDriver BiDi, without the commands that this Firefox does not know yet.

Playwright drives unpatched Firefox through BiDi, but sends `emulation.setMediaFeaturesOverride` for every new page,
which Firefox 153 refuses. This script takes Firefox's place: it starts Firefox, passes messages on in both directions,
and answers that one command itself. `python firefox_bidi.py [arguments of Firefox]`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

FIREFOX = "/usr/bin/firefox-esr"
UNKNOWN = {"emulation.setMediaFeaturesOverride"}
LISTENING = re.compile(r"WebDriver BiDi listening on (ws://\S+)")


async def main() -> int:
    firefox = await asyncio.create_subprocess_exec(
        FIREFOX, *sys.argv[1:], stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    assert firefox.stdout is not None
    address = ""
    async for line in firefox.stdout:
        if match := LISTENING.search(line.decode(errors="replace")):
            address = match[1]
            break
    if address:
        async with serve(lambda socket: relay(socket, address), "127.0.0.1", 0, max_size=None) as server:
            port = server.sockets[0].getsockname()[1]
            print(f"WebDriver BiDi listening on ws://127.0.0.1:{port}", file=sys.stderr, flush=True)
            async for _ in firefox.stdout:
                pass
    return await firefox.wait()


async def relay(client: ServerConnection, address: str) -> None:
    """Passes the messages of one connection on, in both directions."""
    path = client.request.path if client.request else ""
    async with connect(address + path, max_size=None, ping_interval=None) as browser:

        async def answers() -> None:
            async for message in browser:
                await client.send(message)
            await client.close()

        answering = asyncio.create_task(answers())
        async for message in client:
            command = json.loads(message)
            if command.get("method") in UNKNOWN:
                await client.send(json.dumps({"type": "success", "id": command["id"], "result": {}}))
            else:
                await browser.send(message)
        answering.cancel()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
