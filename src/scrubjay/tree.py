"""Functions over trees of arrays, in the manner of `jax.tree`: dataclasses, tuples, lists and dicts, nested at will.

Leaves are tensors and NumPy arrays: whatever has a shape. Everything else (None, numbers, sets) belongs to the
structure: `map` keeps the first tree's, `leaves` skips it. Why not `torch.utils._pytree`: it is private, and every
dataclass must be registered. torch is imported on use only, because physics processes do without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def map(fn: Callable[..., Any], tree: T, *rest: T) -> T:
    """A tree of `fn(leaf, *leaves at the same path in rest)`; ValueError if the structures differ."""
    return _map_one(fn, tree) if not rest else _map_many(fn, (tree, *rest))


def leaves(tree: Any) -> list[Any]:
    """All leaves, in the order of fields and items."""
    if hasattr(type(tree), "shape"):
        return [tree]
    return [leaf for name in _names(tree) for leaf in leaves(_child(tree, name))]


def leaves_with_path(tree: Any, path: str = "") -> list[tuple[str, Any]]:
    """All leaves with their paths, such as `observation.image` or `skips.0`."""
    if hasattr(type(tree), "shape"):
        return [(path, tree)]
    prefix = f"{path}." if path else ""
    return [leaf for name in _names(tree) for leaf in leaves_with_path(_child(tree, name), f"{prefix}{name}")]


def index(tree: T, key: Any) -> T:
    """`leaf[key]` of every leaf."""
    return map(lambda leaf: leaf[key], tree)


def index_put_(into: T, key: Any, values: T) -> None:
    """`leaf[key] = value` for every leaf of `into`, in place."""
    for leaf, value in zip(leaves(into), leaves(values), strict=True):
        leaf[key] = value


def copy_(into: T, values: T) -> None:
    """Copies all tensors in place, without waiting for the device."""
    for leaf, value in zip(leaves(into), leaves(values), strict=True):
        leaf.copy_(value, non_blocking=True)


def cat(trees: Sequence[T], dim: int = 0) -> T:
    """Trees of tensors concatenated leaf by leaf."""
    import torch

    return map(lambda *parts: torch.cat(parts, dim), *trees)


def stack(trees: Sequence[T], dim: int = 0) -> T:
    """Trees of tensors stacked leaf by leaf."""
    import torch

    return map(lambda *parts: torch.stack(parts, dim), *trees)


def _map_one(fn: Callable[..., Any], tree: Any) -> Any:
    # Asked of the class, which caches it: a tensor makes a new shape each time.
    kind = type(tree)
    if hasattr(kind, "shape"):
        return fn(tree)
    if hasattr(kind, "__dataclass_fields__"):
        return kind(*[_map_one(fn, getattr(tree, name)) for name in kind.__dataclass_fields__])
    names = _names(tree)
    return _rebuild(tree, [_map_one(fn, _child(tree, name)) for name in names]) if names else tree


def _map_many(fn: Callable[..., Any], trees: tuple[Any, ...]) -> Any:
    first, *rest = trees
    if hasattr(type(first), "shape"):
        if not all(hasattr(type(other), "shape") for other in rest):
            raise ValueError(f"trees differ: a leaf is not one in all of {_kinds(trees)}")
        return fn(*trees)
    names = list(_names(first))
    if any(type(other) is not type(first) or list(_names(other)) != names for other in rest):
        raise ValueError(f"trees differ: {_kinds(trees)}")
    children = [_map_many(fn, tuple(_child(tree, name) for tree in trees)) for name in names]
    return _rebuild(first, children) if names else first


def _names(tree: Any) -> Iterable[Any]:
    """The names, keys or numbers of a node's children; none for a leaf."""
    kind = type(tree)
    if hasattr(kind, "__dataclass_fields__"):
        # The class's own dict of fields: `dataclasses.fields` builds a new tuple at each call.
        return kind.__dataclass_fields__
    if isinstance(tree, dict):
        return tree
    return range(len(tree)) if isinstance(tree, tuple | list) else ()


def _child(tree: Any, name: Any) -> Any:
    return tree[name] if isinstance(tree, dict | tuple | list) else getattr(tree, name)


def _rebuild(tree: Any, children: list[Any]) -> Any:
    if isinstance(tree, dict):
        return dict(zip(tree, children, strict=True))
    # Dataclasses and named tuples take their fields one by one.
    return type(tree)(children) if type(tree) in (tuple, list) else type(tree)(*children)


def _kinds(trees: Iterable[Any]) -> str:
    return ", ".join(type(tree).__name__ for tree in trees)
