"""Reads the files of a MolmoSpaces scene: its MJCF, its metadata, and the meshes and textures that it names.

MuJoCo opens no file itself. Everything is read here, from within the scene's collection, and handed over by content.
Of the MJCF only what a room needs is kept, and what could load further files or run code is refused.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image
from pydantic import TypeAdapter, ValidationError

from scrubjay.errors import RoomError, explain, reason

SECTIONS = {
    "compiler": set(),
    "default": {"default", "geom", "joint", "mesh", "material", "site"},
    "asset": {"texture", "material", "layer", "mesh"},
    "worldbody": {"body", "frame", "geom", "joint", "freejoint", "site", "inertial"},
}
"""What is kept of an MJCF file: sections of a model, and which elements in them."""
REFUSED = ("include", "extension", "plugin", "attach", "model", "composite", "flexcomp", "replicate")
"""Elements that load other files, run code or multiply."""
COMPILER = ("angle", "autolimits", "eulerseq", "boundmass", "boundinertia", "balanceinertia")
"""The compiler's settings that are kept; others name folders, or drop what a room needs."""
MAX_TEXTURE = 512
"""Pixels along a texture's edge; larger ones are shrunk, since views are smaller."""


@dataclass(frozen=True)
class SceneObject:
    """What the metadata says about a root body."""

    category: str = ""
    parent: str = ""
    """The root body that it stands on or lies in; empty if there is none."""


@dataclass(frozen=True)
class SceneFiles:
    """A scene's files: its MJCF with names in place of paths, what they stand for, and its metadata."""

    mjcf: str
    meshes: dict[str, bytes] = field(repr=False)
    """Contents of mesh files, by the names in the MJCF."""
    textures: dict[str, np.ndarray] = field(repr=False)
    """Pixels (height, width, 3) uint8, by the texture's name."""
    objects: dict[str, SceneObject]
    """By root body."""


def read_scene(path: Path) -> SceneFiles:
    """Reads a scene's files. Raises RoomError for files that are missing, broken, or outside its collection."""
    path = Path(os.path.abspath(path))
    root = _parse(path)
    _check_elements(path, root)
    compiler = root.find("compiler")
    settings = {} if compiler is None else dict(compiler.attrib)
    if compiler is not None:
        compiler.attrib = {name: value for name, value in settings.items() if name in COMPILER}
    assets = settings.get("assetdir", "")
    meshes = _take_meshes(path, root, settings.get("meshdir", assets))
    textures = _take_textures(path, root, settings.get("texturedir", assets))
    return SceneFiles(ElementTree.tostring(root, "unicode"), meshes, textures, _read_metadata(path))


def _parse(path: Path) -> ElementTree.Element:
    try:
        text = path.read_bytes()
        if b"<!DOCTYPE" in text or b"<!ENTITY" in text:
            raise RoomError(f"{path}: it declares a document type, which a scene does not need")
        root = ElementTree.fromstring(text)
    except (OSError, ElementTree.ParseError) as error:
        raise RoomError(f"{path}: not an MJCF file: {reason(error)}") from error
    if root.tag != "mujoco":
        raise RoomError(f"{path}: not an MJCF file: it begins with <{root.tag}>, not <mujoco>")
    return root


def _check_elements(path: Path, root: ElementTree.Element) -> None:
    """Removes what is not needed; RoomError for elements that are refused."""
    for element in root.iter():
        if element.tag in REFUSED:
            raise RoomError(f"{path}: it has the element <{element.tag}>, which could load other files or run code")
    for section in list(root):
        if section.tag not in SECTIONS:
            root.remove(section)
            continue
        for holder in list(section.iter()):
            for element in list(holder):
                if element.tag not in SECTIONS[section.tag]:
                    holder.remove(element)


def _take_meshes(path: Path, root: ElementTree.Element, folder: str) -> dict[str, bytes]:
    """Replaces paths of meshes by names; returns the files' contents by these."""
    contents: dict[Path, tuple[str, bytes]] = {}
    for mesh in root.findall("asset/mesh"):
        if (file := mesh.get("file")) is None:
            continue  # Its vertices are in the MJCF.
        mesh.set("name", mesh.get("name", Path(file).stem))
        mesh.set("inertia", "shell")  # Flat surfaces have no volume.
        mesh.attrib.pop("content_type", None)
        found = _locate(path, folder, file)
        if found not in contents:
            contents[found] = (f"mesh{len(contents)}{found.suffix.lower()}", _read(path, found))
        mesh.set("file", contents[found][0])
    return dict(contents.values())


def _take_textures(path: Path, root: ElementTree.Element, folder: str) -> dict[str, np.ndarray]:
    """Replaces pictures of textures by single pixels; returns the pictures by the textures' names."""
    pixels: dict[str, np.ndarray] = {}
    contents: dict[Path, np.ndarray] = {}
    for asset in root.findall("asset"):
        for texture in asset.findall("texture"):
            file, flat = texture.get("file"), texture.get("type") == "2d"
            name = texture.get("name", Path(file or "").stem)
            if flat and file is not None:
                found = _locate(path, folder, file)
                if found not in contents:
                    contents[found] = _read_picture(path, found)
                pixels[name] = contents[found]
                texture.attrib = {"name": name, "type": "2d", "builtin": "flat", "width": "1", "height": "1"}
            else:
                asset.remove(texture)
        for material in asset.findall("material"):
            for layer in material.findall("layer"):
                if layer.get("role") == "rgb":
                    material.set("texture", layer.get("texture", ""))
                material.remove(layer)
            if material.get("texture") not in pixels:
                material.attrib.pop("texture", None)
    return pixels


def _locate(path: Path, folder: str, file: str) -> Path:
    """The path of a file that a scene names; RoomError if it is outside the scene's collection, or missing.

    A collection is the folder that `scenes/DATASET/SCENE.xml` are in, since scenes share objects and textures, or else
    the scene's own folder.
    """
    collection = path.parents[2] if path.parent.parent.name == "scenes" else path.parent
    if any(Path(part).is_absolute() or ":" in part or "\\" in part or "\0" in part for part in (folder, file)):
        raise RoomError(f"{path}: it names a file by an absolute path, {file!r}; allowed are those in {collection}")
    found = Path(os.path.normpath(path.parent / folder / file))
    if not found.is_relative_to(collection):
        raise RoomError(f"{path}: it names {file!r}, which is outside {collection}")
    if not found.is_file():
        raise RoomError(f"{path}: the file {found} is missing; fetch the scene with all its objects")
    return found


def _read(path: Path, found: Path) -> bytes:
    try:
        return found.read_bytes()
    except OSError as error:
        raise RoomError(f"{path}: it cannot read {found}: {reason(error)}") from error


def _read_picture(path: Path, found: Path) -> np.ndarray:
    try:
        with Image.open(found) as picture:
            small = picture.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise RoomError(f"{path}: the texture {found} cannot be read: {reason(error)}") from error
    small.thumbnail((MAX_TEXTURE, MAX_TEXTURE), Image.Resampling.BOX)
    return np.asarray(small)


def _read_metadata(path: Path) -> dict[str, SceneObject]:
    beside = path.with_name(f"{path.stem}_metadata.json")
    try:
        data = json.loads(beside.read_text())
    except (OSError, ValueError) as error:
        raise RoomError(f"{beside}: no metadata of the scene: {reason(error)}") from error
    if not isinstance(data, dict) or "objects" not in data:
        raise RoomError(f"{beside}: no metadata of the scene: it has no `objects`")
    try:
        return _schema().validate_python(data["objects"])
    except ValidationError as error:
        raise RoomError(f"{beside}: broken metadata: {explain(error)}") from error


@cache
def _schema() -> TypeAdapter[dict[str, SceneObject]]:
    return TypeAdapter(dict[str, SceneObject])
