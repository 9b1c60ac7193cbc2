"""Agent traces: they hold the numbers that the networks really computed, and the page shows all of them."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent
from scrubjay.agent.config import SMALL
from scrubjay.agent.hiding_outcomes import NOT_HIDDEN, NUM_PLACEMENTS
from scrubjay.agent.perspective import Uniforms
from scrubjay.cli import training
from scrubjay.errors import RoomError, RunError
from scrubjay.game.actions import ALLOWED, NAMES, Stage, action_index
from scrubjay.game.stages import LIMITS as GAME_LIMITS
from scrubjay.sim.pose import AgentPose
from scrubjay.training.config import PRESETS
from scrubjay.training.run import Progress, Run
from scrubjay.viz import agent_trace
from scrubjay.viz.agent_charts import PlanBackground, attention_by_position, separate
from scrubjay.viz.agent_page import (
    attention_steps,
    candidate_rows,
    describe_training,
    limits_of,
    outcome_name,
    trained_stages,
    write_agent_page,
)
from scrubjay.viz.agent_trace import (
    AgentTrace,
    attention_weights,
    cells_to_room_frame,
    load_run_agent,
    to_room_frame,
    trace_agent,
)
from scrubjay.viz.episode import STAGES, Episode, replay_episode

SCENE, LIMITS = "FloorPlan401", np.array([24, 1, 4, 6, 12])
DEMO = replace(PRESETS["demo"], agent=SMALL)


@pytest.fixture(scope="module")
def agent() -> Agent:
    torch.manual_seed(0)
    return Agent(SMALL).eval()


@pytest.fixture(scope="module")
def read() -> list:
    """What attention read from the map at each step of `trace`, recorded while it was played."""
    return []


@pytest.fixture(scope="module")
def trace(agent, read) -> AgentTrace:
    # The LSTM's input ends with it.
    length = SMALL.map_read - SMALL.gru_channels
    hook = agent.memory.lstm_norm.register_forward_hook(lambda _, inputs, __: read.append(inputs[0][:, -length:]))
    traced = trace_agent(agent, SCENE, "Bread", 1, limits=LIMITS)
    hook.remove()
    return traced


@pytest.fixture(scope="module")
def episode(trace) -> Episode:
    return replay_episode(trace.record)


def test_every_step_of_the_game_has_a_trace_step(trace, episode):
    assert [step.action for step in trace.steps] == trace.record.actions
    assert [step.stage for step in trace.steps] == trace.record.stages()
    assert {Stage.EM, Stage.PS, Stage.OH, Stage.S} <= {step.stage for step in trace.steps}
    places = [step.agent_pose for step in trace.steps]
    assert places[0] == pytest.approx(trace.record.start) and places[1] == pytest.approx(episode.steps[0].agent_pose)
    assert (trace.steps[1].picture == episode.steps[0].picture).all(), (
        "the view after a step is the view before the next"
    )


def test_a_policy_is_over_the_stages_own_actions(trace):
    for step in trace.steps:
        if step.stage == Stage.PS:
            assert not step.probabilities.any() and np.isnan(step.probability) and np.isnan(step.entropy)
        else:
            assert step.probabilities.sum() == pytest.approx(1, abs=1e-5)
            assert not step.probabilities[~ALLOWED[step.stage]].any()
            assert step.probability == step.probabilities[action_index(step.action)] > 0
            assert 0.5 < step.entropy <= 1 + 1e-6, "nearly uniform at first"


def test_attention_is_what_the_memory_used(agent, trace, read, monkeypatch):
    """The weights applied to the map's entries give what attention read, at every step and in all stages."""
    seen, steps, act = [], iter(read), Agent.act

    def recording(self, state, observation, is_first):
        output = act(self, state, observation, is_first)
        entries, weights = attention_weights(self, state, output)
        seen.append(int(entries.written.sum()))
        heads = torch.einsum("bhm,bmc->bhc", weights, entries.values)
        torch.testing.assert_close(self.memory.map_reader.output(heads.flatten(1)), next(steps))
        return output

    monkeypatch.setattr(Agent, "act", recording)
    again = trace_agent(agent, SCENE, "Bread", 1, limits=LIMITS)
    assert again.record == trace.record, "the same seed plays the same game"
    assert seen == [len(step.remembered) for step in trace.steps]
    stages = [step.stage for step in trace.steps]
    assert seen[0] == 0 == seen[stages.index(Stage.S)], "explorers and seekers start with an empty map"
    assert seen[stages.index(Stage.OH)] > 1, "the hider keeps its map"
    assert not any(count for count, stage in zip(seen, stages, strict=True) if stage == Stage.OM), "OM has none"


def test_map_entries_lie_where_the_agent_was(trace):
    been = {tuple(np.round(step.agent_pose[:2], 3)) for step in trace.steps_in(Stage.EM)}
    assert {tuple(position) for position in trace.steps_in(Stage.PS)[0].remembered.round(3)} == been
    for step in trace.steps:
        positions, weights = attention_by_position(step)
        assert weights.sum() == pytest.approx(step.attention.mean(0).sum(), abs=1e-5) and weights.sum() < 1
        assert len(positions) == len({tuple(p) for p in step.remembered.round(4)})


def test_steps_from_the_start_in_the_room():
    """By hand: facing east, ahead is east and right is south; a step is a quarter of a meter."""
    positions = to_room_frame(AgentPose(1.0, 2.0, 90.0, True), np.array([[0, 0], [0, 4], [2, 0]]))
    assert positions == pytest.approx(np.array([[1, 2], [2, 2], [1, 1.5]]))


def test_the_cells_of_perspective_simulation_are_where_the_hider_was(trace):
    explored, start = trace.hiding.explored, trace.record.start
    cells = explored.floor[0].nonzero().numpy()
    there = cells_to_room_frame(start, explored, cells).round(3)
    assert {tuple(p) for p in there} == {tuple(np.round(step.agent_pose[:2], 3)) for step in trace.steps_in(Stage.EM)}
    row, column, quarter, _ = trace.hiding.choice.place[0].tolist()
    chosen = cells_to_room_frame(start, explored, np.array([row, column]))
    hider = trace.steps_in(Stage.OH)[0].agent_pose
    assert chosen == pytest.approx(hider[:2]) and (start.rotation + 90 * quarter) % 360 == pytest.approx(hider.rotation)


def test_scores_for_another_start_are_those_of_a_seeker_there(agent, trace):
    hiding = trace.hiding
    assert 1 <= len(hiding.other_starts) <= agent_trace.OTHER_STARTS
    for (row, column), scores in hiding.other_starts:
        assert hiding.explored.floor[0, row, column] and (np.isfinite(scores) == np.isfinite(hiding.scores)).all()
        assert not np.allclose(scores[np.isfinite(scores)], hiding.scores[np.isfinite(scores)], atol=1e-7)
    draws = Uniforms.sample(hiding.explored, repeats=2, limit=3)
    again = agent.perspective.choose_place(hiding.explored, draws).scores[0].numpy()
    assert again == pytest.approx(hiding.scores), "for the real start"


def test_candidate_poses_are_a_table(trace):
    rows = candidate_rows(trace.hiding)
    assert [row["chosen"] for row in rows].count(True) == 1 and len(rows) == int(trace.hiding.choice.valid.sum())
    steps = [float(row["steps"]) for row in rows]
    assert steps == sorted(steps, reverse=True) and all(1 <= s <= 100 for s in steps)
    assert sum(int(row["probability"].removesuffix(" %")) for row in rows) == pytest.approx(100, abs=len(rows))


def test_outcomes_in_words():
    assert outcome_name(NOT_HIDDEN) == "dropped only"
    assert outcome_name(0) == "on top 1,1 crouching"
    assert outcome_name(NUM_PLACEMENTS + 49 + 7 + 2) == "contained in 2,3 standing"


def test_labels_are_pushed_apart():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(12, 2)), np.zeros((3, 2))])
    labels = separate(points, 0.3)
    distance = np.linalg.norm(labels[:, None] - labels, axis=-1) + np.eye(len(labels))
    assert distance.min() > 0.29 and np.abs(labels - points).max() < 0.6
    assert separate(points[:1], 0.3) == pytest.approx(points[:1], abs=1e-3)


def test_a_plan_shows_all_that_was_visited(episode):
    west, south, east, north = episode.compiled.room.bounds
    for known in (np.array([[west, south], [east, north]]), np.array([[west, south]]), np.array([[east, north]])):
        background = PlanBackground(episode, known)
        assert (np.abs(known - background.middle) <= background.reach + 1e-9).all()


def test_a_page_shows_the_runs_progress():
    text = describe_training(PRESETS["demo"], Progress(12, 1536, 7, 90))
    assert "update 12 of" in text and "1,536 steps" in text and "7 finished games" in text and "1.5 minutes" in text
    assert "trains exploration and mapping only" in text


def test_the_page_has_the_whole_game(trace, episode, tmp_path):
    path = tmp_path / "index.html"
    write_agent_page(trace, episode, describe_training(PRESETS["demo"], Progress(1, 2, 3, 4)), path)
    page = path.read_text()
    assert len(page) < 8 * 2**20 and "http" not in page.replace("http://www.w3.org/2000/svg", "")
    frames = json.loads(re.search(r"const frames = (.*);\n", page).group(1))
    assert [frame["step"] for frame in frames] == list(range(1, len(trace.steps) + 1))
    for frame, step in zip(frames, trace.steps, strict=True):
        assert frame["action"] == step.action and frame["failed"] == (not step.success)
        assert (frame["probability"] is None) == (step.stage == Stage.PS)
        assert all(0 <= share <= 100 for share in frame["player"])
        assert [name for name, *_ in frame["likely"]] == [NAMES[i] for i in np.argsort(-step.probabilities)][
            : len(frame["likely"])
        ]
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert len(headings) == 8 and "Attention over the map" in headings


def test_stages_that_were_not_trained_are_left_out(trace, episode, agent, tmp_path):
    run = Run.begin(tmp_path / "run", DEMO)
    run.save(agent, {}, Progress())
    run.close()
    stages = trained_stages(run.folder)
    assert stages == (Stage.EM,) and trained_stages("scrubjay-paper") == tuple(Stage)
    assert limits_of(stages).tolist() == [GAME_LIMITS[0], 1, 1, 1, 1] and (limits_of(tuple(Stage)) == GAME_LIMITS).all()
    write_agent_page(trace, episode, "", tmp_path / "index.html", stages)
    page = (tmp_path / "index.html").read_text()
    frames = json.loads(re.search(r"const frames = (.*);\n", page).group(1))
    assert [frame["step"] for frame in frames] == list(range(1, len(trace.steps_in(Stage.EM)) + 1))
    assert {frame["stage"] for frame in frames} == {"Exploration and mapping"}
    assert not re.search(r"[a-z]\|", "".join(frame["words"] + frame["likely"][0][2] for frame in frames))
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == ["Step by step", "Value and entropy", "Paths", "Attention over the map"]
    assert re.findall(r"<tr><th>(.*?)</th>", page) == ["Coverage", "Coverage+", "Opened"]
    assert page.count("The path, from the square to the red dot") == 2, "in the picture's text too"
    assert "Violet" not in page and "Seeking" not in page


@pytest.mark.parametrize("stage", [Stage.OM, Stage.S])
def test_a_page_of_one_later_stage_can_be_written(trace, episode, stage, tmp_path):
    write_agent_page(trace, episode, "", tmp_path / "index.html", (stage,))
    frames = json.loads(re.search(r"const frames = (.*);\n", (tmp_path / "index.html").read_text()).group(1))
    assert {frame["stage"] for frame in frames} == {STAGES[stage].title}


def test_attention_is_shown_in_each_stage_that_has_a_map(trace):
    assert [step.stage for step in attention_steps(trace)] == [Stage.EM, Stage.EM, Stage.OH, Stage.S]


def test_a_run_without_a_checkpoint_is_refused(agent, tmp_path):
    with pytest.raises(RunError, match="is not a run"):
        load_run_agent(tmp_path)
    run = Run.begin(tmp_path / "run", DEMO)
    with pytest.raises(RunError, match="has no checkpoint yet"):
        load_run_agent(run.folder)
    run.save(agent, {}, Progress(5, 6, 7, 8))
    run.close()
    loaded, config, progress = load_run_agent(run.folder)
    assert config == DEMO and progress == Progress(5, 6, 7, 8)
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), agent.parameters(), strict=True))


@pytest.mark.parametrize("wrong", [{"goal": "Piano"}, {"scene": "Attic9"}])
def test_unknown_names_are_refused_before_anything_is_written(agent, tmp_path, wrong):
    run = Run.begin(tmp_path / "run", DEMO)
    run.save(agent, {}, Progress())
    run.close()
    with pytest.raises((ValueError, RoomError), match=next(iter(wrong.values()))):
        training.watch(run.folder, out=tmp_path / "out", **wrong)
    assert not (tmp_path / "out").exists()


def test_an_agent_that_never_moves_has_a_page_too(agent, tmp_path):
    """One step per stage: a single map entry, one candidate pose, no other start."""
    brief = trace_agent(agent, SCENE, "Bread", 2, limits=np.array([1, 1, 1, 1, 1]))
    assert brief.hiding.explored.floor.sum() == 1 and not brief.hiding.other_starts
    assert len(candidate_rows(brief.hiding)) == 1
    training = describe_training(PRESETS["seek"], Progress())
    write_agent_page(brief, replay_episode(brief.record), training, tmp_path / "index.html")
    assert "trains seeking only" in (tmp_path / "index.html").read_text()
