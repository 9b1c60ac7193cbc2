"""Follows a guide of `docs/guides` in a copy of the package, so that tests see whether it is true.

A block ```` ```python title="src/scrubjay/x.py" ```` is a new file. A block ```` ```diff title="src/scrubjay/x.py" ````
changes one: its lines without a sign are found there, in this order, and its lines with + are added.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def follow(guide: str, copy: Path) -> list[str]:
    """Copies the package to `copy` and applies the guide's blocks; the paths of files it touches, each once."""
    shutil.copytree(
        ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "*.safetensors")
    )
    touched = []
    for kind, name, body in BLOCK.findall((ROOT / "docs" / "guides" / guide).read_text()):
        path = copy / name
        if kind == "diff":
            lines = body.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line[0] in " -")
            new = "".join(line[1:] for line in lines if line[0] in " +")
            text = path.read_text()
            assert text.count(old) == 1, f"{guide}: {name} has the context of its change {text.count(old)} times"
            path.write_text(text.replace(old, new))
        else:
            assert not path.exists(), f"{guide}: {name} exists already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body)
        touched.append(name)
    assert touched, f"{guide} has no blocks with titles"
    return list(dict.fromkeys(touched))


def run_in(copy: Path, *words: str) -> str:
    """Runs Python with the copied package and returns its output."""
    paths = os.pathsep.join([str(copy / "src"), str(copy)])
    done = subprocess.run(
        [sys.executable, *words], cwd=copy, capture_output=True, text=True, timeout=300,
        env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
