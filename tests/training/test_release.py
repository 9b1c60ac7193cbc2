"""Released agents: whole, loaded by name everywhere, and refused by name where a byte differs from the card."""

import hashlib
import json
import re
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from released_helpers import TEXT, release_small

import scrubjay
from scrubjay.agent import released, weights
from scrubjay.agent.agent import Agent, load_agent, save_agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.encoder import Encoder
from scrubjay.agent.encoders import make_encoder
from scrubjay.agent.released import DEFAULT, load_card, names
from scrubjay.bench.agent import random_observations
from scrubjay.errors import EncoderError, WeightsError
from scrubjay.evaluation.matches import Match, play_matches
from scrubjay.evaluation.plan_file import AgentSource, load_plan, plan_path
from scrubjay.game.episode import RandomEpisodes
from scrubjay.players.base import HiderAndSeeker
from scrubjay.sim.world import World
from scrubjay.study.encoders import load_encoder
from scrubjay.study.sources import load_agent_named
from scrubjay.training.agent_player import AgentPlayer, load_player
from scrubjay.training.config import TrainConfig
from scrubjay.training.named_agents import load_agents, name_folders, plan_folders
from scrubjay.training.release import load_card_text, write_release
from scrubjay.training.run import Progress, Run, newest

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "release_an_agent.md"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder of released agents with one of them; tests that change it copy it."""
    folder = tmp_path_factory.mktemp("home") / "released"
    release_small(folder)
    return folder


@pytest.fixture
def here(home, tmp_path, monkeypatch):
    """A copy of it that names are looked up in, and an empty working folder."""
    shutil.copytree(home, tmp_path / "released")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv(released.VARIABLE, str(tmp_path / "released"))
    return tmp_path / "released"


def files_of(release: Path) -> dict[str, bytes]:
    return {path.relative_to(release).as_posix(): path.read_bytes() for path in release.rglob("*") if path.is_file()}


def tampered(here: Path, part: str = "agent", kind: str = "weights-*") -> Path:
    (path,) = (here / DEFAULT / part).glob(kind)
    return path


@torch.no_grad()
def logits(agent: Agent) -> torch.Tensor:
    torch.manual_seed(5)
    observation = random_observations(agent.config, (3,), "cpu")
    return agent.act(agent.initial_state(3), observation, torch.ones(3, dtype=torch.bool)).decision.logits


def test_a_release_is_the_rounded_agent_its_encoder_and_a_card_of_every_file(tmp_path):
    agent, folder = release_small(tmp_path / "released")
    assert folder == tmp_path / "released" / DEFAULT
    card = released.read_card(folder)
    contents = files_of(folder)
    assert {*card.files} == {*contents} - {"card.json", "card.md"} and len(card.files) == 4
    for name, file in card.files.items():
        assert file.bytes == len(contents[name]) and file.sha256 == hashlib.sha256(contents[name]).hexdigest()
    assert card.name == DEFAULT and card.package == scrubjay.__version__ and card.licence == "Apache-2.0"
    assert card.parameters == sum(parameter.numel() for parameter in agent.parameters())
    text = contents["card.md"].decode()
    assert all(file.sha256 in text and f"`{name}`" in text for name, file in card.files.items())
    assert "| random | 0.5 |" in text and "`scrubjay train demo`" in text and f'load_agent("{DEFAULT}")' in text
    parameters = dict(agent.named_parameters())
    for name, tensor in load_agent(folder / "agent").state_dict().items():
        its = agent.state_dict()[name]
        assert torch.equal(tensor, its.bfloat16().float() if name in parameters else its), name
    # About half of float32.
    assert sum(map(len, contents.values())) < 0.6 * 4 * card.parameters
    assert [path.name for path in folder.parent.iterdir()] == [DEFAULT], "no drafts are left"


def test_the_agent_is_loaded_by_its_name_wherever_a_run_is(here):
    wanted = logits(load_agent(here / DEFAULT / "agent"))
    player = load_player(DEFAULT)
    (named,) = load_agents(name_folders([DEFAULT])).items()
    for agent in (
        scrubjay.load_agent(DEFAULT),
        load_agent(Path(DEFAULT)),
        load_agent(newest(DEFAULT)),
        load_agent_named(DEFAULT),
        player.agent,
        named[1].agent,
    ):
        assert torch.equal(logits(agent.eval()), wanted)
    assert named[0] == DEFAULT and named[1].digest.startswith("weights-")
    assert isinstance(player, AgentPlayer) and names() == [DEFAULT] and load_card(DEFAULT).steps == 0


def test_a_plan_names_it_too(here, tmp_path):
    sources = {"ours": AgentSource(folder=DEFAULT), "other": AgentSource(folder="x")}
    plan = load_plan(plan_path("small")).model_copy(update={"agents": sources})
    folders = plan_folders(plan, None, tmp_path)
    assert newest(folders["ours"]) == here / DEFAULT / "agent" and folders["other"] == tmp_path / "x"


def test_its_encoder_is_a_studys_encoder_with_and_without_ours(here):
    plain, ours, from_agent = (
        load_encoder(name) for name in (DEFAULT, f"ours@{DEFAULT}", f"ours@{here / DEFAULT / 'agent'}")
    )
    assert plain.description.key == ours.description.key == from_agent.description.key
    assert plain.description.licence == "Apache-2.0" and from_agent.description.licence == "yours"
    assert scrubjay.load_encoder is load_encoder
    # Of the encoder's file alone: the agent's is not read.
    tampered(here).unlink()
    assert load_encoder(DEFAULT).description.key == plain.description.key
    trained = make_encoder(replace(SMALL, encoder=f"ours@{DEFAULT}"))
    assert isinstance(trained, Encoder)
    assert torch.equal(trained.stem.weight, ours.network.stem.weight)


def test_a_run_starts_from_it(here, tmp_path):
    run = Run.begin(tmp_path / "run", TrainConfig.preset("demo", agent=SMALL), DEFAULT)
    run.close()
    assert torch.equal(logits(load_agent(run.folder).eval()), logits(load_agent(DEFAULT).eval()))


def test_it_plays_as_agent_and_by_its_name(here):
    options = {"scene": "FloorPlan401", "goal": "Plunger", "size": 112, "limits": (4, 1, 2, 3, 5)}
    first = scrubjay.play("agent", "agent", **options)
    second = scrubjay.play(DEFAULT, scrubjay.load_agent(DEFAULT), **options)
    assert first.players["hider"] == first.players["seeker"] == second.players["hider"] == DEFAULT
    assert first.actions == second.actions and first.hash
    with pytest.raises(ValueError, match=r"unknown seeker 'nobody'; choose from random, .*, agent, or a run's folder"):
        scrubjay.play(seeker="nobody")


def test_an_agent_that_looks_only_at_the_games_it_plays_takes_the_same_actions(here):
    """In the others its opponent plays, in stages at whose end each game's memory is reset anyway."""

    class Looking(AgentPlayer):
        """Looks at all games at every step."""

        def _rows(self, games):
            return np.arange(len(games))

    agent, records, looks = scrubjay.load_agent(DEFAULT), [], []
    limits, scenes = np.array([5, 1, 3, 4, 6]), ("FloorPlan401", "FloorPlan402")
    for kind in (AgentPlayer, Looking):
        players, seen = HiderAndSeeker(kind(agent, 3), kind(agent, 4)), []
        with World(scenes, 2, size=112) as world:
            sampler = RandomEpisodes(2, ("Plunger",))
            matches = [Match(scenes[k % 2], "a", "b", sampler(world, k % 2)) for k in range(6)]
            act = agent.act
            agent.act = lambda state, observation, first, act=act, seen=seen: (
                seen.append(len(first)) or act(state, observation, first)
            )
            records.append([record.actions for _, record in play_matches(world, matches, players, limits)])
            del agent.act
        looks.append(seen)
    assert records[0] == records[1] and len(records[0]) == 6
    assert sum(looks[0]) == sum(map(len, records[0])) < sum(looks[1]) / 2
    assert set(looks[1]) == {4} and min(looks[0]) < 4


@settings(max_examples=25, deadline=None)
@given(part=st.sampled_from(released.PARTS), kind=st.sampled_from(["weights-*", "config.json"]), data=st.data())
def test_any_changed_byte_and_any_cut_is_refused_by_name(home, tmp_path_factory, part, kind, data):
    folder = tmp_path_factory.mktemp("changed")
    shutil.copytree(home / DEFAULT, folder / DEFAULT)
    path = tampered(folder, part, kind)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    if data.draw(st.booleans(), label="cut"):
        path.write_bytes(content[:at])
        message = rf"^{DEFAULT}: .* is cut off: it has {at:,} of {len(content):,} bytes; install it again$"
    else:
        content[at] ^= data.draw(st.integers(1, 255), label="bits")
        path.write_bytes(content)
        message = rf"^{DEFAULT}: .* was changed, or belongs to another version"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(released.VARIABLE, str(folder))
        with pytest.raises(WeightsError, match=message):
            weights.load(DEFAULT, part)
        with pytest.raises(WeightsError, match=message):
            weights.load(folder / DEFAULT / part)


def test_weights_of_another_release_are_refused_even_if_they_are_whole(here, tmp_path):
    """A consistent pair of config and weights, which no digest in a file's name would catch."""
    _, other = release_small(tmp_path / "other", seed=1)
    shutil.rmtree(here / DEFAULT / "agent")
    shutil.copytree(other / "agent", here / DEFAULT / "agent")
    with pytest.raises(WeightsError, match=rf"^{DEFAULT}: .*config\.json was changed, or belongs to another version"):
        load_agent(DEFAULT)
    # Nor does a checkpoint hide among the files.
    shutil.rmtree(here / DEFAULT / "agent")
    shutil.copytree(other / "agent", here / DEFAULT / "agent" / "checkpoints" / "00000001")
    with pytest.raises(WeightsError, match="is none of the files that its card lists"):
        load_agent(DEFAULT)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "a card of version 2; this program reads 1"),
        ({"name": "other"}, "is the card of other"),
        ({"name": "../x"}, "name: "),
        ({"licence": None}, "licence: "),
        ({"secret": 1}, "secret: "),
        ({"files": {"agent/config.json": {"bytes": 3, "sha256": "0"}}}, "sha256: "),
        ({"files": {}}, "is none of the files that its card lists"),
        ("", "is not a card"),
        ("[]", "a card of version None"),
    ],
)
def test_a_bad_card_is_refused_by_name(here, change, message):
    path = here / DEFAULT / "card.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change) if isinstance(change, dict) else change)
    for load in (load_agent, load_encoder):
        with pytest.raises(WeightsError, match=rf"^{DEFAULT}: .*{re.escape(message)}"):
            load(DEFAULT)


def test_an_agent_of_another_version_of_weights_is_refused(here):
    """The card agrees with the files: a release that a later program wrote."""
    config, card = here / DEFAULT / "agent" / "config.json", here / DEFAULT / "card.json"
    config.write_text(config.read_text().replace('"version": 4', '"version": 99'))
    about = json.loads(card.read_text())
    data = config.read_bytes()
    about["files"]["agent/config.json"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    card.write_text(json.dumps(about))
    with pytest.raises(WeightsError, match=rf"{DEFAULT}/agent/config\.json: version: 99"):
        load_agent(DEFAULT)


def test_where_it_is_not_installed_a_sentence_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setenv(released.VARIABLE, str(tmp_path / "nothing"))
    monkeypatch.chdir(tmp_path)
    assert names() == []
    message = f"^{DEFAULT} is not here: released agents come with the package, .* scrubjay release RUN"
    for load in (load_agent, load_encoder, load_card, newest, load_player, lambda name: load_encoder(f"ours@{name}")):
        with pytest.raises(WeightsError, match=message):
            load(DEFAULT)
    with pytest.raises(WeightsError, match=message):
        scrubjay.play("agent", "agent")
    with pytest.raises(EncoderError, match=f"unknown encoder 'scrubjay-x'; choose from .*, {DEFAULT}$"):
        load_encoder("scrubjay-x")
    with pytest.raises(WeightsError, match="scrubjay-x is not a released agent; there are none"):
        load_card("scrubjay-x")
    # A folder of that name is then just a folder.
    save_agent(Agent(SMALL), tmp_path / DEFAULT)
    assert load_agent(DEFAULT).config == SMALL


def test_a_folder_of_the_same_name_is_not_taken_for_it(here, tmp_path):
    save_agent(Agent(SMALL), tmp_path / "work" / DEFAULT)
    with pytest.raises(WeightsError, match="is a released agent and also a folder here: write the folder's whole path"):
        load_agent(DEFAULT)
    assert load_agent(tmp_path / "work" / DEFAULT).config == SMALL


def test_a_runs_newest_checkpoint_is_released_and_replaced_only_on_request(tmp_path):
    out, agents = tmp_path / "released", [Agent(SMALL), Agent(SMALL)]
    run = Run.begin(tmp_path / "run", TrainConfig.preset("demo", agent=SMALL))
    for number, agent in enumerate(agents):
        run.save(agent, {}, Progress(number + 1, 64, 5))
        if number:
            with pytest.raises(WeightsError, match="exists: choose another name, or replace it with --overwrite"):
                write_release(run.folder, TEXT, "mine", out)
        write_release(run.folder, TEXT, "mine", out, overwrite=True)
        its = next(agent.parameters()).detach().bfloat16().float()
        assert torch.equal(next(load_agent(out / "mine" / "agent").parameters()), its)
    run.close()
    assert [path.name for path in out.iterdir()] == ["mine"]


def test_nothing_is_written_for_what_cannot_be_released(tmp_path):
    folder = tmp_path / "weights"
    save_agent(Agent(SMALL), folder)
    for name in ("random", "agent", "easy", "../x", "Big", ""):
        with pytest.raises(ValueError, match="name: "):
            write_release(folder, TEXT, name, tmp_path / "out")
    with pytest.raises(WeightsError, match="there is no such folder"):
        write_release(tmp_path / "nowhere", TEXT, "mine", tmp_path / "out")
    about = json.loads((folder / "config.json").read_text())
    about["config"]["encoder"] = "python:evil:Code"
    (folder / "config.json").write_text(json.dumps(about))
    with pytest.raises(WeightsError, match="its encoder is python:evil:Code"):
        write_release(folder, TEXT, "mine", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_folder_that_an_encoder_came_from_is_not_in_the_release(tmp_path):
    _, folder = release_small(tmp_path / "released")
    weights.save(Agent(SMALL), replace(SMALL, encoder=f"ours@{tmp_path}"), tmp_path / "weights")
    folder = write_release(tmp_path / "weights", TEXT, "mine", tmp_path / "released")
    assert load_agent(folder / "agent").config == SMALL
    assert not [name for name, data in files_of(folder).items() if str(tmp_path).encode() in data]


def test_the_guides_card_is_a_card():
    (block,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.S)
    path = GUIDE.parent / "none.toml"
    with pytest.raises(WeightsError, match="not a card in TOML"):
        load_card_text(path)
    text = released.CardText.model_validate_json(json.dumps(tomllib.loads(block)))
    assert text.training and text.results


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = 3", "title: "),
        ("x", "not a card in TOML"),
        ('title = "a"\nabout = "b"\ntrained_on = "c"\nlicence = "d"\ntraining = []\nresults = []', "training: "),
    ],
)
def test_a_card_that_lacks_something_is_refused(tmp_path, text, message):
    (tmp_path / "card.toml").write_text(text)
    with pytest.raises(WeightsError, match=message):
        load_card_text(tmp_path / "card.toml")


def test_a_table_has_as_many_values_in_each_row_as_columns():
    with pytest.raises(ValueError, match="every row has 2 values"):
        released.ResultTable(title="a", columns=("b", "c"), rows=((1, 2), (3,)))


def test_released_agents_of_the_package_are_as_their_cards_say(monkeypatch):
    monkeypatch.delenv(released.VARIABLE, raising=False)
    for name in names():
        config, tensors = weights.load(name)
        assert load_card(name).parameters >= 1_000_000 and all(bool(t.isfinite().all()) for t in tensors.values())
        assert weights.load(name, "encoder")[0] == config
