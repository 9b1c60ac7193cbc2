"""The documentation tells the truth: its links lead somewhere, its paths exist, its commands and its tutorial run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import scrubjay

ROOT = Path(__file__).parents[1]
PACKAGE = Path(scrubjay.__file__).parent
PAGES = sorted(path for kind in ("*.md", "docs/**/*.md", "results/*.md", "examples/*.md") for path in ROOT.glob(kind))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(PACKAGE.parent)}
ORDER = ["rooms", "sim", "game", "agent", "players", "spots", "envs", "evaluation", "training", "api.py"]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def python_blocks(page: str) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S))


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(arguments, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_pictures_lead_to_files(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    generated = {ROOT / "docs" / "commands.md"}
    missing = [
        link for link in links
        if "://" not in link and not (page.parent / link).exists() and (page.parent / link) not in generated
    ]  # fmt: skip
    assert not missing


@pytest.mark.parametrize("page", [page for page in PAGES if "results" not in page.parts], ids=name_of)
def test_modules_that_are_named_exist(page):
    """A path in code quotes with a folder of the package is one of its files; CHANGELOG names what is gone."""
    if page.name == "CHANGELOG.md":
        return
    folders = "|".join(path.name for path in PACKAGE.iterdir() if path.is_dir())
    named = set(re.findall(rf"`((?:{folders})/[\w/]+\.(?:py|cu|json))`", page.read_text()))
    named |= {
        path.removeprefix("src/scrubjay/") for path in re.findall(r"`(src/scrubjay/[\w/]+\.\w+)`", page.read_text())
    }
    assert not [path for path in sorted(named) if not (PACKAGE / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_imports_in_the_pages_code_exist(page):
    for module, names in re.findall(r"^from (scrubjay[\w.]*) import ([\w, ]+)", python_blocks(name_of(page)), re.M):
        loaded = __import__(module, fromlist=["_"])
        assert not [name for name in names.split(", ") if not hasattr(loaded, name.strip())]


def test_the_tutorial_runs(tmp_path):
    printed = run([sys.executable, "-c", python_blocks("docs/tutorial.md")], tmp_path)
    assert "coverage" in printed.splitlines()[-1]
    assert (tmp_path / "out" / "tutorial" / "checkpoints").is_dir()


def test_no_hop_of_the_tutorial_goes_back():
    hops = re.findall(r"^\*\*`([\w./]+)`: `([\w.]+)`\.\*\*", (ROOT / "docs/tutorial.md").read_text(), re.M)
    assert len(hops) == 8
    folders = [ORDER.index(path.split("/")[0]) for path, _ in hops]
    assert folders == sorted(folders)
    for path, function in hops:
        source = PACKAGE / path / "__init__.py" if (PACKAGE / path).is_dir() else PACKAGE / path
        assert f"def {function.split('.')[-1]}(" in source.read_text()


@pytest.mark.parametrize(
    "command", ["scrubjay --help", "scrubjay rooms --json FloorPlan1", "scrubjay train --help", "scrubjay bench --help"]
)
def test_cheap_commands_run(command, tmp_path):
    assert run([sys.executable, "-m", *command.split()], tmp_path)


def test_every_command_of_the_home_page_exists():
    known = run([sys.executable, "-m", "scrubjay", "--help"], ROOT)
    used = set(re.findall(r"`?scrubjay ([a-z]+)\b", (ROOT / "docs/index.md").read_text()))
    assert not [name for name in used if not re.search(rf"\b{name}\b", known)]


def test_every_page_is_in_the_sites_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "guides"]
    assert not [str(path) for path in pages if str(path) not in navigation]


def test_the_site_builds_without_warnings(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings_handlers.python")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    run([*command, "--config-file", str(ROOT / "mkdocs.yml")], ROOT)
    assert (tmp_path / "site" / "commands.html").exists()
    home = (tmp_path / "site" / "index.html").read_text()
    assert not re.search(r'(?:src|href)="https?://[^"]*\.(?:js|css|woff2?)"', home), (
        "the site must not need the network"
    )
