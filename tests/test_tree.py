"""Trees of arrays: what is a leaf, the same structure comes back, and other structures are refused."""

import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from scrubjay import tree

Pair = namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Node:
    """A dataclass with anything inside."""

    left: object
    right: object


LEAVES = st.integers(0, 99).map(lambda number: torch.tensor([number, number + 1]))
STATIC = st.none() | st.integers() | st.frozensets(st.integers(0, 3)) | st.text(max_size=3)
TREES = st.recursive(
    LEAVES | STATIC,
    lambda inner: (
        st.builds(Node, inner, inner)
        | st.builds(Pair, inner, inner)
        | st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(one: object, other: object) -> bool:
    """Equal all the way down, types included; a reference apart from the module's own walk."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, Node):
        return same(one.left, other.left) and same(one.right, other.right)
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(same(*pair) for pair in zip(one, other, strict=True))
    return one == other


@given(TREES)
def test_the_identity_gives_the_same_tree(values):
    assert same(tree.map(lambda leaf: leaf, values), values)


@given(TREES)
def test_mapping_twice_is_mapping_the_composition(values):
    twice = tree.map(lambda leaf: leaf * 2, tree.map(lambda leaf: leaf + 1, values))
    assert same(twice, tree.map(lambda leaf: (leaf + 1) * 2, values))


@given(TREES)
def test_leaves_come_in_the_order_of_mapping_and_paths_lead_to_them(values):
    visited: list[torch.Tensor] = []
    tree.map(lambda leaf: visited.append(leaf), values)
    leaves, paths = tree.leaves(values), tree.leaves_with_path(values)
    assert len(leaves) == len(visited) == len(paths)
    assert all(one is other is leaf for one, other, (_, leaf) in zip(leaves, visited, paths, strict=True))


@given(TREES)
def test_several_trees_are_mapped_leaf_by_leaf(values):
    tripled = tree.map(lambda *parts: sum(parts), values, values, values)
    assert same(tripled, tree.map(lambda leaf: leaf * 3, values))


@given(TREES)
def test_rows_of_stacked_and_concatenated_trees_are_the_trees(values):
    later = tree.map(lambda leaf: leaf + 100, values)
    assert same(tree.index(tree.stack([values, later]), 1), later)
    assert same(tree.index(tree.cat([values, later]), slice(2)), values)
    assert same(tree.index(tree.stack([values, later], dim=1), (slice(None), 0)), values)


@given(TREES)
def test_copies_are_made_in_place(values):
    into = tree.map(torch.zeros_like, values)
    before = tree.leaves(into)
    tree.copy_(into, values)
    assert same(into, values) and all(a is b for a, b in zip(before, tree.leaves(into), strict=True))
    tree.index_put_(into, 0, tree.map(lambda leaf: leaf[1], values))
    assert all(leaf[0] == leaf[1] for leaf in tree.leaves(into))


def test_paths_name_fields_keys_and_numbers():
    leaf = torch.zeros(1)
    values = Node({"a": leaf, "b": None}, (Pair(leaf, 3), [leaf]))
    assert [path for path, _ in tree.leaves_with_path(values)] == ["left.a", "right.0.0", "right.1.0"]
    assert tree.leaves_with_path(leaf) == [("", leaf)]


def test_numpy_arrays_are_leaves_too():
    values = Node(np.arange(4), None)
    assert tree.index(values, slice(2)).left.tolist() == [0, 1]
    tree.index_put_(values, [0, 3], Node(np.array([7, 8]), None))
    assert values.left.tolist() == [7, 1, 2, 8]


LEAF = torch.zeros(2)


@pytest.mark.parametrize(
    "other", [(LEAF, None), (LEAF,), [LEAF, LEAF], Pair(LEAF, LEAF), {"a": LEAF}, LEAF, None, (LEAF, (LEAF,))]
)
def test_trees_of_another_structure_are_refused(other):
    with pytest.raises(ValueError, match="trees differ"):
        tree.map(torch.add, (LEAF, LEAF), other)


@pytest.mark.parametrize("other", [{"b": LEAF}, {"a": LEAF, "b": LEAF}, {}])
def test_other_keys_are_refused(other):
    with pytest.raises(ValueError, match="trees differ"):
        tree.map(torch.add, {"a": LEAF}, other)


def test_mapping_compiles_as_one_graph():
    def double(values: Node) -> Node:
        return tree.map(lambda leaf: leaf * 2, tree.cat([values, tree.index(values, slice(1))]))

    values = Node({"a": torch.arange(3)}, (torch.arange(2), None))
    torch._dynamo.reset()
    assert same(torch.compile(double, backend="eager", fullgraph=True)(values), double(values))


def test_physics_processes_import_it_without_torch():
    code = "import sys, scrubjay.tree, scrubjay.sim.physics_pool; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
