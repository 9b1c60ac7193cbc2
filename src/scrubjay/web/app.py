"""The server's routes: pages, games, records, studies and their data, over HTTP and a socket."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from scrubjay.errors import RecordError, StudyError
from scrubjay.game.record import Record, load_records
from scrubjay.rooms.generate import SCENES, split, type_of
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.compile import CompiledRoom
from scrubjay.web import export, schemas, security
from scrubjay.web.database import Database
from scrubjay.web.opponents import SOMEWHERE, Opponents
from scrubjay.web.participants import Participants, PreviewError
from scrubjay.web.replays import BusyError, Replays, Told
from scrubjay.web.schemas import MAX_MESSAGE_BYTES, MAX_RECORD_BYTES, SEEDED_SCENE, BadInputError, parsed
from scrubjay.web.sessions import Sessions
from scrubjay.web.sockets import serve_socket
from scrubjay.web.study_protocol import Study, enter, load_study
from scrubjay.web.trial import HIDE, NotAllowedError
from scrubjay.web.worker import Worker
from scrubjay.web.world_pool import MOST, WorldPool

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PAGES = {"/": "index.html", "/play": "play.html", "/watch": "watch.html", "/admin": "admin.html"}
KINDS = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2",
}  # fmt: skip
"""Of the files that are served."""
READS, WRITES = (100.0, 500.0), (40.0, 400.0)
"""Requests of one address: a second, and at once."""


@dataclass
class Settings:
    """What a server is started with."""

    data: Path = Path("out/play.db")
    """The database: one SQLite file. The admin's token lies beside it."""
    studies: Sequence[Path] = ()
    """Files of studies."""
    records: Sequence[Path] = ()
    """Files of records that everybody may watch."""
    hosts: Sequence[str] = ()
    """Names under which the server is reached, beside this machine's own."""
    size: int = 224
    """The edge of the pictures in pixels."""
    renderer: str = "auto"
    clock: Callable[[], float] = time.time
    build: Callable[[str], CompiledRoom] = build_room
    scenes: Sequence[str] = SCENES
    opponents: Opponents = field(default_factory=Opponents)
    progress: Callable[[int, int], None] = lambda done, total: None
    """Told how many hiding places of the studies are looked at, of how many."""


class Server:
    """All parts of a running server, and the handlers of its routes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        listed: list[Record] = [record for path in settings.records for record in load_records(path)]
        loaded = [load_study(path) for path in settings.studies]
        database = Database(settings.data, writing=True)
        self.studies: dict[str, Study] = {}
        try:
            for study, locations in loaded:
                if study.name in self.studies:
                    raise StudyError(f"two studies are called {study.name}")
                enter(database, study, locations, settings.progress, settings.build)
                self.studies[study.name] = study
        except BaseException:
            database.close()
            raise
        self.token_file = Path(f"{settings.data}.admin-token")
        self.admin_token = security.admin_token(self.token_file)
        self.files = _static_files()
        self.begun = settings.clock()
        self.worker = Worker(database)
        rooms = WorldPool(settings.size, settings.renderer, settings.build)
        self.sessions = Sessions(self.worker, rooms, settings.opponents, settings.clock)
        self.participants = Participants(database, self.studies, settings.clock)
        self.replays = Replays(self.worker, rooms, settings.opponents, listed)
        self.reads, self.writes = security.RateLimiter(*READS), security.RateLimiter(*WRITES)
        self.worker.call(self._warm, rooms, database)

    def _warm(self, rooms: WorldPool, database: Database) -> None:
        """Loads the studies' rooms, so that no participant waits for another's."""
        scenes = [study.practice.scene for study in self.studies.values()]
        rows = database.all("SELECT DISTINCT study, scene FROM locations ORDER BY scene")
        scenes += [row["scene"] for row in rows if row["study"] in self.studies]

        def job() -> Iterator[float]:
            for scene in list(dict.fromkeys(scenes))[: MOST - 4]:
                while not rooms.ready(scene):
                    yield 0.02
                rooms.world(scene).view(("rgb",))
                yield 0

        self.worker.start(job())

    def app(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            yield
            await asyncio.to_thread(self.worker.stop)

        routes = [Route(path, self.page) for path in PAGES]
        routes += [
            Route("/study/{name}", self.page),
            Route("/static/{file}", self.static),
            Route("/api/options", self.options),
            Route("/api/play", self.play, methods=["POST"]),
            Route("/api/games", self.games, methods=["POST"]),
            Route("/api/records", self.records),
            Route("/api/records", self.add_record, methods=["POST"]),
            Route("/api/records/{name}", self.record),
            Route("/api/records/{name}/frames/{number:int}", self.frame),
            Route("/api/records/{name}/plan", self.plan),
            Route("/api/studies/{name}/join", self.join, methods=["POST"]),
            Route("/api/participant", self.participant),
            Route("/api/participant", self.participant_action, methods=["POST"]),
            Route("/api/admin/progress", self.progress),
            Route("/api/admin/studies/{name}/{file}", self.export),
        ]
        trusted = [*LOOPBACK, *self.settings.hosts]
        middleware = [
            Middleware(security.SecurityHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=trusted, www_redirect=False),
        ]
        handlers: dict[Any, Any] = {
            HTTPException: _refused, BadInputError: _bad, RecordError: _bad, NotAllowedError: _out_of_turn,
            BusyError: _busy, Exception: _failed,
        }  # fmt: skip
        return Starlette(
            routes=[*routes, WebSocketRoute("/socket", self.socket)],
            middleware=middleware, exception_handlers=handlers, lifespan=lifespan,
        )  # fmt: skip

    async def socket(self, socket: WebSocket) -> None:
        await serve_socket(socket, self.worker, self.sessions)

    async def _call(self, function: Callable[..., Any], *values: Any) -> Any:
        return await asyncio.wrap_future(self.worker.call(function, *values))

    async def _body(self, request: Request, most: int = MAX_MESSAGE_BYTES) -> bytes:
        """What a request brings, if it may: from a page of ours, not too often, not too much."""
        if not security.same_origin(request.headers):
            raise HTTPException(403, "This page is not ours.")
        if not self.writes.take(_address(request)):
            raise HTTPException(429, "Too many requests: wait a little.")
        body = b""
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise HTTPException(413, f"A request has at most {most} bytes.")
        return body

    def _reading(self, request: Request) -> None:
        if not self.reads.take(_address(request)):
            raise HTTPException(429, "Too many requests: wait a little.")

    # Pages.

    async def page(self, request: Request) -> Response:
        name = PAGES.get(request.url.path, "study.html")
        if name == "study.html" and request.path_params["name"] not in self.studies:
            raise HTTPException(404, "There is no such study.")
        return self._file(name)

    async def static(self, request: Request) -> Response:
        return self._file(request.path_params["file"])

    def _file(self, name: str) -> Response:
        if name not in self.files:
            raise HTTPException(404, "There is no such page.")
        content, kind = self.files[name]
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    async def options(self, request: Request) -> Response:
        self._reading(request)
        scenes = [{"scene": scene, "type": type_of(scene), "split": _split(scene)} for scene in self.settings.scenes]
        opponents = self.settings.opponents
        studies = [{"name": study.name, "title": study.title} for study in self.studies.values()]
        return JSONResponse({
            "scenes": scenes, "goals": list(GOALS), "hiders": [SOMEWHERE, *opponents.hiders],
            "seekers": list(opponents.seekers), "studies": studies, "size": self.settings.size,
        })  # fmt: skip

    # Games and records.

    async def play(self, request: Request) -> Response:
        asked = parsed(schemas.play, await self._body(request))
        opponents = self.settings.opponents
        self._check(asked.scene, asked.opponent, opponents.seekers if asked.role == HIDE else
                    (SOMEWHERE, *opponents.hiders))  # fmt: skip
        seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
        token = await self._call(
            self.sessions.database.new_trial,
            asked.role,
            asked.scene,
            asked.goal,
            asked.opponent,
            seed,
            self.settings.clock(),
        )
        return JSONResponse({"trial": token})

    async def games(self, request: Request) -> Response:
        asked = parsed(schemas.game, await self._body(request))
        self._check(asked.scene, asked.hider, self.settings.opponents.hiders)
        self._check(asked.scene, asked.seeker, self.settings.opponents.seekers)
        seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
        name = await self._call(self.replays.play, asked.scene, asked.goal, asked.hider, asked.seeker, seed)
        return JSONResponse({"record": name})

    def _check(self, scene: str, opponent: str, opponents: Any) -> None:
        self._check_scene(scene)
        if opponent not in opponents:
            raise BadInputError(f"opponent: there are {', '.join(opponents)}")

    def _check_scene(self, scene: str) -> None:
        if scene not in self.settings.scenes and not SEEDED_SCENE.fullmatch(scene):
            raise BadInputError("scene: there is no such room")

    async def records(self, request: Request) -> Response:
        self._reading(request)
        return JSONResponse({"records": self.replays.listed()})

    async def add_record(self, request: Request) -> Response:
        body = await self._body(request, MAX_RECORD_BYTES)
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadInputError("not a record: no JSON") from error
        if isinstance(data, dict):
            self._check_scene(str(data.get("scene")))
        return JSONResponse({"record": await self._call(self.replays.add, data)})

    async def _told(self, request: Request) -> Told:
        self._reading(request)
        try:
            return await self._call(self.replays.told, request.path_params["name"])
        except KeyError:
            raise HTTPException(404, "There is no such record.") from None

    async def record(self, request: Request) -> Response:
        told = await self._told(request)
        return JSONResponse(told.as_json())

    async def frame(self, request: Request) -> Response:
        told, number = await self._told(request), request.path_params["number"]
        if number >= len(told.frames):
            raise HTTPException(404, "There is no such frame yet.")
        return Response(told.frames[number], media_type="image/jpeg", headers={"Cache-Control": "private, max-age=600"})

    async def plan(self, request: Request) -> Response:
        told = await self._told(request)
        if not told.plan:
            raise HTTPException(404, "There is no plan yet.")
        return Response(told.plan, media_type="image/png")

    # Studies.

    async def join(self, request: Request) -> Response:
        asked = parsed(schemas.join, await self._body(request))
        name = request.path_params["name"]
        if name not in self.studies:
            raise HTTPException(404, "There is no such study.")
        try:
            return JSONResponse(await self._call(self.participants.join, name, asked.parameters))
        except PreviewError as error:
            return _said(409, "preview", str(error))

    async def participant(self, request: Request) -> Response:
        self._reading(request)
        return await self._status(self.participants.status, security.bearer(request.headers))

    async def participant_action(self, request: Request) -> Response:
        asked = parsed(schemas.participant_action, await self._body(request))
        return await self._status(self.participants.do, security.bearer(request.headers), asked.do)

    async def _status(self, function: Callable[..., Any], *values: Any) -> Response:
        try:
            return JSONResponse(await self._call(function, *values))
        except KeyError:
            raise HTTPException(401, "This participant is not known here.") from None

    # The admin.

    def _admin(self, request: Request) -> None:
        self._reading(request)
        if not security.same(security.bearer(request.headers), self.admin_token):
            raise HTTPException(401, "The admin's token is needed; it is in the file that the server named.")

    async def progress(self, request: Request) -> Response:
        self._admin(request)
        studies = await asyncio.to_thread(self._progress)
        uptime = round(self.settings.clock() - self.begun, 1)
        return JSONResponse({"studies": studies, "live": len(self.sessions.active), "uptime": uptime})

    def _progress(self) -> list[dict[str, Any]]:
        database = Database(self.settings.data)
        try:
            return export.progress(database)
        finally:
            database.close()

    async def export(self, request: Request) -> Response:
        self._admin(request)
        name, file = request.path_params["name"], request.path_params["file"]
        if name not in self.studies or file not in export.FILES:
            raise HTTPException(404, "There is no such study or file.")
        kind = "text/csv; charset=utf-8" if file.endswith(".csv") else "application/json"
        headers = {"Content-Disposition": f'attachment; filename="{name}-{file}"'}
        return StreamingResponse(export.exported(self.settings.data, name, file), media_type=kind, headers=headers)


def _static_files() -> dict[str, tuple[bytes, str]]:
    """The page's files, read once: no path from outside ever reaches the disk."""
    folder = resources.files("scrubjay.web").joinpath("static")
    if not folder.is_dir():
        return {}
    found = [entry for entry in folder.iterdir() if entry.is_file() and Path(entry.name).suffix in KINDS]
    return {entry.name: (entry.read_bytes(), KINDS[Path(entry.name).suffix]) for entry in found}


def _split(scene: str) -> str:
    return split(scene) if scene in SCENES else "other"


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _said(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": code, "message": message}, status)


CODES = {400: "bad_input", 401: "token", 403: "forbidden", 404: "not_found", 405: "method", 413: "too_large",
         429: "too_fast"}  # fmt: skip


async def _refused(_: Request, error: HTTPException) -> Response:
    return _said(error.status_code, CODES.get(error.status_code, "refused"), str(error.detail))


async def _bad(_: Request, error: Exception) -> Response:
    return _said(400, "bad_input", str(error))


async def _busy(_: Request, error: Exception) -> Response:
    return _said(429, "busy", str(error))


async def _out_of_turn(_: Request, error: Exception) -> Response:
    return _said(409, "not_now", str(error))


async def _failed(_: Request, error: Exception) -> Response:
    return _said(500, "failed", "Something went wrong here; nothing was changed.")
