"""Every example runs as a plain script, without a main guard, in an empty folder."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import scrubjay

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEEDS = {"train_stable_baselines3": "stable_baselines3"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_short_and_runs(path, tmp_path):
    if not importlib.util.find_spec(NEEDS.get(path.stem, "scrubjay")):
        pytest.skip(f"{NEEDS[path.stem]} is not installed")
    assert len(path.read_text().splitlines()) <= 60
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(scrubjay.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:__main__", path], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_there_are_the_examples_that_the_readme_of_the_folder_lists():
    listed = (ROOT / "examples" / "README.md").read_text()
    assert all(f"`{path.name}`" in listed for path in EXAMPLES)
