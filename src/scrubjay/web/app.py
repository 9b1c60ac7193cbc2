"""The server's routes: pages, games, records, studies and their data, over HTTP and a WebSocket."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from scrubjay.errors import RecordError, StudyError
from scrubjay.game.record import Record, load_records
from scrubjay.rooms.generate import SCENES, type_of
from scrubjay.rooms.room import GOALS
from scrubjay.sim.build import build_room
from scrubjay.sim.cells import CELLS
from scrubjay.sim.compile import CompiledRoom
from scrubjay.web import export, schemas, security
from scrubjay.web.connections import Limits, quiet_log
from scrubjay.web.database import Database
from scrubjay.web.export import split_of
from scrubjay.web.opponents import SOMEWHERE, Opponents
from scrubjay.web.pages import error_page, load_files
from scrubjay.web.participants import JoinError, Participants
from scrubjay.web.platforms import MTURK_SITES
from scrubjay.web.replays import BusyError, Replay, Replays
from scrubjay.web.schemas import (
    MAX_ANSWER_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_RECORD_BYTES,
    SEEDED_SCENE,
    BadInputError,
    parse,
)
from scrubjay.web.sessions import Sessions
from scrubjay.web.sockets import serve_socket
from scrubjay.web.study_protocol import Study, load_study, register_study
from scrubjay.web.trial import HIDE, NotAllowedError
from scrubjay.web.worker import StorageError, Worker
from scrubjay.web.world_pool import MAX_WORLDS, WorldPool

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
PAGES = {"/": "index.html", "/play": "play.html", "/watch": "watch.html", "/admin": "admin.html"}
FREE_PAGES = ("/play", "/watch")
"""Not served where there are only studies."""
READ_LIMIT, WRITE_LIMIT = (100.0, 500.0), (40.0, 400.0)
"""Requests per client address: per second on average, and at once."""
NEW_LIMIT, UPLOAD_LIMIT = (2.0, 200.0), (0.2, 60.0)
"""The same for new games and participants, and for uploaded records: both stay in the database."""
RESERVED_WORLDS = 4
"""Places in the world pool that preloading leaves free."""
TOO_MANY_REQUESTS = "Too many requests. Wait a moment and try again."


@dataclass
class Settings:
    """Configuration of a server."""

    data: Path = Path("out/play.db")
    """The database, one SQLite file. The admin token is stored beside it."""
    studies: Sequence[Path] = ()
    """Study files."""
    records: Sequence[Path] = ()
    """Record files that anyone may watch."""
    hosts: Sequence[str] = ()
    """Host names of the server, besides localhost."""
    size: int = 224
    """Image size in pixels, a multiple of 7, in studies and in games between scripted or trained players."""
    renderer: str = "auto"
    clock: Callable[[], float] = time.time
    build: Callable[[str], CompiledRoom] = build_room
    scenes: Sequence[str] = SCENES
    opponents: Opponents = field(default_factory=Opponents)
    progress: Callable[[int, int], None] = lambda done, total: None
    """Called with the number of hiding places checked, and their total, while studies are registered."""
    only_studies: bool = False
    """No free play and no records beside the studies."""
    limits: Limits = field(default_factory=Limits)
    new_limit: tuple[float, float] = NEW_LIMIT
    """Games and participants that a client address may create: per second on average, and at once."""
    play_size: int = 448
    """Image size of the games that people play outside studies, for them and for their opponents."""

    def __post_init__(self) -> None:
        for name, size in (("size", self.size), ("play-size", self.play_size)):
            if size < CELLS or size % CELLS:
                raise ValueError(f"{name}: a multiple of {CELLS}, not {size}")
        if self.only_studies and (self.records or not self.studies):
            raise ValueError("only-studies: name the studies, and no records")


class Server:
    """The parts of a running server and its route handlers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        listed: list[Record] = [record for path in settings.records for record in load_records(path)]
        loaded = [load_study(path) for path in settings.studies]
        database = Database(settings.data, writable=True)
        self.studies: dict[str, Study] = {}
        try:
            for study, locations in loaded:
                if study.name in self.studies:
                    raise StudyError(f"two studies have the name {study.name!r}: rename one of them")
                register_study(database, study, locations, settings.progress, settings.build)
                self.studies[study.name] = study
        except BaseException:
            database.close()
            raise
        self.token_file = Path(f"{settings.data}.admin-token")
        self.admin_token = security.admin_token(self.token_file)
        self.files = load_files(settings.only_studies)
        self.started = settings.clock()
        self.worker = Worker(database)
        worlds = WorldPool(settings.size, settings.renderer, settings.build)
        self.sessions = Sessions(self.worker, worlds, settings.opponents, settings.clock, settings.play_size)
        self.participants = Participants(database, self.studies, settings.clock)
        self.replays = Replays(self.worker, worlds, settings.opponents, listed)
        self.read_limiter, self.write_limiter = security.RateLimiter(*READ_LIMIT), security.RateLimiter(*WRITE_LIMIT)
        self.new_limiter, self.upload_limiter = (
            security.RateLimiter(*settings.new_limit),
            security.RateLimiter(*UPLOAD_LIMIT),
        )
        self.worker.call(self.worker.start, self.sessions.expire_unplayed())
        self.worker.call(self._preload, worlds, database)

    def _preload(self, worlds: WorldPool, database: Database) -> None:
        """Loads the studies' rooms, so that participants need not wait for them."""
        scenes = [study.practice.scene for study in self.studies.values()]
        rows = database.all("SELECT DISTINCT study, scene FROM locations ORDER BY scene")
        scenes += [row["scene"] for row in rows if row["study"] in self.studies]

        def job() -> Iterator[float]:
            for scene in list(dict.fromkeys(scenes))[: MAX_WORLDS - RESERVED_WORLDS]:
                while not worlds.ready(scene):
                    yield 0.02
                worlds.world(scene).view(("rgb",))
                yield 0

        self.worker.start(job())

    def app(self) -> Starlette:
        @asynccontextmanager
        async def lifespan(_: Starlette) -> AsyncIterator[None]:
            with quiet_log(asyncio.get_running_loop()):
                yield
                await asyncio.to_thread(self.worker.stop)

        only_studies = self.settings.only_studies
        routes = [Route(path, self.page) for path in PAGES if not only_studies or path not in FREE_PAGES]
        routes += [] if only_studies else self._free_routes()
        routes += [
            Route("/study/{name}", self.page),
            Route("/static/{file}", self.static),
            Route("/api/options", self.options),
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
            HTTPException: _http_error, BadInputError: _bad_input, RecordError: _bad_input,
            NotAllowedError: _not_allowed, BusyError: _busy, StorageError: _not_stored, Exception: _failed,
        }  # fmt: skip
        return Starlette(
            routes=[*routes, WebSocketRoute("/socket", self.socket)],
            middleware=middleware, exception_handlers=handlers, lifespan=lifespan,
        )  # fmt: skip

    def _free_routes(self) -> list[Route]:
        """Playing and watching outside studies."""
        return [
            Route("/api/play", self.play, methods=["POST"]),
            Route("/api/games", self.games, methods=["POST"]),
            Route("/api/records", self.records),
            Route("/api/records", self.add_record, methods=["POST"]),
            Route("/api/records/{name}", self.record),
            Route("/api/records/{name}/frames/{number:int}", self.frame),
            Route("/api/records/{name}/plan", self.plan),
        ]

    async def socket(self, socket: WebSocket) -> None:
        await serve_socket(socket, self.worker, self.sessions)

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Runs a function in the worker's thread."""
        return await asyncio.wrap_future(self.worker.call(function, *args))

    async def _body(
        self, request: Request, max_bytes: int = MAX_MESSAGE_BYTES, limiter: security.RateLimiter | None = None
    ) -> bytes:
        """The request's body, after checks of its origin, rate and size; `limiter` limits the rate further."""
        if not security.same_origin(request.headers):
            raise HTTPException(403, "Requests from other sites are not accepted.")
        address = _address(request)
        if not self.write_limiter.allow(address) or (limiter is not None and not limiter.allow(address)):
            raise HTTPException(429, TOO_MANY_REQUESTS)
        body = b""
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > max_bytes:
                    raise HTTPException(413, f"A request may have at most {max_bytes} bytes.")
        except ClientDisconnect:  # Nobody reads the answer, but an exception would be logged as the server's.
            raise HTTPException(400, "The request was not sent completely.") from None
        return body

    def _limit_reads(self, request: Request) -> None:
        if not self.read_limiter.allow(_address(request)):
            raise HTTPException(429, TOO_MANY_REQUESTS)

    # Pages.

    async def page(self, request: Request) -> Response:
        name = PAGES.get(request.url.path, "study.html")
        if name != "study.html":
            return self._file(name)
        study = self.studies.get(request.path_params["name"])
        if study is None:
            raise HTTPException(404, "There is no such study.")
        return self._file(name, security.framed_by(MTURK_SITES) if study.platform == "mturk" else {})

    async def static(self, request: Request) -> Response:
        return self._file(request.path_params["file"])

    def _file(self, name: str, headers: Mapping[str, str] = {}) -> Response:
        if name not in self.files:
            raise HTTPException(404, "There is no such page.")
        content, media_type = self.files[name]
        return Response(content, media_type=media_type, headers={"Cache-Control": "no-cache", **headers})

    async def options(self, request: Request) -> Response:
        self._limit_reads(request)
        scenes = [{"scene": scene, "type": type_of(scene), "split": split_of(scene)} for scene in self.settings.scenes]
        opponents = self.settings.opponents
        studies = [{"name": study.name, "title": study.title} for study in self.studies.values()]
        return JSONResponse({
            "scenes": scenes, "goals": list(GOALS), "hiders": [SOMEWHERE, *opponents.hiders],
            "seekers": list(opponents.seekers), "studies": studies, "size": self.settings.size,
        })  # fmt: skip

    # Games and records.

    async def play(self, request: Request) -> Response:
        body = parse(schemas.play, await self._body(request, limiter=self.new_limiter))
        opponents = self.settings.opponents
        self._check_scene(body.scene)
        self._check_player(
            "opponent", body.opponent, opponents.seekers if body.role == HIDE else (SOMEWHERE, *opponents.hiders)
        )
        seed = secrets.randbelow(2**31) if body.seed is None else body.seed
        token = await self._call(
            self.sessions.database.new_trial, body.role, body.scene, body.goal, body.opponent, seed,
            self.settings.clock(),
        )  # fmt: skip
        return JSONResponse({"trial": token})

    async def games(self, request: Request) -> Response:
        body = parse(schemas.game, await self._body(request, limiter=self.new_limiter))
        self._check_scene(body.scene)
        self._check_player("hider", body.hider, self.settings.opponents.hiders)
        self._check_player("seeker", body.seeker, self.settings.opponents.seekers)
        seed = secrets.randbelow(2**31) if body.seed is None else body.seed
        name = await self._call(self.replays.play, body.scene, body.goal, body.hider, body.seeker, seed)
        return JSONResponse({"record": name})

    def _check_player(self, field: str, name: str, names: Collection[str]) -> None:
        if name not in names:
            raise BadInputError(f"{field}: must be one of {', '.join(names)}")

    def _check_scene(self, scene: str) -> None:
        if scene not in self.settings.scenes and not SEEDED_SCENE.fullmatch(scene):
            raise BadInputError("scene: there is no such room")

    async def records(self, request: Request) -> Response:
        self._limit_reads(request)
        return JSONResponse({"records": self.replays.listed()})

    async def add_record(self, request: Request) -> Response:
        body = await self._body(request, MAX_RECORD_BYTES, self.upload_limiter)
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise BadInputError("not a record: invalid JSON") from error
        if isinstance(data, dict):
            self._check_scene(str(data.get("scene")))
        return JSONResponse({"record": await self._call(self.replays.add, data)})

    async def _replay(self, request: Request) -> Replay:
        self._limit_reads(request)
        try:
            return await self._call(self.replays.get, request.path_params["name"])
        except KeyError:
            raise HTTPException(404, "There is no such record.") from None

    async def record(self, request: Request) -> Response:
        replay = await self._replay(request)
        return JSONResponse(replay.as_json())

    async def frame(self, request: Request) -> Response:
        replay, number = await self._replay(request), request.path_params["number"]
        if number >= len(replay.frames):
            raise HTTPException(404, "There is no such frame yet.")
        headers = {"Cache-Control": "private, max-age=600"}
        return Response(replay.frames[number], media_type="image/jpeg", headers=headers)

    async def plan(self, request: Request) -> Response:
        replay = await self._replay(request)
        if not replay.plan:
            raise HTTPException(404, "There is no plan yet.")
        return Response(replay.plan, media_type="image/png")

    # Studies.

    async def join(self, request: Request) -> Response:
        body = parse(schemas.join, await self._body(request, limiter=self.new_limiter))
        name = request.path_params["name"]
        if name not in self.studies:
            raise HTTPException(404, "There is no such study.")
        browser = request.headers.get("user-agent", "")
        try:
            return JSONResponse(await self._call(self.participants.join, name, body.parameters, browser))
        except JoinError as error:
            return _error(409, error.code, str(error))

    async def participant(self, request: Request) -> Response:
        self._limit_reads(request)
        return await self._status(self.participants.status, security.bearer_token(request.headers))

    async def participant_action(self, request: Request) -> Response:
        body = parse(schemas.participant_action, await self._body(request, MAX_ANSWER_BYTES))
        token, client_time = security.bearer_token(request.headers), schemas.seconds(body.at)
        return await self._status(self.participants.act, token, body.do, body.answers, client_time)

    async def _status(self, function: Callable[..., Any], *args: Any) -> Response:
        try:
            return JSONResponse(await self._call(function, *args))
        except KeyError:
            raise HTTPException(401, "This participant is unknown.") from None

    # Administration.

    def _check_admin(self, request: Request) -> None:
        self._limit_reads(request)
        if not security.tokens_equal(security.bearer_token(request.headers), self.admin_token):
            raise HTTPException(401, "The admin token is needed. Its file was printed when the server started.")

    async def progress(self, request: Request) -> Response:
        self._check_admin(request)
        studies = await asyncio.to_thread(export.read_progress, self.settings.data)
        studies = [{**study, "served": study["name"] in self.studies} for study in studies]
        uptime = round(self.settings.clock() - self.started, 1)
        return JSONResponse({
            "studies": studies, "live": len(self.sessions.active), "uptime": uptime, "problem": self.worker.problem,
        })  # fmt: skip

    async def export(self, request: Request) -> Response:
        self._check_admin(request)
        name, file = request.path_params["name"], request.path_params["file"]
        stored = await asyncio.to_thread(export.read_progress, self.settings.data)
        if name not in [study["name"] for study in stored] or file not in export.FILES:
            raise HTTPException(404, "There is no such study or file.")
        media_types = {".csv": "text/csv; charset=utf-8", ".txt": "text/plain; charset=utf-8"}
        media_type = media_types.get(Path(file).suffix, "application/json")
        headers = {"Content-Disposition": f'attachment; filename="{name}-{file}"'}
        chunks = export.export_file(self.settings.data, name, file)
        return StreamingResponse(chunks, media_type=media_type, headers=headers)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _error(status: int, code: str, message: str) -> Response:
    return JSONResponse({"error": code, "message": message}, status)


CODES = {400: "bad_input", 401: "token", 403: "forbidden", 404: "not_found", 405: "method", 413: "too_large",
         429: "too_fast"}  # fmt: skip
"""Error codes of the API by HTTP status."""


async def _http_error(request: Request, error: HTTPException) -> Response:
    message = str(error.detail)
    if error.status_code == 404:
        message = "There is no such page." if message == "Not Found" else message
        if "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(("/api/", "/static/")):
            return HTMLResponse(error_page(message), 404)
    return _error(error.status_code, CODES.get(error.status_code, "refused"), message)


async def _bad_input(_: Request, error: Exception) -> Response:
    return _error(400, "bad_input", str(error))


async def _busy(_: Request, error: Exception) -> Response:
    return _error(429, "busy", str(error))


async def _not_allowed(_: Request, error: Exception) -> Response:
    return _error(409, "not_now", str(error))


async def _not_stored(_: Request, error: Exception) -> Response:
    return _error(503, "storage", str(error))


async def _failed(_: Request, error: Exception) -> Response:
    return _error(500, "failed", "Something went wrong on the server. Nothing was changed.")
