"""Mutation testing: makes small faults in modules, one at a time, and runs the tests that should notice.

Writes the share of noticed faults and a list of the others to results/mutants.md. Each fault runs in a fork of a
process that has imported the libraries but not the package, whose mutated module an import hook substitutes: no file is
changed.

    python scripts/mutants.py                       # in random order, for half an hour
    python scripts/mutants.py --minutes 600 rewards  # all faults in one module
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import io
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
MODULES = {
    "rewards": (
        "scrubjay.game.rewards",
        ("tests/game/test_rewards.py", "tests/game/test_step_rewards.py", "tests/training/test_hiding_reward.py"),
    ),
    "losses": ("scrubjay.training.losses", ("tests/training/test_losses.py",)),
    "perspective_losses": ("scrubjay.training.perspective_losses", ("tests/training/test_losses.py",)),
    "placement": ("scrubjay.game.placement", ("tests/game/test_placement.py",)),
    "cells": ("scrubjay.sim.cells", ("tests/sim/test_cells.py",)),
    "record": ("scrubjay.game.record", ("tests/game/test_record.py", "-k", "not bit_exactly and not changed_record")),
    "physics": ("scrubjay.sim.physics", ("tests/sim/test_physics.py",)),
}
"""Each module with the tests that should notice its faults, fast ones: a survivor runs them all."""
SECONDS = 120
"""A fault that makes tests run longer than this is noticed."""
OPERATORS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum"}


class Mutant(NamedTuple):
    """One fault."""

    module: str
    line: int
    what: str
    tree: ast.Module


def mutations(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The faults that one node can have: what changes, and the changed node."""
    changed = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        changed.ops[0] = OPERATORS[type(node.ops[0])]()
        yield "compares differently", changed
    elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in OPERATORS:
        changed.op = OPERATORS[type(node.op)]()
        yield "computes differently", changed
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        yield "is not negated", node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "is the opposite", ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield (
            "is another number",
            ast.Constant(node.value + 1 if isinstance(node.value, int) else node.value * 1.5 + 0.1),
        )
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        changed.attr = NAMES[node.attr]
        yield "is the opposite", changed
    elif isinstance(node, ast.IfExp):
        changed.body, changed.orelse = changed.orelse, changed.body
        yield "chooses the other", changed


def mutants(module: str) -> list[Mutant]:
    """All faults of a module. Annotations, docstrings and messages of errors are left as they are."""
    spec = importlib.util.find_spec("scrubjay")
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
    tree, found = ast.parse(path.read_text()), []
    skipped = {id(inside) for node in ast.walk(tree) for part in _untested(node) for inside in ast.walk(part)}
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for index, node in enumerate(value if isinstance(value, list) else [value]):
                if not isinstance(node, ast.AST) or id(node) in skipped:
                    continue
                for what, changed in mutations(node):
                    text = f"`{ast.unparse(node)}` {what}: `{ast.unparse(changed)}`"
                    _set(parent, field, value, index, ast.copy_location(changed, node))
                    found.append(Mutant(module, node.lineno, text, ast.fix_missing_locations(copy.deepcopy(tree))))
                    _set(parent, field, value, index, node)
    return sorted(found, key=lambda mutant: mutant.line)


def _set(parent: ast.AST, field: str, value: object, index: int, node: ast.AST) -> None:
    if isinstance(value, list):
        value[index] = node
    else:
        setattr(parent, field, node)


def _untested(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
        yield node.annotation
    if isinstance(node, ast.FunctionDef) and node.returns:
        yield node.returns
    if isinstance(node, ast.Raise | ast.Assert):
        yield node


class MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a module from its mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(self, name, path=None, target=None):  # type: ignore[no-untyped-def]
        return importlib.util.spec_from_loader(name, self) if name == self.mutant.module else None

    def exec_module(self, module) -> None:  # type: ignore[no-untyped-def]
        exec(compile(self.mutant.tree, f"<mutant of {self.mutant.module}>", "exec"), module.__dict__)


def run_tests(arguments: tuple[str, ...], mutant: Mutant | None = None) -> bool:
    """Whether the tests pass with a fault, in a fork."""
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        code = 1
        try:
            import pytest

            if mutant:
                sys.meta_path.insert(0, MutantFinder(mutant))
            with open(os.devnull, "w") as null, redirect_stdout(null), redirect_stderr(io.StringIO()):
                code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow", *arguments])
        finally:
            os._exit(int(code))
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def import_libraries() -> None:
    """Imports what takes long, but nothing of the package, and starts no threads."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # They take longer than the tests.
    sys.path.insert(0, str(ROOT / "src"))
    for name in (
        "numpy",
        "scipy.ndimage",
        "torch",
        "mujoco",
        "pydantic",
        "hypothesis",
        "pytest",
        "tyro",
        "safetensors",
    ):
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)
    assert not any(name.startswith("scrubjay") for name in sys.modules)


def write_report(path: Path, sample: list[Mutant], total: Counter[str], survivors: list[Mutant], seed: int) -> None:
    """A table by module, and the faults that no test noticed."""
    tried, survived = Counter(mutant.module for mutant in sample), Counter(mutant.module for mutant in survivors)
    lines = [
        "# Mutants",
        "",
        "`make mutants` makes small faults in modules, one at a time (`scripts/mutants.py`: comparisons, operators,",
        "signs, numbers, min and max), and runs the tests of that module, without the slow ones. A fault that no test",
        f"notices survives. Tried: a random sample of {len(sample)} of {sum(total.values())} faults, seed {seed}.",
        "",
        "| Module | Faults | Tried | Noticed |",
        "| --- | --- | --- | --- |",
    ]
    for module in sorted(tried):
        share = 100 * (1 - survived[module] / tried[module])
        lines.append(f"| `{module}` | {total[module]} | {tried[module]} | {share:.0f} % |")
    share = 100 * (1 - len(survivors) / len(sample))
    lines += [f"| all | {sum(total.values())} | {len(sample)} | {share:.0f} % |", "", "Survivors:", ""]
    lines += [
        f"- `{m.module.split('.')[-1]}`, line {m.line}: {' '.join(m.what.split())}"
        for m in sorted(survivors, key=lambda m: m[:3])
    ]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []], help="by default all")
    parser.add_argument("--minutes", type=float, default=30.0, help="no further fault is tried after that")
    parser.add_argument("--seed", type=int, default=0, help="of the order")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "mutants.md")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    import_libraries()
    chosen = [MODULES[name] for name in arguments.modules or MODULES]
    for module, tests in chosen:
        if not run_tests(tests):
            sys.exit(f"the tests of {module} fail without any fault: {' '.join(tests)}")
    every = [mutant for module, _ in chosen for mutant in mutants(module)]
    total, tests_of, started = Counter(mutant.module for mutant in every), dict(chosen), time.monotonic()
    random.Random(arguments.seed).shuffle(every)
    tried: list[Mutant] = []
    survivors: list[Mutant] = []
    for mutant in every:
        if (seconds := time.monotonic() - started) > 60 * arguments.minutes:
            break
        tried.append(mutant)
        if run_tests(tests_of[mutant.module], mutant):
            survivors.append(mutant)
            print(f"survived: {mutant.module}, line {mutant.line}: {mutant.what}", flush=True)
        if len(tried) % 20 == 0:
            print(f"{len(tried)} of {len(every)}, {seconds:.0f} s", flush=True)
    write_report(arguments.out, tried, total, survivors, arguments.seed)
    print(f"{len(tried) - len(survivors)} of {len(tried)} faults were noticed: {arguments.out}")


if __name__ == "__main__":
    main()
