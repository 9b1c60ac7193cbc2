"""Sources of features: what agents are told, stacks of images, forward steps, and that batches do not matter."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import save_agent
from scrubjay.agent.config import SMALL
from scrubjay.errors import DataError, WeightsError
from scrubjay.game.actions import NUMBERS, Stage
from scrubjay.game.observation import NO_ACTION
from scrubjay.study import feature_files, feature_pass
from scrubjay.study.dynamic_experiments import Examples, contained_examples, tracking_examples
from scrubjay.study.dynamic_probe import ProbeTable
from scrubjay.study.encoders import load_encoder
from scrubjay.study.feature_files import features_files, packed
from scrubjay.study.rotation_odds import TurningOdds
from scrubjay.study.sequences import Clip, SequenceData, SequenceWriter
from scrubjay.study.sources import (
    DynamicSource,
    ForwardSteps,
    ImageSource,
    compute_features,
    count_forward_steps,
    load_agent_named,
    untrained,
    untrained_sources,
)

AHEAD, UP, LEFT = (NUMBERS[f"MoveHand{name}"] for name in ("Ahead", "Up", "Left"))


def compute(source, data: SequenceData, examples: Examples) -> np.ndarray:
    return compute_features([source], data, examples.frame, examples.cell)[0]


def clip(length: int, actions: list[int], goal: str, seed: int, **columns) -> Clip:
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (length, 224, 224, 3), np.uint8)
    return Clip(images, np.r_[-1, actions], np.ones(length, bool), np.tile([0, 0, 0, 1], (length, 1)), goal, columns)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> SequenceData:
    """Pairs of sequences as of contained or behind, of different lengths."""
    folder = tmp_path_factory.mktemp("sources") / "data"
    columns = {"scene": "U24", "receptacle": "U24", "table": "U24", "label": "?"}
    writer = SequenceWriter(folder, "contained", Stage.OM, 0, ["one"], columns)
    names = dict(scene="FloorPlan501", receptacle="Bowl", table="Desk")
    writer.write(
        "one",
        [
            clip(4, [UP, AHEAD, AHEAD], "Cup", 0, label=True, **names),
            clip(6, [UP, AHEAD, AHEAD, AHEAD, UP], "Cup", 1, label=False, **names),
            clip(2, [LEFT], "Knife", 2, label=True, **names),
        ],
    )
    writer.finish()
    return SequenceData(folder, "contained")


@pytest.fixture(scope="module")
def agent():
    return untrained(SMALL)


def test_a_dir_is_what_the_agent_has_after_living_through_the_sequence(data, agent, monkeypatch):
    source = DynamicSource("one", agent)
    examples = contained_examples(data) if len(data) > 3 else Examples(np.array([3, 9, 11, 1]), _table(4))
    together = compute(source, data, examples)
    monkeypatch.setitem(feature_pass.BATCHES, "cpu", 1)
    alone = compute(source, data, examples)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert together.shape == (4, SMALL.lstm)
    # By hand: the third sequence, step by step.
    state = agent.initial_state(1)
    for step, frame in enumerate((10, 11)):
        image = torch.from_numpy(data.images(np.array([frame])))
        with torch.no_grad():
            told = source.observe(data, np.array([frame]), step, image)
            output = agent.act(state, told, torch.tensor([step == 0]))
        state = output.state
    np.testing.assert_allclose(alone[2], output.dirs.flat[0].numpy(), atol=1e-5)


def _table(count: int) -> ProbeTable:
    return ProbeTable(np.arange(count) % 2 > 0, np.arange(count))


def test_nothing_but_images_and_actions_differs_between_labels(data, agent):
    source = DynamicSource("one", agent)
    for step in range(4):
        image = torch.zeros(1, 224, 224, 3, dtype=torch.uint8)
        into, behind = (source.observe(data, np.array([first + step]), step, image) for first in (0, 4))
        for field in fields(into):
            if field.name not in ("image", "last_action", "last_success"):
                assert torch.equal(getattr(into, field.name), getattr(behind, field.name)), field.name
        assert into.target.tolist() == [[0, 3, 3]] and into.stage.tolist() == [Stage.OM]
        assert into.landed.tolist() == [NO_ACTION]
    first = source.observe(data, np.array([0]), 0, torch.zeros(1, 224, 224, 3, dtype=torch.uint8))
    assert first.last_action.tolist() == [NO_ACTION] and first.image.shape == (1, 112, 112, 3)


def test_a_navigation_agent_is_told_stand_for_hand_movements(data):
    source = DynamicSource("nav", untrained(replace(SMALL, memory="navigation")))
    told = source.observe(data, np.array([0, 1, 11]), 1, torch.zeros(3, 224, 224, 3, dtype=torch.uint8))
    assert told.last_action.tolist() == [NO_ACTION, NUMBERS["Stand"], NUMBERS["Stand"]]
    assert told.stage.tolist() == [Stage.S] * 3 and told.target.tolist() == [[0, 0, 0]] * 3
    assert compute(source, data, Examples(np.array([3, 9]), _table(2))).shape == (2, SMALL.gru_channels)
    cells = Examples(np.array([3, 9]), _table(2), np.array([[0, 6], [3, 2]]))
    assert compute(source, data, cells).shape == (2, SMALL.gru_channels + 1)
    (odds,) = compute_features([TurningOdds(source)], data, np.array([3, 9]))
    assert odds.shape == (2, 1)


def test_stacks_repeat_the_first_image_and_count_forward_steps(data):
    encoder = load_encoder("random")
    examples = Examples(np.array([3, 9, 11]), _table(3))
    one = compute(ImageSource("one", encoder), data, Examples(np.arange(12), _table(12)))
    stack = compute(ImageSource("stack", encoder, 4, forward_steps=True), data, examples)
    assert one.shape == (12, 128) and stack.shape == (3, 513)
    frames = np.array([[0, 1, 2, 3], [6, 7, 8, 9], [10, 10, 10, 11]])
    np.testing.assert_allclose(stack[:, :512], one[frames].reshape(3, 512), atol=1e-5)
    assert stack[:, 512].tolist() == [2, 3, 0]
    assert count_forward_steps(data, np.array([2, 4, 7])).tolist() == [1, 0, 2]
    assert compute(ForwardSteps(), data, examples).tolist() == [[2], [3], [0]]


def test_features_of_cells_are_slices(data, agent):
    cells = np.array([[0, 6], [3, 2]])
    examples = Examples(np.array([3, 3]), _table(2), cells)
    encoder = load_encoder("random")
    sir = encoder(torch.from_numpy(data.images(np.array([3])))).sir[0].numpy()
    taken = compute(ImageSource("one", encoder), data, examples)
    np.testing.assert_allclose(taken, np.stack([sir[:, 0, 6], sir[:, 3, 2]]), atol=1e-5)
    assert compute(DynamicSource("one", agent), data, examples).shape == (2, SMALL.gru_channels + 1)


def test_features_are_computed_once_and_belong_to_data_and_source(data, agent, tmp_path):
    examples, source = Examples(np.array([3, 9]), _table(2)), ForwardSteps()
    (path,) = features_files([source], data, examples, tmp_path)
    before = path.stat().st_mtime_ns
    assert features_files([source], data, examples, tmp_path) == [path] and path.stat().st_mtime_ns == before
    assert features_files([source], data, Examples(np.array([3, 8]), _table(2)), tmp_path) != [path]
    assert DynamicSource("a", agent).key != DynamicSource("b", untrained(SMALL, 1)).key


def test_sources_see_images_together_as_they_do_alone(data, agent):
    encoder = load_encoder("random")
    sources = [
        DynamicSource("a", agent), DynamicSource("b", untrained(SMALL, 1)), ImageSource("c", encoder),
        ImageSource("d", encoder, 4, True), ForwardSteps(),
    ]  # fmt: skip
    frames, encoded = np.array([11, 3, 9, 9, 5]), []
    encoder.register_forward_pre_hook(lambda _, images: encoded.append(len(images[0])))
    together = compute_features(sources, data, frames)
    # Frames 0 to 3, 4 to 9 without 4, and 10, 11: what stacks of four need, each once.
    assert sum(encoded) == 4 + 6 + 2
    for source, features in zip(sources, together, strict=True):
        np.testing.assert_allclose(features, compute_features([source], data, frames)[0], atol=1e-5)
        assert len(features) == 5 and np.array_equal(features[2], features[3])


def test_nothing_is_compiled_for_each_number_of_sequences(data):
    compiled, seen = [], []

    def compile_nothing(graph, _):
        compiled.append(graph)
        return graph.forward

    double = torch.compile(lambda images: images * 2, backend=compile_nothing, dynamic=False)

    class Watcher:
        lives, wanted = True, [feature_pass.Wanted(np.array([3, 9, 11]))]

        def begin(self, sequences: int, steps: int) -> None: ...

        def see(self, frames: np.ndarray, step: int, images: torch.Tensor) -> None:
            seen.append(len(double(images)))

    one = feature_pass.FeaturePass(data, np.array([3, 9, 11]))
    one.watcher("one", Watcher)
    one.run()
    assert seen == [3, 3, 2, 2, 1, 1] and not compiled
    double(torch.zeros(1))
    assert len(compiled) == 1, "afterwards it is"


def test_features_that_were_interrupted_continue_with_the_next_sequences(data, agent, tmp_path, monkeypatch):
    sources, examples = [DynamicSource("a", agent), ForwardSteps()], Examples(np.array([11, 3, 9, 5]), _table(4))
    whole = features_files(sources, data, examples, tmp_path / "whole")
    monkeypatch.setitem(feature_files.SHARDS, "cpu", 1)

    def interrupt(done: int, total: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features_files(sources, data, examples, tmp_path / "cut", progress=interrupt)
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "cut").glob("*.part.npy")}
    assert len(parts) == 2 * len(sources)
    seen: list[tuple[int, int]] = []
    cut = features_files(sources, data, examples, tmp_path / "cut", progress=lambda *now: seen.append(now))
    assert seen[-1] == (3, 3) and sorted((tmp_path / "cut").iterdir()) == sorted(cut)
    for one, other in zip(whole, cut, strict=True):
        np.testing.assert_allclose(np.load(one), np.load(other), atol=1e-3)


def test_features_are_stored_in_half_the_space_where_nothing_is_lost():
    rng = np.random.default_rng(0)
    ordinary = rng.normal(size=(50, 300)).astype(np.float32)
    assert packed(ordinary).dtype == np.float16
    for wrong in (1e5, 1 + 1e-4 * ordinary[:, 0], 1e-9 * ordinary[:, 0]):
        features = ordinary.copy()
        features[:, 290] = wrong
        assert packed(features) is features, "too large, or too small a change for float16"


def test_agents_that_are_not_there_are_named(tmp_path):
    with pytest.raises(DataError, match="the seed must be a number"):
        load_agent_named("random:x")
    with pytest.raises(WeightsError, match="not a config of weights"):
        load_agent_named(str(tmp_path))
    assert load_agent_named("random:2", "small").config == SMALL


def test_an_agent_of_other_sizes_than_its_weights_is_one_sentence(agent, tmp_path):
    save_agent(agent, tmp_path)
    about = json.loads((tmp_path / "config.json").read_text())
    about["config"]["lstm"] //= 2
    (tmp_path / "config.json").write_text(json.dumps(about))
    with pytest.raises(WeightsError, match=r"weights of another network: .* expected shape") as caught:
        load_agent_named(str(tmp_path))
    assert str(tmp_path) in str(caught.value) and "\n" not in str(caught.value)


def test_tracking_asks_for_each_cell_on_the_way_behind(tmp_path):
    """Seen at frame 0, hidden in cell (3, 2), then in both (3, 2) and (3, 3), then in (3, 3) alone, then seen again."""
    extras = {"cells": ("uint16", (7, 7)), "visible": ("int32", ())}
    writer = SequenceWriter(tmp_path, "tracking", Stage.OM, 0, ["a"], {"scene": "U24", "table": "U24"}, extras)
    cells, visible = np.zeros((5, 7, 7), int), np.array([50, 9, 0, 3, 40])
    cells[0, 3, 1] = cells[1, 3, 2] = cells[4, 3, 4] = 50
    cells[2, 3, 2:4] = 25, 25
    cells[3, 3, 3], cells[3, 3, 2] = 40, 10
    one = clip(5, [LEFT] * 4, "Cup", 0, scene="FloorPlan501", table="Desk")
    writer.write("a", [Clip(**{**vars(one), "extras": {"cells": cells, "visible": visible}})])
    writer.finish()
    examples = tracking_examples(SequenceData(tmp_path, "tracking"))
    assert examples.frame.tolist() == [1, 1, 2, 2, 3, 3]
    assert examples.cell.tolist() == [[3, 2], [3, 3]] * 3
    # Ten pixels make a cell part of the way, but more than ten are needed to be there.
    assert examples.table.label.tolist() == [True, False, True, True, False, True]
    assert examples.table.steps.tolist() == [1, 1, 2, 2, 3, 3] and examples.table.balance


def test_untrained_networks_are_known_by_their_seeds():
    """The last bits of their weights depend on the number of threads, and features must be found elsewhere."""
    one, other = untrained_sources(SMALL, (1, 2))
    (again,) = untrained_sources(SMALL, (1,))
    with torch.no_grad():
        next(again.agent.parameters()).add_(1e-7)
    assert one.key == DynamicSource("x", again.agent, "untrained 1").key != other.key
    assert DynamicSource("x", one.agent).key not in (one.key, DynamicSource("x", again.agent).key)
