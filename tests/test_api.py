"""The package's public names: they load lazily, and do what the README says."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import scrubjay
from scrubjay.agent.config import PRESETS as AGENTS
from scrubjay.envs import registration
from scrubjay.envs.tasks import TASKS
from scrubjay.errors import RecordError

SMALL = {"size": 112, "limits": (3, 1, 2, 4, 5)}


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_the_package_loads_no_engine():
    """Nor anything else that takes long; `scrubjay bench ratios` compares the times."""
    heavy = {"torch", "mujoco", "gymnasium", "numpy", "warp", "pydantic", "scipy", "PIL", "tyro"}
    assert run(f"import sys, scrubjay; print(*{heavy} & set(sys.modules))") == ""


@pytest.mark.parametrize("imports", ["import gymnasium, scrubjay", "import scrubjay, gymnasium"])
def test_environments_are_registered_in_either_order_of_imports(imports):
    names = run(f"{imports}; print(*(name for name in gymnasium.registry if name.startswith('scrubjay/')))").split()
    assert names == [f"scrubjay/{task}-v0" for task in ("Explore", "Hide", "Manipulate", "Seek")]


def test_registered_tasks_are_tasks_that_environments_know():
    assert set(registration.TASKS) <= {task.__name__ for task in TASKS.values()}


def test_gymnasium_makes_an_environment_by_the_modules_name_alone():
    code = "print(*gymnasium.make('scrubjay:scrubjay/Explore-v0', scene='foyer-1', size=56).reset(seed=0)[0])"
    assert "image" in run(f"import gymnasium; {code}").split()


@pytest.mark.parametrize("name", scrubjay.__all__)
def test_every_public_name_loads_and_is_listed(name):
    assert getattr(scrubjay, name) is not None
    assert name in dir(scrubjay)


def test_type_checkers_see_the_names_that_load_lazily():
    tree = ast.parse(Path(scrubjay.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == scrubjay._MODULE_OF
    assert {*seen, "__version__"} == set(scrubjay.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Worlds'"):
        scrubjay.Worlds  # noqa: B018


def test_the_package_is_typed():
    assert Path(scrubjay.__file__).with_name("py.typed").exists()


def test_a_game_between_named_players_replays_to_the_same_hash():
    record = scrubjay.play("possible", "random", "FloorPlan401", "Cup", seed=3, **SMALL)
    assert record.players == {"hider": "possible", "seeker": "random"}
    assert len(list(scrubjay.replay(record))) == len(record.actions)
    record.hash = "another"
    with pytest.raises(RecordError):
        list(scrubjay.replay(record))


def test_a_custom_player_and_an_agent_play():
    class Still:
        def __call__(self, game, games):
            return np.full(len(game), -1), np.zeros((len(game), 4), int)

    agent = scrubjay.Agent(AGENTS["small"])
    record = scrubjay.play(agent, Still(), "FloorPlan401", "Cup", **SMALL)
    assert record.players == {"hider": "Agent", "seeker": "Still"}
    assert not record.found


def test_unknown_players_tasks_and_presets_name_the_choices(tmp_path):
    with pytest.raises(ValueError, match="unknown hider 'nobody'; choose from random, possible, heuristic"):
        scrubjay.play("nobody")
    with pytest.raises(ValueError, match="unknown player 'frontier'; choose from random, possible, scripted"):
        scrubjay.evaluate("frontier", "manipulate")
    with pytest.raises(ValueError, match="unknown task 'dance'; choose from explore"):
        scrubjay.evaluate("random", "dance")
    with pytest.raises(ValueError, match="unknown preset 'huge'; choose from demo"):
        scrubjay.train("huge", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_agent_is_trained_resumed_loaded_and_measured(tmp_path):
    rows = []
    tiny = {
        "scenes": ("FloorPlan401",),
        "copies": 2,
        "unroll_length": 4,
        "checkpoint_interval": 1,
        "minibatch_games": 2,
        "replay_batches": 0,
    }
    agent = scrubjay.train("demo", tmp_path / "run", updates=2, stop=lambda: len(rows) > 0, report=rows.append, **tiny)
    assert [row["update"] for row in rows] == [1]
    with pytest.raises(scrubjay.ScrubjayError):
        scrubjay.train("demo", tmp_path / "run")
    scrubjay.train(out=tmp_path / "run", resume=True, report=rows.append)
    assert [row["update"] for row in rows] == [1, 2]
    scores = scrubjay.evaluate(tmp_path / "run", "explore", scenes=["FloorPlan401"])
    assert 0 <= scores["coverage"].mean <= 1
    scrubjay.save_agent(agent, tmp_path / "weights")
    assert scrubjay.load_agent(tmp_path / "weights").config == agent.config
