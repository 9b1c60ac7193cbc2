"""The commands of README and docs: all of them parse, and the README's run one after another."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from helpers import run_command

from scrubjay.cli.main import parse

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
]
FOLLOWED = ("add_a_task.md", "add_a_loss.md")
"""Guides whose commands need what the guide adds; other tests follow them."""
PLACEHOLDERS = ("COMMAND", "PRESET", "...")
SMALL = {
    "play": "--scene FloorPlan501 --no-video",
    "spots": "--goal Bread --candidates 30 --workers 1",
    "tournament": "--games 1 --size 56 --hiders random easy --seekers oracle",
    "train": "--scenes FloorPlan401 --updates 1 --copies 2 --minibatch-games 2 --validation-scenes FloorPlan421",
    "evaluate": "--games 1",
    "watch": "--scene FloorPlan501",
}
"""What makes the README's commands small, by command."""


def fenced(page: Path) -> list[str]:
    """The commands of a page's blocks, without comments."""
    blocks = re.findall(r"^ *```([^\n]*)\n(.*?)^ *```$", page.read_text(), re.S | re.M)
    shells = [body.replace("\\\n", " ") for language, body in blocks if language in ("", "bash")]
    lines = [line.strip() for shell in shells for line in shell.splitlines()]
    return [line for line in lines if re.match(r"(\w+=\S+ )*scrubjay ", line)]


def quoted(page: Path) -> list[str]:
    """The commands that a page's prose and tables quote; some are names of commands alone."""
    found = re.findall(r"`(scrubjay [^`\n]+)`", page.read_text())
    return [command for command in found if not any(word in command for word in PLACEHOLDERS)]


def words_of(command: str) -> list[str]:
    words = shlex.split(command, comments=True)
    return words[words.index("scrubjay") + 1 :]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_parse(page, capsys):
    if page.name in FOLLOWED:
        return
    wrong = []
    for command in [*fenced(page), *quoted(page)]:
        words = words_of(command)
        # A name alone, such as `scrubjay study static`, may lack what the command requires.
        named_only = not any(word.startswith("-") for word in words)
        try:
            parse([*words, "--help"] if named_only and command not in fenced(page) else words)
        except SystemExit as end:
            if end.code:
                wrong.append(f"{command}\n{capsys.readouterr().err}")
        except ValueError as error:
            wrong.append(f"{command}\n{error}")
    assert not wrong, "\n".join(wrong)


def test_the_makefiles_commands_parse(capsys):
    """`make demo` runs them one after another."""
    text = (ROOT / "Makefile").read_text()
    variables = dict(re.findall(r"^(\w+) :?= (.*)$", text, re.M))
    commands = re.findall(r"^\t@?\$\(BIN\)/(scrubjay [^>\n]+)", text, re.M)
    assert len(commands) >= 6
    for command in commands:
        parse(words_of(re.sub(r"\$\((\w+)\)", lambda name: variables[name[1]], command)))


def test_there_are_commands_to_parse():
    assert len(fenced(ROOT / "README.md")) >= 8 and sum(len(fenced(page)) for page in PAGES) >= 40
    assert sum(len(quoted(page)) for page in PAGES) >= 40


def test_the_readmes_commands_run_one_after_another(tmp_path, monkeypatch, capsys):
    """With small settings, in an empty folder, in the page's order."""
    monkeypatch.chdir(tmp_path)
    commands = [words_of(command) for command in fenced(ROOT / "README.md")]
    ran = []
    for words in commands:
        if words[0] in ("serve", "study"):  # A server does not end; a study takes minutes.
            continue
        code, _, errors = run_command(monkeypatch, capsys, *words, *shlex.split(SMALL.get(words[0], "")))
        assert code == 0, f"scrubjay {shlex.join(words)}: {errors}"
        ran.append(words[0])
    assert ran == ["play", "replay", "spots", "tournament", "train", "evaluate", "watch"]


@pytest.mark.slow
def test_the_commands_of_the_home_page_run_one_after_another(tmp_path, monkeypatch, capsys):
    """Those of its table that need no paper-sized run, study or server."""
    monkeypatch.chdir(tmp_path)
    small = SMALL | {
        "rooms": "FloorPlan501 FloorPlan502",
        "games": "--hider heuristic --seeker oracle",
        "placements": "--count 3 --workers 1",
        "train": SMALL["train"] + " --device cpu",
    }
    table = re.findall(r"^\| `(scrubjay [^`]+)`", (ROOT / "docs" / "index.md").read_text(), re.M)
    ran = set()
    for command in table:
        words = words_of(command)
        if words[0] in ("serve", "dry-run", "plan", "bench", "leaderboard", "study"):
            continue
        code, _, errors = run_command(monkeypatch, capsys, *words, *shlex.split(small.get(words[0], "")))
        assert code == 0, f"{command}: {errors}"
        ran.add(words[0])
    assert ran >= {"rooms", "room", "play", "replay", "games", "story", "spots", "tournament", "train", "evaluate"}


@pytest.mark.slow
def test_the_readmes_study_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (study,) = [words for command in fenced(ROOT / "README.md") if (words := words_of(command))[0] == "study"]
    assert run_command(monkeypatch, capsys, "train", "demo", "--out", "out/run", *SMALL["train"].split())[0] == 0
    code, printed, errors = run_command(monkeypatch, capsys, *study)
    assert code == 0, errors
    assert Path(printed.splitlines()[-1]).exists()
