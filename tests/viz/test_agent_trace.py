"""A watched game: what is kept are the numbers that the networks really used, and the page has all of them."""

import json
import re

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.hiding_outcomes import NONE, SPOTS
from scrubjay.agent.metric_map import HEADS
from scrubjay.agent.perspective import Draws
from scrubjay.cli import training
from scrubjay.errors import RoomError, RunError
from scrubjay.game.actions import ALLOWED, NAMES, Stage, action_index
from scrubjay.sim.pose import AgentPose
from scrubjay.training.config import PRESETS
from scrubjay.training.run import Progress, Run
from scrubjay.viz import agent_trace
from scrubjay.viz.agent_charts import Ground, by_position
from scrubjay.viz.agent_page import considered_places, outcome_name, telling_moments, trained, write_agent_page
from scrubjay.viz.agent_trace import AgentTrace, attention, cells_in_room, in_room, open_run, watch
from scrubjay.viz.episode import Episode, replay_episode

SCENE, LIMITS = "FloorPlan401", np.array([24, 1, 4, 6, 12])


@pytest.fixture(scope="module")
def agent() -> Agent:
    torch.manual_seed(0)
    return Agent(SMALL).eval()


@pytest.fixture(scope="module")
def read() -> list:
    """What was read from the map by attention at each step of `watched`, noted while it was played."""
    return []


@pytest.fixture(scope="module")
def watched(agent, read) -> AgentTrace:
    hook = agent.memory.reader.answers.register_forward_hook(lambda _, inputs, __: read.append(inputs[0]))
    found = watch(agent, SCENE, "Bread", 1, limits=LIMITS)
    hook.remove()
    return found


@pytest.fixture(scope="module")
def episode(watched) -> Episode:
    return replay_episode(watched.record)


def test_every_step_of_the_game_has_its_moment(watched, episode):
    assert [moment.action for moment in watched.moments] == watched.record.actions
    assert [moment.stage for moment in watched.moments] == watched.record.stages()
    assert {Stage.EM, Stage.PS, Stage.OH, Stage.S} <= {moment.stage for moment in watched.moments}
    places = [moment.place for moment in watched.moments]
    assert places[0] == pytest.approx(watched.record.start) and places[1] == pytest.approx(episode.steps[0].place)
    assert (watched.moments[1].picture == episode.steps[0].picture).all(), "seen after a step is seen before the next"


def test_a_policy_is_over_the_stages_own_actions(watched):
    for moment in watched.moments:
        if moment.stage == Stage.PS:
            assert not moment.probabilities.any() and np.isnan(moment.chance) and np.isnan(moment.entropy)
        else:
            assert moment.probabilities.sum() == pytest.approx(1, abs=1e-5)
            assert not moment.probabilities[~ALLOWED[moment.stage]].any()
            assert moment.chance == moment.probabilities[action_index(moment.action)] > 0
            assert 0.5 < moment.entropy <= 1 + 1e-6, "nearly uniform at first"


def test_attention_is_what_the_memory_used(agent, watched, read, monkeypatch):
    """The weights, applied to what is in the map, give what the reader was given, at every step and in all stages."""
    seen, steps, act = [], iter(read), Agent.act

    def noting(self, state, observation, begins):
        said = act(self, state, observation, begins)
        entries, weights = attention(self, state, said)
        seen.append(int(entries.written.sum()))
        used = next(steps).unflatten(-1, (HEADS, -1))
        torch.testing.assert_close(torch.einsum("bhm,bmc->bhc", weights, entries.values), used)
        return said

    monkeypatch.setattr(Agent, "act", noting)
    again = watch(agent, SCENE, "Bread", 1, limits=LIMITS)
    assert again.record == watched.record, "the same seed plays the same game"
    assert seen == [len(moment.remembered) for moment in watched.moments]
    stages = [moment.stage for moment in watched.moments]
    assert seen[0] == 0 == seen[stages.index(Stage.S)], "explorers and seekers begin with nothing"
    assert seen[stages.index(Stage.OH)] > 1, "the hider keeps its map"


def test_what_is_remembered_lies_where_the_agent_was(watched):
    been = {tuple(np.round(moment.place[:2], 3)) for moment in watched.of(Stage.EM)}
    assert {tuple(position) for position in watched.of(Stage.PS)[0].remembered.round(3)} == been
    for moment in watched.moments:
        positions, weights = by_position(moment)
        assert weights.sum() == pytest.approx(moment.attention.mean(0).sum(), abs=1e-5) and weights.sum() < 1
        assert len(positions) == len({tuple(p) for p in moment.remembered.round(4)})


def test_steps_from_the_start_in_the_room():
    """By hand: facing east, ahead is east and right is south; a step is a quarter of a meter."""
    found = in_room(AgentPose(1.0, 2.0, 90.0, True), np.array([[0, 0], [0, 4], [2, 0]]))
    assert found == pytest.approx(np.array([[1, 2], [2, 2], [1, 1.5]]))


def test_the_cells_of_perspective_simulation_are_where_the_hider_was(watched):
    explored, start = watched.reasons.explored, watched.record.start
    cells = explored.floor[0].nonzero().numpy()
    there = cells_in_room(start, explored, cells).round(3)
    assert {tuple(p) for p in there} == {tuple(np.round(moment.place[:2], 3)) for moment in watched.of(Stage.EM)}
    row, column, quarter, _ = watched.reasons.choice.place[0].tolist()
    chosen = cells_in_room(start, explored, np.array([row, column]))
    hider = watched.of(Stage.OH)[0].place
    assert chosen == pytest.approx(hider[:2]) and (start.rotation + 90 * quarter) % 360 == pytest.approx(hider.rotation)


def test_scores_for_another_start_are_those_of_a_seeker_there(agent, watched):
    reasons = watched.reasons
    assert 1 <= len(reasons.elsewhere) <= agent_trace.OTHER_STARTS
    for (row, column), scores in reasons.elsewhere:
        assert reasons.explored.floor[0, row, column] and (np.isfinite(scores) == np.isfinite(reasons.scores)).all()
        assert not np.allclose(scores[np.isfinite(scores)], reasons.scores[np.isfinite(scores)], atol=1e-7)
    draws = Draws.fresh(reasons.explored, repeats=2, limit=3)
    again = agent.perspective.choose(reasons.explored, draws).scores[0].numpy()
    assert again == pytest.approx(reasons.scores), "as it is"


def test_the_places_thought_through_are_a_table(watched):
    rows = considered_places(watched.reasons)
    assert [row["chosen"] for row in rows].count(True) == 1 and len(rows) == int(watched.reasons.choice.real.sum())
    steps = [float(row["steps"]) for row in rows]
    assert steps == sorted(steps, reverse=True) and all(1 <= s <= 100 for s in steps)
    assert sum(int(row["chance"].removesuffix(" %")) for row in rows) == pytest.approx(100, abs=len(rows))


def test_outcomes_in_words():
    assert outcome_name(NONE) == "only dropped"
    assert outcome_name(0) == "on top 1,1 crouching"
    assert outcome_name(SPOTS + 49 + 7 + 2) == "contained in 2,3 standing"


def test_a_plan_shows_all_that_was_visited(episode):
    west, south, east, north = episode.compiled.room.bounds
    for known in (np.array([[west, south], [east, north]]), np.array([[west, south]]), np.array([[east, north]])):
        ground = Ground(episode, known)
        assert (np.abs(known - ground.middle) <= ground.reach + 1e-9).all()


def test_a_page_says_how_far_the_run_was():
    said = trained(PRESETS["demo"], Progress(12, 1536, 7, 90))
    assert "update 12 of" in said and "1,536 steps" in said and "7 finished games" in said and "1.5 minutes" in said
    assert "learns exploration and mapping alone" in said


def test_the_page_has_the_whole_game(watched, episode, tmp_path):
    path = tmp_path / "index.html"
    write_agent_page(watched, episode, PRESETS["demo"], Progress(1, 2, 3, 4), path)
    page = path.read_text()
    assert len(page) < 8 * 2**20 and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    frames = json.loads(re.search(r"const frames = (.*);\n", page).group(1))
    assert [frame["step"] for frame in frames] == list(range(1, len(watched.moments) + 1))
    for frame, moment in zip(frames, watched.moments, strict=True):
        assert frame["action"] == moment.action and frame["failed"] == (not moment.success)
        assert (frame["chance"] is None) == (moment.stage == Stage.PS)
        assert all(0 <= share <= 100 for share in frame["player"])
        assert [name for name, _ in frame["likely"]] == [NAMES[i] for i in np.argsort(-moment.probabilities)][
            : len(frame["likely"])
        ]
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert len(headings) == 8 and "Attention over the map" in headings


def test_moments_are_of_the_stages_that_there_are(watched):
    assert [moment.stage for moment in telling_moments(watched)] == [Stage.EM, Stage.EM, Stage.OH, Stage.S]


def test_a_run_without_a_checkpoint_is_refused(agent, tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        open_run(tmp_path)
    run = Run.begin(tmp_path / "run", PRESETS["demo"])
    with pytest.raises(RunError, match="has no checkpoint yet"):
        open_run(run.folder)
    run.save(agent, {}, Progress(5, 6, 7, 8))
    run.close()
    found, learned, progress = open_run(run.folder)
    assert learned == PRESETS["demo"] and progress == Progress(5, 6, 7, 8)
    assert all(torch.equal(a, b) for a, b in zip(found.parameters(), agent.parameters(), strict=True))


@pytest.mark.parametrize("wrong", [{"goal": "Piano"}, {"scene": "Attic9"}])
def test_what_is_not_there_is_said_before_anything_is_written(agent, tmp_path, wrong):
    run = Run.begin(tmp_path / "run", PRESETS["demo"])
    run.save(agent, {}, Progress())
    run.close()
    with pytest.raises((ValueError, RoomError), match=next(iter(wrong.values()))):
        training.watch(run.folder, out=tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_an_agent_that_goes_nowhere_has_a_page_too(agent, tmp_path):
    """One step of each stage: one place in the map, nothing to choose from, no other start."""
    brief = watch(agent, SCENE, "Bread", 2, limits=np.array([1, 1, 1, 1, 1]))
    assert brief.reasons.explored.floor.sum() == 1 and not brief.reasons.elsewhere
    assert len(considered_places(brief.reasons)) == 1
    write_agent_page(brief, replay_episode(brief.record), PRESETS["seek"], Progress(), tmp_path / "index.html")
    assert "learns seeking alone" in (tmp_path / "index.html").read_text()
