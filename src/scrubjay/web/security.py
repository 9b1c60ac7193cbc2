"""What stands between the server and the rest of the world: headers, rates, origins, the admin's token."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


class SecurityHeaders:
    """Adds the headers to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, with_headers)


class TokenBucket:
    """So many a second, and so many at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self.left, self.last = burst, clock()

    def take(self) -> bool:
        """Takes one, if there is one."""
        now = self.clock()
        self.left = min(self.burst, self.left + (now - self.last) * self.rate)
        self.last = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class RateLimiter:
    """A bucket for each address, the last used ones kept."""

    def __init__(self, rate: float, burst: float, most: int = 4096) -> None:
        self.rate, self.burst, self.most = rate, burst, most
        self._of: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, address: str) -> bool:
        bucket = self._of.setdefault(address, TokenBucket(self.rate, self.burst))
        self._of.move_to_end(address)
        if len(self._of) > self.most:
            self._of.popitem(last=False)
        return bucket.take()


def same_origin(headers: Headers) -> bool:
    """Did a page of this very server send it, or no page at all?"""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def admin_token(path: str | os.PathLike[str]) -> str:
    """The admin's token, from a file that only its owner can read; it is made if there is none."""
    path = Path(path)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        token = path.read_text().strip()
        if len(token) < 16:
            raise ValueError(f"{path}: the admin's token has at least 16 characters") from None
        return token
    token = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
    return token


def same(given: str, right: str) -> bool:
    """Are they equal? Takes as long whatever is given."""
    digests = (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (given, right))
    return hmac.compare_digest(*digests)


def bearer(headers: Headers) -> str:
    """The token of an Authorization header, or nothing."""
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
