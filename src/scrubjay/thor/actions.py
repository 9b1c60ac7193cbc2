"""AI2-THOR's actions in one table, which drives dispatch, errors and the documentation.

`python -m scrubjay.thor.actions` prints the page of the documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from scrubjay.thor.arguments import (
    ANY,
    BOOL,
    BOOLS,
    FLOAT,
    FLOATS,
    INT,
    PARTIAL,
    RECORDS,
    REQUIRED,
    ROTATION,
    STRING,
    STRINGS,
    VECTOR,
    VECTORS,
    Argument,
    InvalidRequest,
    Kind,
    read,
)
from scrubjay.thor.handlers import bodies, cameras, hands, queries, setup, things


class Effect(Enum):
    """What has to be told after an action."""

    NOTHING = "a query: answered without objects and images"
    AGENT = "the agent and what it sees"
    THINGS = "objects moved or changed"


@dataclass(frozen=True)
class Action:
    """An action that a client can send."""

    name: str
    text: str
    handler: Callable[..., Any]
    arguments: tuple[Argument, ...] = ()
    effect: Effect = Effect.AGENT
    targets: bool = False
    """Takes an object by its id, or by x and y in the frame."""
    lenient: bool = False
    """Ignores unknown arguments."""

    def parameters(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The handler's parameters from a client's action; raises InvalidRequest."""
        if self.targets:
            self._check_target(given)
        return read(self.name, self.arguments, given, self.lenient)

    def _check_target(self, given: Mapping[str, Any]) -> None:
        names = {name for name, value in given.items() if value is not None}
        by_id, by_place = names & {"objectId", "receptacleObjectId"}, names & {"x", "y"}
        if by_id and by_place:
            raise InvalidRequest(
                f"Ambiguous action: {self.name} takes objectId or x and y, not both", "AmbiguousAction"
            )
        if not by_id and len(by_place) < 2:
            missing = ",".join(sorted({"x", "y"} - by_place)) if by_place else "objectId"
            raise InvalidRequest(
                f"action: {self.name} is missing the following arguments: {missing}", "MissingArguments"
            )


def _arguments(**arguments: Any) -> tuple[Argument, ...]:
    """Arguments from `name=kind` for required ones and `name=(kind, default)`."""
    return tuple(
        Argument(name, value) if isinstance(value, Kind) else Argument(name, *value)
        for name, value in arguments.items()
    )


FORCE = _arguments(forceAction=(BOOL, False))
ID = _arguments(objectId=STRING)
TARGET = _arguments(objectId=(STRING, None), x=(FLOAT, None), y=(FLOAT, None))
SEEN = _arguments(forceAction=(BOOL, False), forceVisible=(BOOL, False))
WALK = _arguments(moveMagnitude=(FLOAT, None), noise=(FLOAT, 0.0)) + FORCE
TURN = _arguments(degrees=(FLOAT, None), manualInteract=(BOOL, False)) + FORCE
LOOK = _arguments(degrees=(FLOAT, None)) + FORCE
XYZ = _arguments(x=(FLOAT, 0.0), y=(FLOAT, 0.0), z=(FLOAT, 0.0))
PLACE = _arguments(
    position=(PARTIAL, None), x=(FLOAT, None), y=(FLOAT, None), z=(FLOAT, None), rotation=(ROTATION, None)
)
TELEPORT = PLACE + _arguments(horizon=(FLOAT, None), standing=(BOOL, None)) + FORCE
CAMERA = _arguments(
    skyboxColor=(STRING, None), orthographic=(BOOL, None), orthographicSize=(FLOAT, None),
    nearClippingPlane=(FLOAT, None), farClippingPlane=(FLOAT, None), antiAliasing=(STRING, None),
)  # fmt: skip
ONE_OR_MORE = _arguments(objectId=(STRING, None), objectIds=(STRINGS, None))
PHYSICS = _arguments(timeStep=(FLOAT, None), simSeconds=(FLOAT, None))
INITIALIZE = _arguments(
    gridSize=(FLOAT, 0.25), visibilityDistance=(FLOAT, 1.5), fieldOfView=(FLOAT, None), agentMode=(STRING, "default"),
    agentCount=(INT, 1), snapToGrid=(BOOL, True), rotateStepDegrees=(FLOAT, 90.0), renderImage=(BOOL, True),
    renderDepthImage=(BOOL, False), renderInstanceSegmentation=(BOOL, False), renderSemanticSegmentation=(BOOL, False),
    renderObjectImage=(BOOL, False), renderClassImage=(BOOL, False), renderNormalsImage=(BOOL, False),
    fastActionEmit=(BOOL, True), width=(INT, None), height=(INT, None),
)  # fmt: skip
FLAG = "Changes metadata only."
AS_MOVED = "As MoveHeldObject in one direction, by moveMagnitude (gridSize)."


def _flag(name: str, text: str, able: str, state: str, to: bool) -> Action:
    handler = things.changer(able, state, to)
    return Action(name, f"{text} {FLAG}", handler, TARGET + FORCE, Effect.THINGS, targets=True)


def _hand(name: str, direction: str) -> Action:
    arguments = _arguments(moveMagnitude=(FLOAT, None), forceVisible=(BOOL, False))
    return Action(name, AS_MOVED, hands.hand_mover(direction), arguments, Effect.THINGS)


SECTIONS: dict[str, tuple[Action, ...]] = {
    "Beginning": (
        Action("Reset", "Makes a room anew, or another one; agents stand where they start.", setup.reset,
               _arguments(sceneName=(STRING, None)), Effect.THINGS),
        Action("Initialize", "Sets how agents act and what is rendered. Returns the cameras' near and far planes. "
               "agentMode is default or locobot, which neither crouches nor stands up. Other arguments are ignored.",
               setup.initialize, INITIALIZE, Effect.THINGS, lenient=True),
        Action("GetScenesInBuild", "Returns the names of iTHOR's 120 rooms.", queries.scenes, (), Effect.NOTHING),
        Action("ChangeResolution", "Changes the width and height of pictures.", cameras.change_resolution,
               _arguments(x=INT, y=INT)),
        Action("ChangeQuality", "Accepted; pictures have one quality.", setup.ignore_quality,
               _arguments(quality=(ANY, None))),
        Action("ChangeOpenSpeed", "Accepted; things open at once.", setup.ignore_speed, _arguments(x=(FLOAT, None))),
        Action("Pass", "Does nothing.", setup.pass_),
        Action("Done", "Does nothing: by it an agent says that it is done.", setup.pass_),
    ),
    "Walking and looking": (
        Action("MoveAhead", "Walks ahead by moveMagnitude (gridSize); fails if something is in the way.",
               bodies.mover(0), WALK),
        Action("MoveBack", "Walks back.", bodies.mover(180), WALK),
        Action("MoveLeft", "Walks to the left.", bodies.mover(270), WALK),
        Action("MoveRight", "Walks to the right.", bodies.mover(90), WALK),
        Action("RotateRight", "Turns by degrees (rotateStepDegrees) to the right; a held object turns along.",
               bodies.turner(1), TURN),
        Action("RotateLeft", "Turns to the left.", bodies.turner(-1), TURN),
        Action("LookUp", "Looks up by degrees (30), to a horizon of -30 at most.", bodies.looker(-1), LOOK),
        Action("LookDown", "Looks down by degrees (30), to a horizon of 60 at most.", bodies.looker(1), LOOK),
        Action("RotateLook", "Sets rotation and horizon.", bodies.rotate_look,
               _arguments(rotation=(ROTATION, None), horizon=(FLOAT, None))),
        Action("Crouch", "Crouches; fails if the agent does already.", bodies.stander(False)),
        Action("Stand", "Stands up; fails if the agent does already.", bodies.stander(True)),
        Action("Teleport", "Puts the agent somewhere, if it fits there; what is not given stays. y must be within "
               "0.05 m of the agent's height.", bodies.teleport, TELEPORT),
        Action("TeleportFull", "As Teleport.", bodies.teleport, TELEPORT),
    ),
    "Hands": (
        Action("OpenObject", "Opens an object by openness (1). moveMagnitude is the old name, in which 0 means 1.",
               hands.open_object, TARGET + _arguments(openness=(FLOAT, None)) + SEEN + _arguments(
                   moveMagnitude=(FLOAT, None), simplifyPhysics=(BOOL, False)), Effect.THINGS, targets=True),
        Action("CloseObject", "Closes an object.", hands.close_object,
               TARGET + SEEN + _arguments(simplifyPhysics=(BOOL, False)), Effect.THINGS, targets=True),
        Action("PickupObject", "Takes an object into the hand.", hands.pick_up,
               TARGET + FORCE + _arguments(manualInteract=(BOOL, False)), Effect.THINGS, targets=True),
        *(Action(name, "Lets go of the held object; it falls until it rests.", hands.drop,
                 FORCE + _arguments(autoSimulation=(BOOL, True)), Effect.THINGS)
          for name in ("DropHeldObject", "DropHandObject")),
        Action("ThrowObject", "Throws the held object ahead, with moveMagnitude newtons.", hands.throw,
               _arguments(moveMagnitude=(FLOAT, 0.0)) + FORCE + _arguments(autoSimulation=(BOOL, True)), Effect.THINGS),
        Action("PutObject", "Puts the held object into or onto an object, where it fits.", hands.put,
               TARGET + _arguments(receptacleObjectId=(STRING, None)) + FORCE + _arguments(
                   placeStationary=(BOOL, True), randomSeed=(INT, 0), putNearXY=(BOOL, False)), Effect.THINGS,
               targets=True),
        Action("MoveHeldObject", "Moves the held object, in meters as the agent faces.", hands.move_held,
               _arguments(ahead=(FLOAT, 0.0), right=(FLOAT, 0.0), up=(FLOAT, 0.0), forceVisible=(BOOL, False)),
               Effect.THINGS),
        *(_hand(f"MoveHeldObject{direction}", direction) for direction in hands.DIRECTIONS),
        *(_hand(f"MoveHand{direction}", direction) for direction in hands.DIRECTIONS),
        Action("MoveHandForce", "Moves the held object by x to the right, y up and z ahead, as far as it can.",
               hands.move_hand_force, XYZ, Effect.THINGS),
        Action("RotateHeldObject", "Turns the held object by pitch, yaw and roll, or to a rotation in the agent's "
               "frame.", hands.rotate_held, _arguments(pitch=(FLOAT, 0.0), yaw=(FLOAT, 0.0), roll=(FLOAT, 0.0),
                                                        rotation=(ROTATION, None)), Effect.THINGS),
        Action("RotateHandRelative", "Turns the held object by Euler angles in the agent's frame.",
               hands.rotate_hand_relative, XYZ, Effect.THINGS),
        Action("RotateHand", "Turns the held object to Euler angles in the agent's frame.", hands.rotate_hand, XYZ,
               Effect.THINGS),
    ),
    "States": (
        Action("ToggleObjectOn", f"Turns an object on, and what it controls: heat cooks, a faucet fills. {FLAG}",
               things.toggler(True), TARGET + SEEN, Effect.THINGS, targets=True),
        Action("ToggleObjectOff", f"Turns an object off. {FLAG}", things.toggler(False), TARGET + SEEN, Effect.THINGS,
               targets=True),
        _flag("SliceObject", "Slices an object, which stays one.", "sliceable", "isSliced", True),
        _flag("BreakObject", "Breaks an object, which stays whole to the eye.", "breakable", "isBroken", True),
        _flag("DirtyObject", "Makes an object dirty.", "dirtyable", "isDirty", True),
        _flag("CleanObject", "Makes an object clean.", "dirtyable", "isDirty", False),
        _flag("CookObject", "Cooks an object.", "cookable", "isCooked", True),
        _flag("UseUpObject", "Uses an object up.", "canBeUsedUp", "isUsedUp", True),
        Action("FillObjectWithLiquid", f"Fills an object with water, coffee or wine. {FLAG}", things.fill,
               TARGET + _arguments(fillLiquid=STRING) + FORCE, Effect.THINGS, targets=True),
        Action("EmptyLiquidFromObject", f"Empties an object. {FLAG}", things.empty, TARGET + FORCE, Effect.THINGS,
               targets=True),
    ),
    "Queries": (
        Action("GetReachablePositions", "Returns the positions on a grid that the agent can walk to.",
               queries.reachable_positions, _arguments(gridSize=(FLOAT, None), maxStepCount=(INT, 10_000),
                                                       directionsRelativeAgent=(BOOL, False)), Effect.NOTHING),
        Action("GetInteractablePoses", "Returns the agent's poses from which an object is visible. Every pose is "
               "tried, so pass rotations, horizons or maxPoses where seconds count.", queries.interactable_poses,
               ID + _arguments(positions=(VECTORS, None), rotations=(FLOATS, None), horizons=(FLOATS, None),
                               standings=(BOOLS, None), maxDistance=(FLOAT, None), maxPoses=(INT, 2**31 - 1)),
               Effect.NOTHING),
        Action("GetObjectInFrame", "Returns the id of the object at x, y of the frame, from the top left.",
               queries.object_in_frame, _arguments(x=FLOAT, y=FLOAT, checkVisible=(BOOL, False)), Effect.NOTHING),
        Action("GetCoordinateFromRaycast", "Returns the point that is seen at x, y of the frame.",
               queries.coordinate_from_raycast, _arguments(x=FLOAT, y=FLOAT), Effect.NOTHING),
        Action("GetVisibleObjects", "Returns the ids of visible objects.", queries.visible_objects,
               _arguments(maxDistance=(FLOAT, None), visibilityScheme=(STRING, None), objectIds=(STRINGS, None)),
               Effect.NOTHING),
        Action("GetShortestPath", "Returns the corners of a shortest walk to the place nearest to an object.",
               queries.shortest_path, _arguments(objectType=(STRING, None), objectId=(STRING, None),
                                                 position=(VECTOR, None), allowedError=(FLOAT, None)), Effect.NOTHING),
        Action("GetShortestPathToPoint", "Returns the corners of a shortest walk to target, or to x, y, z.",
               queries.shortest_path_to_point, _arguments(position=(VECTOR, None), target=(VECTOR, None))
               + _arguments(x=(FLOAT, None), y=(FLOAT, None), z=(FLOAT, None), allowedError=(FLOAT, None)),
               Effect.NOTHING),
        Action("GetSceneBounds", "Returns the box around everything.", queries.scene_bounds, (), Effect.NOTHING),
        Action("GetMapViewCameraProperties", "Returns arguments of AddThirdPartyCamera for a map.",
               queries.map_view_camera, (), Effect.NOTHING),
        Action("TestFastEmit", "Returns rvalue.", queries.reflect, _arguments(rvalue=(ANY, None)), Effect.NOTHING),
        Action("TestActionReflectParam", "Returns rvalue.", queries.reflect, _arguments(rvalue=(ANY, None)),
               Effect.NOTHING),
    ),
    "Cameras": (
        Action("AddThirdPartyCamera", "Adds a camera. The sky's color, clipping planes and anti-aliasing are ignored.",
               cameras.add_camera, _arguments(position=VECTOR, rotation=ROTATION, fieldOfView=(FLOAT, 90.0)) + CAMERA),
        Action("UpdateThirdPartyCamera", "Changes a camera; what is not given stays.", cameras.update_camera,
               _arguments(thirdPartyCameraId=(INT, 0), position=(PARTIAL, None), rotation=(ROTATION, None),
                          fieldOfView=(FLOAT, None)) + CAMERA),
        Action("ToggleMapView", "Shows a map in place of what the agents see, or ends that.", cameras.toggle_map_view),
    ),
    "Objects": (
        Action("SetObjectFilter", "Lists only these objects in metadata.", things.set_filter,
               _arguments(objectIds=STRINGS)),
        Action("ResetObjectFilter", "Lists all objects.", things.reset_filter),
        Action("SetObjectPoses", "Puts loose objects where a list of objectName, position and rotation says; loose "
               "objects that are not in it leave the scene.", things.set_object_poses,
               _arguments(objectPoses=RECORDS, placeStationary=(BOOL, True)), Effect.THINGS),
        Action("TeleportObject", "Moves a loose object, which falls from there unless forceKinematic.",
               things.teleport_object, ID + PLACE + FORCE + _arguments(
                   allowTeleportOutOfHand=(BOOL, False), forceKinematic=(BOOL, False), makeUnbreakable=(BOOL, False)),
               Effect.THINGS),
        Action("PlaceObjectAtPoint", "Puts a loose object so that it stands on a point.", things.place_at_point,
               ID + _arguments(position=VECTOR, rotation=(ROTATION, None), forceKinematic=(BOOL, False)),
               Effect.THINGS),
        Action("RemoveFromScene", "Takes objects out of the scene.", things.remove, ONE_OR_MORE, Effect.THINGS),
        Action("DisableObject", "Takes an object out of the scene.", things.remove, ONE_OR_MORE, Effect.THINGS),
        Action("EnableObject", "Brings an object back.", things.enable, ID, Effect.THINGS),
        Action("HideObject", "Leaves an object out of pictures.", things.hide,
               ID + _arguments(hideContained=(BOOL, True))),
        Action("UnhideObject", "Draws an object again.", things.unhide, ID + _arguments(unhideContained=(BOOL, True))),
        Action("HideAllObjects", "Draws nothing.", things.hide_all),
        Action("HideAllObjectsExcept", "Draws only these objects.", things.hide_all_except, ONE_OR_MORE),
        Action("UnhideAllObjects", "Draws everything.", things.unhide_all),
        Action("EmphasizeObject", "Draws one object only, in magenta.", things.emphasize, ID),
        Action("UnemphasizeAll", "Draws everything.", things.unhide_all),
        Action("MaskObject", "Draws an object in magenta.", things.mask, ID),
        Action("UnmaskObject", "Draws an object in its own colors.", things.unmask, ID),
    ),
    "Randomization": (
        Action("SetRandomSeed", "Seeds RandomizeMaterials and RandomizeColors.", setup.set_random_seed,
               _arguments(seed=(INT, 0))),
        Action("InitialRandomSpawn", "Puts loose objects onto surfaces at random, the same for the same randomSeed; "
               "what fits nowhere stays. Nothing is duplicated.", setup.random_spawn, _arguments(
                   randomSeed=(INT, 0), forceVisible=(BOOL, False), placeStationary=(BOOL, True),
                   numDuplicatesOfType=(RECORDS, None), excludedReceptacles=(STRINGS, None),
                   excludedObjectIds=(STRINGS, None), numPlacementAttempts=(INT, 5), allowFloor=(BOOL, False)),
               Effect.THINGS),
        Action("RandomizeMaterials", "Draws things in other materials of our catalog; there are no splits of them.",
               setup.randomize_materials, _arguments(
                   useTrainMaterials=(BOOL, None), useValMaterials=(BOOL, None), useTestMaterials=(BOOL, None),
                   useExternalMaterials=(BOOL, None), inRoomTypes=(STRINGS, None))),
        Action("ResetMaterials", "Draws things in their own materials.", setup.reset_materials),
        Action("RandomizeColors", "As RandomizeMaterials.", setup.randomize_colors),
        Action("ResetColors", "As ResetMaterials.", setup.reset_materials),
        Action("RandomizeLighting", "Accepted; light stays as it is.", setup.ignore_lighting, _arguments(
            brightness=(FLOATS, None), randomizeColor=(BOOL, True), hue=(FLOATS, None), saturation=(FLOATS, None),
            synchronized=(BOOL, False))),
    ),
    "Physics": (
        Action("PausePhysicsAutoSim", "Accepted; everything rests after each action.", setup.ignore_physics, PHYSICS),
        Action("AdvancePhysicsStep", "Accepted; everything rests after each action.", setup.ignore_physics, PHYSICS),
        Action("UnpausePhysicsAutoSim", "Accepted; everything rests after each action.", setup.ignore_physics, PHYSICS),
    ),
}  # fmt: skip
"""All actions, by the sections of their documentation."""

ACTIONS: dict[str, Action] = {action.name: action for section in SECTIONS.values() for action in section}


def find(name: Any) -> Action:
    """An action by name; InvalidRequest if there is none."""
    if not isinstance(name, str) or name not in ACTIONS:
        raise InvalidRequest(f"Invalid action: {name}", "InvalidAction")
    return ACTIONS[name]


def document() -> str:
    """The page of the documentation."""
    lines = [HEADER]
    for title, actions in SECTIONS.items():
        lines += [f"\n## {title}\n", "| Action | Arguments | What it does |", "| --- | --- | --- |"]
        for action in actions:
            words = [
                f"{argument.name}: {argument.kind.name}"
                + ("" if argument.default is REQUIRED or argument.default is None else f" = {argument.default}")
                + (" (required)" if argument.default is REQUIRED else "")
                for argument in action.arguments
            ]
            lines.append(f"| `{action.name}` | {', '.join(words)} | {action.text} |")
    return "\n".join(lines) + "\n"


HEADER = """# AI2-THOR's actions

What a client of AI2-THOR can send to the engine, with the types and defaults of arguments. Where nothing else is said,
an action does what AI2-THOR's does. Objects are named by `objectId`, or by `x` and `y` in the frame, from 0 to 1 from
the top left; they must be visible, unless `forceAction`. Every action also takes `agentId`, and, for its own event,
`renderImage`, `renderDepthImage`, `renderInstanceSegmentation`, `renderSemanticSegmentation` and `renderNormalsImage`.
Unknown actions and arguments, and values of the wrong type, raise ValueError in the client.

This page is printed by `python -m scrubjay.thor.actions`."""


if __name__ == "__main__":
    print(document(), end="")
