"""The classification baseline: labels against a slow reference, as many updates as the agent's encoder, resuming."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from scrubjay.agent.agent import Agent, load_agent
from scrubjay.agent.config import SMALL
from scrubjay.errors import RunError, WeightsError
from scrubjay.rooms.catalog import TYPES
from scrubjay.rooms.generate import expand_scenes, make_room
from scrubjay.rooms.room import GOALS
from scrubjay.sim.pose import cameras
from scrubjay.sim.world import World
from scrubjay.study.encoders import load_encoder, resized
from scrubjay.training.class_labels import CLASSES, ClassLabels
from scrubjay.training.config import TrainConfig
from scrubjay.training.hogwild import train_asynchronously
from scrubjay.training.metrics import MeanMetrics
from scrubjay.training.run import Run, checkpoints
from scrubjay.training.shadow import LabeledImages, ShadowClassifier, labeled_images
from scrubjay.training.train import train
from scrubjay.training.trainer import Trainer

EXPLORE = TrainConfig.preset(
    "demo", scenes=("FloorPlan401",), copies=2, unroll_length=4, minibatch_games=2, updates=4, checkpoint_interval=2,
    augment=True, replay_batches=2, replay_batch_size=4, replay_size=40, replay_group_share=1.0, milestones=(0,),
    shadow_classifier=True,
)  # fmt: skip
CACHE = replace(
    EXPLORE, task="cache", stage_limits=(2, 1, 2, 2, 2), hiding_minibatch=1, manipulation_minibatch=1, unroll_length=8,
    think_every=1, epochs=1, augment=False, updates=2, checkpoint_interval=1,
)  # fmt: skip


def visible_by_hand(world: World, b: int) -> set[str]:
    """The types that an agent sees, thing by thing, with every pixel's place in the room."""
    view, room, state = world.view(("ids", "depth")), world.rooms[world.room_of[b]], world.state
    ids, depth = view.ids[b].numpy(), view.depth[b].numpy().astype(float)
    eye, matrix = cameras(state.position[b], state.rotation[b], state.standing[b])
    types = [*(thing.type for thing in room.room.things), *GOALS]
    found = set()
    for thing in np.unique(ids[ids >= 0]).tolist():
        away = []
        for row, column in zip(*np.nonzero(ids == thing), strict=True):
            across, up = (column + 0.5) / world.size * 2 - 1, 1 - (row + 0.5) / world.size * 2
            point = eye + matrix @ (depth[row, column] * np.array([across, up, -1.0]))
            away.append(np.hypot(*(point[:2] - state.position[b])))
        if len(away) * (224 / world.size) ** 2 >= 10 and min(away) <= 1.5:
            found.add(types[thing])
    return found & set(CLASSES)


@pytest.mark.parametrize("size", [112, 224])
def test_labels_are_those_of_a_slow_reference(size):
    rng = np.random.default_rng(3)
    with World(["FloorPlan3", "FloorPlan401"], 4, size=size) as world:
        labels, seen = ClassLabels(world), set()
        for b in range(len(world)):
            places = world.reachable[world.room_of[b]].positions
            world.state.position[b] = places[rng.integers(len(places))]
            world.state.rotation[b], world.state.standing[b] = 90 * rng.integers(4), b % 2 == 0
        world.hold(np.arange(len(world)) % len(GOALS))
        actual = labels(world.view(("ids", "depth")))
        assert actual.shape == (8, 101) and actual.dtype == torch.bool
        for b in range(len(world)):
            named = {CLASSES[number] for number in actual[b].nonzero()[:, 0].tolist()}
            assert named == visible_by_hand(world, b)
            seen |= named
        assert len(seen) > 12 and seen & set(GOALS)


def test_classes_are_the_goals_and_what_nine_train_rooms_have():
    rooms = Counter(kind for scene in expand_scenes(["train"]) for kind in {t.type for t in make_room(scene).things})
    frequent = {kind for kind, count in rooms.items() if count >= 9 and kind in TYPES and kind != "Doorway"}
    assert tuple(sorted(frequent | set(GOALS))) == CLASSES and len(CLASSES) == 101


def test_the_loss_by_hand_leaves_out_what_is_not_in_the_mask():
    shadow = ShadowClassifier(Agent(SMALL).encoder, SMALL)
    torch.nn.init.zeros_(shadow.linear.weight)
    torch.nn.init.zeros_(shadow.linear.bias)
    shadow.linear.bias.data[0] = np.log(3.0)
    visible = torch.zeros(3, 101, dtype=torch.bool)
    visible[0, 0] = visible[2] = True
    images = LabeledImages(torch.zeros(3, 112, 112, 3, dtype=torch.uint8), visible, torch.tensor([True, True, False]))
    # The first class has probability 3/4 and is there in one of two images; the others have 1/2.
    expected = (100 * np.log(2) - (np.log(0.75) + np.log(0.25)) / 2) / 101
    assert shadow.loss(images).item() == pytest.approx(expected, rel=1e-5)
    assert shadow.loss(replace(images, mask=torch.zeros(3, dtype=torch.bool))) == 0


def steps_of(trainer: Trainer) -> dict[str, list[int]]:
    """The steps that each optimizer has taken of each of its encoder's parameters, without repetitions."""
    its = {"class_play": trainer.shadow.encoder, "class_dynamics": trainer.shadow.encoder}
    counts = {}
    for name, optimizer in trainer.optimizers.items():
        encoder = its.get(name, trainer.agent.encoder)
        counts[name] = sorted({int(optimizer.state[p]["step"]) for p in encoder.parameters() if p in optimizer.state})
    return counts


@pytest.mark.parametrize("config", [EXPLORE, pytest.param(CACHE, marks=pytest.mark.slow)], ids=["explore", "cache"])
def test_the_shadow_takes_as_many_updates_on_the_same_images_and_changes_nothing_of_the_agent(config, monkeypatch):
    images: dict[str, list[torch.Tensor]] = {"agent": [], "shadow": []}
    trainer, kinds, labels = Trainer(config), set(), {}

    def watch(whose: str, encoder: torch.nn.Module) -> None:
        encoder.register_forward_hook(
            lambda _, inputs, __: images[whose].append(inputs[0]) if torch.is_grad_enabled() else None
        )

    def check_labels(kind: str, batch) -> None:
        """Equal images, equal labels: in rollouts, manipulations, hidings and triplets alike."""
        kinds.add((type(batch).__name__, len(getattr(batch, "stages", ()))))
        its = labeled_images(batch)
        for image, visible in zip(its.image[its.mask], its.visible[its.mask], strict=True):
            assert torch.equal(labels.setdefault(image.numpy().tobytes(), visible), visible)
        step(kind, batch)

    step = trainer._shadow_step
    monkeypatch.setattr(trainer, "_shadow_step", check_labels)
    watch("agent", trainer.agent.encoder)
    watch("shadow", trainer.shadow.encoder)
    collector, replay = trainer.start_segment()
    rows = [trainer.update(collector, replay) for _ in range(3)]
    steps = steps_of(trainer)
    assert steps["play"] == steps["class_play"] != [] and steps["dynamics"] == steps["class_dynamics"] != []
    if config == CACHE:
        assert {"om/policy_loss", "oh/policy_loss"} <= set().union(*(row["losses"] for row in rows))
        assert steps["play"][0] > 2 * len(rows), "hidings and manipulations train the encoder too"
    assert len(kinds) == (4 if config == CACHE else 2)
    assert len({tuple(visible.tolist()) for visible in labels.values()}) > 3
    # Hidings are encoded step by step, and the two images of a transition one after the other: sums see no order.
    sums = [torch.stack([image.sum((1, 2, 3)) for image in torch.cat(images[whose]).split(1)]) for whose in images]
    assert torch.equal(*(part.flatten().sort().values for part in sums))
    assert all(np.isfinite(row["losses"]["class_play/loss"]) for row in rows)
    assert rows[-1]["charts"]["class_play/learning_rate"] == config.learning_rate
    assert rows[-1]["charts"]["class_dynamics/learning_rate"] == config.dynamics_learning_rate

    alone = Trainer(replace(config, shadow_classifier=False))
    collector, replay = alone.start_segment()
    for row in rows:
        its = alone.update(collector, replay)["losses"]
        assert its == {name: value for name, value in row["losses"].items() if not name.startswith("class_")}
    for mine, its in zip(trainer.agent.state_dict().values(), alone.agent.state_dict().values(), strict=True):
        assert torch.equal(mine, its)
    assert any(
        not torch.equal(*pair)
        for pair in zip(*(e.parameters() for e in (trainer.shadow.encoder, alone.agent.encoder)), strict=True)
    )
    trainer.close()
    alone.close()


def test_a_shadow_learns_to_classify():
    trainer = Trainer(EXPLORE)
    rollout = trainer.start_segment()[0].collect(8)
    losses = []
    for _ in range(30):
        trainer._shadow_step("play", rollout)
        losses.append(trainer.shadow_means.means()["class_play/loss"].item())
        trainer.shadow_means = MeanMetrics()
    assert losses[-1] < 0.3 * losses[0], losses
    trainer.close()


def train_to_end(run: Run) -> Path:
    try:
        train(run)
    finally:
        run.close()
    return run.folder


def files_of(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*") if file.is_file() and file.name != "progress.json"
    }  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """An uninterrupted run with a shadow."""
    return train_to_end(Run.begin(tmp_path_factory.mktemp("runs") / "trained", EXPLORE))


@pytest.mark.parametrize("config", [EXPLORE, CACHE], ids=["explore", "cache"])
def test_a_resumed_run_equals_an_uninterrupted_one(config, trained, tmp_path):
    folder = trained if config == EXPLORE else train_to_end(Run.begin(tmp_path / "uninterrupted", config))
    again = tmp_path / "again"
    shutil.copytree(folder, again)
    shutil.rmtree(checkpoints(again)[-1])
    train_to_end(Run.open(again))
    files = files_of(checkpoints(folder)[-1])
    assert files_of(checkpoints(again)[-1]) == files and "class/classes.json" in files
    rows = [[json.loads(line)["losses"] for line in (path / "metrics.jsonl").open()] for path in (folder, again)]
    assert rows[0] == rows[1] and "class_dynamics/loss" in rows[0][-1]


def test_a_study_reads_the_shadow_of_a_run_and_of_a_milestone(trained):
    image = torch.randint(0, 256, (2, 224, 224, 3), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    mine, start = load_encoder(f"class@{trained}"), load_encoder(f"class@{trained / 'milestones' / '000000000000'}")
    assert mine.description.name == f"class@{trained}"
    assert mine.description.sha256 != load_encoder(f"ours@{trained}").description.sha256
    # Both start with the same weights.
    first = load_agent(trained / "milestones" / "000000000000")
    assert torch.equal(start(image).sir, first.encoder(resized(image, 112)).sir)
    assert not torch.equal(start(image).sir, mine(image).sir)


def test_a_run_starts_with_the_shadow_of_its_agent_or_is_refused(trained, tmp_path):
    folder = train_to_end(Run.begin(tmp_path / "next", replace(EXPLORE, updates=1), start=trained))
    before, after = (load_encoder(f"class@{path}") for path in (trained, checkpoints(folder)[0]))
    assert before.description.sha256 == after.description.sha256
    plain = Run.begin(tmp_path / "plain", replace(EXPLORE, shadow_classifier=False), start=trained)
    plain.close()
    with pytest.raises(WeightsError, match=r"no encoder trained to classify.*--shadow-classifier"):
        load_encoder(f"class@{plain.folder}")
    with pytest.raises(WeightsError, match="no encoder trained to classify"):
        Run.begin(tmp_path / "refused", EXPLORE, start=plain.folder)
    assert not (tmp_path / "refused").exists()


def test_a_damaged_shadow_is_refused(trained, tmp_path):
    for number, damage in enumerate(("names", "weights", "gone")):
        folder = tmp_path / str(number)
        shutil.copytree(trained, folder)
        path = checkpoints(folder)[-1] / "class"
        if damage == "names":
            (path / "classes.json").write_text(json.dumps(sorted(CLASSES, reverse=True)))
        elif damage == "weights":
            next(path.glob("weights-*")).write_bytes(b"")
        else:
            shutil.rmtree(path)
        with pytest.raises(RunError, match=r"class.*Delete"):
            train_to_end(Run.open(folder))


def test_what_cannot_have_a_shadow_is_refused(tmp_path):
    with pytest.raises(ValueError, match="shadow_classifier"):
        replace(EXPLORE, agent=replace(SMALL, freeze_encoder=True))
    with pytest.raises(ValueError, match="shadow_classifier"):
        replace(EXPLORE, agent=replace(SMALL, encoder="efficientnet-lite0"))
    run = Run.begin(tmp_path / "run", EXPLORE)
    with pytest.raises(ValueError, match="HOGWILD! workers train no shadow_classifier"):
        train_asynchronously(run, 1)
    run.close()
