"""Protects the server from other sites and clients: response headers, rate limits, origin checks, the admin token."""

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

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
MIN_TOKEN_LENGTH = 16


def framed_by(sites: str) -> dict[str, str]:
    """Headers of a page that these sites show in a frame and take forms from; browsers then ignore X-Frame-Options."""
    policy = CONTENT_SECURITY_POLICY.replace("form-action 'self'", f"form-action 'self' {sites}")
    return {"Content-Security-Policy": policy.replace("frame-ancestors 'none'", f"frame-ancestors {sites}")}


class SecurityHeaders:
    """ASGI middleware that adds `HEADERS` to every response that does not set them."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_with_headers)


class TokenBucket:
    """Allows `rate` requests per second on average, and bursts of up to `burst`."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self.tokens, self.updated = burst, clock()

    def take(self) -> bool:
        """Takes a token if one is left."""
        now = self.clock()
        self.tokens = min(self.burst, self.tokens + (now - self.updated) * self.rate)
        self.updated = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class RateLimiter:
    """One token bucket per client address; the least recently used are dropped beyond `max_addresses`."""

    def __init__(self, rate: float, burst: float, max_addresses: int = 4096) -> None:
        self.rate, self.burst, self.max_addresses = rate, burst, max_addresses
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def allow(self, address: str) -> bool:
        bucket = self._buckets.setdefault(address, TokenBucket(self.rate, self.burst))
        self._buckets.move_to_end(address)
        if len(self._buckets) > self.max_addresses:
            self._buckets.popitem(last=False)
        return bucket.take()


def same_origin(headers: Headers) -> bool:
    """Whether a request comes from one of this server's pages, or from no page at all (no Origin header)."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host")


def admin_token(path: str | os.PathLike[str]) -> str:
    """Reads the admin token, or creates one in a file that only its owner can read."""
    path = Path(path)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        token = path.read_text().strip()
        if len(token) < MIN_TOKEN_LENGTH:
            raise ValueError(f"{path}: the admin token must have at least {MIN_TOKEN_LENGTH} characters") from None
        return token
    token = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w") as file:
        file.write(token + "\n")
    return token


def tokens_equal(given: str, expected: str) -> bool:
    """Compares in constant time, whatever the lengths."""
    digests = (hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in (given, expected))
    return hmac.compare_digest(*digests)


def bearer_token(headers: Headers) -> str:
    """The token of the Authorization header, or an empty string."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
