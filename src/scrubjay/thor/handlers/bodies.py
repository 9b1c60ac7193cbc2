"""Actions of an agent's body: walking, turning, looking, teleporting."""

from __future__ import annotations

from collections.abc import Callable

from scrubjay.rooms.directions import facing_vector
from scrubjay.thor.arguments import InvalidRequest
from scrubjay.thor.coordinates import Vector, numbers, to_room, vector
from scrubjay.thor.scene import ActionFailed
from scrubjay.thor.session import AGENT_HEIGHT, Session, snapped

UP, DOWN = -30.0, 60.0
"""Degrees between which a camera's horizon is; down is positive."""
MAX_WALK = 50.0
"""Meters of one action, which are walked in small steps."""
FLOOR_TOLERANCE = 0.05
"""Meters by which a position to teleport to may be off the floor."""


def mover(turn: float) -> Callable[..., None]:
    """A handler that walks in a direction, in degrees clockwise from where the agent faces."""

    def move(session: Session, agent: int, move_magnitude: float | None, noise: float, force_action: bool) -> None:
        settings, body = session.settings, session.agent(agent)
        meters = move_magnitude or settings.grid_size
        if abs(meters) > MAX_WALK:
            raise ActionFailed(f"moveMagnitude is at most {MAX_WALK:g} m, not {meters:g}")
        offset = meters * facing_vector(body.rotation + turn)
        if settings.snap_to_grid:
            offset = snapped(body.position + offset, settings.grid_size) - body.position
        session.scene.move(agent, offset, force_action)

    return move


def turner(sign: int) -> Callable[..., None]:
    """A handler that turns to the right (1) or left (-1)."""

    def turn(session: Session, agent: int, degrees: float | None, manual_interact: bool, force_action: bool) -> None:
        body = session.agent(agent)
        angle = session.settings.rotate_step if degrees is None else degrees
        rotation = normalized(body.rotation + sign * angle)
        session.scene.turn(agent, rotation, body.horizon, body.standing, force_action)

    return turn


def looker(sign: int) -> Callable[..., None]:
    """A handler that looks down (1) or up (-1)."""

    def look(session: Session, agent: int, degrees: float | None, force_action: bool) -> None:
        body = session.agent(agent)
        angle = 30.0 if degrees is None else degrees
        if angle < 0:
            raise ActionFailed(f"degrees must not be negative, but they are {angle:g}")
        horizon = round(body.horizon + sign * angle, 4)
        _check_horizon(horizon)
        session.scene.turn(agent, body.rotation, horizon, body.standing, force_action)

    return look


def rotate_look(session: Session, agent: int, rotation: Vector | None, horizon: float | None) -> None:
    """Sets rotation and horizon."""
    body = session.agent(agent)
    session.scene.turn(agent, _yaw(session, agent, rotation), _horizon(session, agent, horizon), body.standing)


def stander(standing: bool) -> Callable[..., None]:
    """A handler that stands up or crouches."""

    def stand(session: Session, agent: int) -> None:
        body = session.agent(agent)
        if not session.settings.stands:
            raise InvalidRequest(f"a {session.settings.mode} agent neither crouches nor stands up", "InvalidAction")
        if body.standing == standing:
            raise ActionFailed(f"agent {agent} already {'stands' if standing else 'crouches'}")
        session.scene.turn(agent, body.rotation, body.horizon, standing)

    return stand


def teleport(
    session: Session,
    agent: int,
    position: Vector | None,
    x: float | None,
    y: float | None,
    z: float | None,
    rotation: Vector | None,
    horizon: float | None,
    standing: bool | None,
    force_action: bool,
) -> None:
    """Puts an agent somewhere; what is not given stays."""
    body = session.agent(agent)
    if standing is not None and not session.settings.stands:
        raise InvalidRequest(f"a {session.settings.mode} agent has no argument: standing", "InvalidArgument")
    given = {axis: value for axis, value in zip("xyz", (x, y, z), strict=True) if value is not None} | (position or {})
    target = vector(session.position(agent)) | given
    floor = session.objects.floor + AGENT_HEIGHT
    if abs(target["y"] - floor) > FLOOR_TOLERANCE and not force_action:
        raise ActionFailed(f"y must be within {FLOOR_TOLERANCE:g} m of {floor:.3f}, but it is {target['y']:g}")
    session.scene.teleport(
        agent,
        to_room(numbers(target))[:2],
        _yaw(session, agent, rotation),
        _horizon(session, agent, horizon),
        body.standing if standing is None else standing,
        force_action,
    )


def normalized(degrees: float) -> float:
    """An angle in [0, 360), without the noise of repeated sums."""
    return round(degrees, 4) % 360


def _yaw(session: Session, agent: int, rotation: Vector | None) -> float:
    return session.agent(agent).rotation if rotation is None else normalized(rotation.get("y", 0.0))


def _horizon(session: Session, agent: int, horizon: float | None) -> float:
    """A horizon as given; 330 is -30."""
    if horizon is None:
        return session.agent(agent).horizon
    wrapped = (horizon + 180) % 360 - 180
    _check_horizon(wrapped)
    return wrapped


def _check_horizon(horizon: float) -> None:
    if not UP - 1e-3 <= horizon <= DOWN + 1e-3:
        where = "up" if horizon < 0 else "down"
        raise ActionFailed(f"a camera looks {where} by at most {-UP if horizon < 0 else DOWN:g} degrees")
