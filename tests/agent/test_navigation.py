"""The navigation baseline: a convolutional GRU alone, pooled by learned weights, in single stages."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import torch as safetensors
from torch import nn

from scrubjay import tree
from scrubjay.agent import weights
from scrubjay.agent.agent import Agent, load_agent, save_agent
from scrubjay.agent.config import PAPER, SMALL
from scrubjay.agent.metric_map import gru_cell
from scrubjay.agent.navigation import NavigationMemory
from scrubjay.game.actions import NAMES, Stage
from scrubjay.game.cache import CacheGame
from scrubjay.game.episode import EpisodeSpec, RandomEpisodes
from scrubjay.game.observation import NO_ACTION, Observation
from scrubjay.sim.world import World
from scrubjay.study.encoders import load_encoder
from scrubjay.training.agent_player import AgentPlayer, load_player
from scrubjay.training.config import PRESETS, TrainConfig
from scrubjay.training.run import Run, checkpoints
from scrubjay.training.train import train
from scrubjay.viz.agent_trace import trace_agent

NAVIGATION = replace(SMALL, memory="navigation", heads_read_cells=False)
EM, S = int(Stage.EM), int(Stage.S)


def observations(stages: list[list[int]], seed: int = 0, size: int = 1) -> Observation:
    """(T, B) observations with random actions, places and images."""
    generator, shape = torch.Generator().manual_seed(seed), (len(stages), len(stages[0]))

    def below(most: int, *more: int, kind: torch.dtype = torch.int64) -> torch.Tensor:
        return torch.randint(most, (*shape, *more), generator=generator).to(kind)

    return Observation(
        image=below(256, size, size, 3, kind=torch.uint8), last_action=below(len(NAMES)),
        last_success=below(2, kind=torch.bool), standing=below(2, kind=torch.bool), goal=below(5),
        stage=torch.tensor(stages), place=below(4, 4), landed=torch.full(shape, NO_ACTION),
        target=torch.zeros(*shape, 3, dtype=torch.int64), time_left=torch.ones(shape),
    )  # fmt: skip


def make_memory() -> NavigationMemory:
    torch.manual_seed(0)
    memory = NavigationMemory(NAVIGATION).double()
    nn.init.normal_(memory.pool.weight)
    return memory


def sirs(steps: int, games: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sir = torch.rand(steps, games, NAVIGATION.sir_channels, 7, 7, generator=generator, dtype=torch.float64)
    return sir, sir.mean((-1, -2))


def test_the_papers_shapes():
    config = PRESETS["navigate"].agent
    assert config == replace(PAPER, memory="navigation", heads_read_cells=False) and config.dir_length == 256
    with torch.device("meta"):
        agent = Agent(config)
        assert agent.initial_state(2).recurrent.grid.shape == (2, 257, 7, 7)
    assert agent.heads[Stage.S].actor.in_features == agent.heads[Stage.S].critic.in_features == 256
    names = {name.split(".")[0] for name in agent.state_dict()}
    assert "perspective" not in names and "dynamics" not in names
    assert not [name for name in agent.state_dict() if "lstm" in name or "map" in name]
    full = sum(p.numel() for p in Agent(replace(PAPER, heads_read_cells=False)).parameters())
    assert sum(p.numel() for p in agent.parameters()) < 0.6 * full


def test_a_step_is_a_convolutional_gru_and_a_weighted_mean_of_its_cells():
    memory = make_memory()
    with torch.no_grad():
        memory.sir_norm.mean.normal_(), memory.sir_norm.variance.uniform_(0.5, 2)
    observation, (sir, pooled) = observations([[S, S, EM]] * 2), sirs(2, 3)
    is_first = torch.zeros(2, 3, dtype=torch.bool)
    is_first[1, 0] = True
    with torch.no_grad():
        dirs, after = memory.sequence(memory.initial_state(3), sir, pooled, observation, is_first)
    memory.requires_grad_(False)
    grid = torch.zeros(3, NAVIGATION.gru_channels + 1, 7, 7, dtype=torch.float64)
    for t in range(2):
        grid = grid * ~is_first[t, :, None, None, None]
        vector = memory.embedding.vector(tree.index(observation, t))[..., None, None].expand(-1, -1, 7, 7)
        kernel = memory.embedding_conv.taps.weight.unflatten(0, (-1, 3, 3)).permute(0, 3, 1, 2)
        target = torch.zeros(3, NAVIGATION.target_embedding, 7, 7, dtype=torch.float64)
        inputs = torch.cat([memory.sir_norm(sir[t], dim=1), target, vector], 1)
        weight = torch.cat([memory.sir_conv.weight, kernel], 1)
        driven = nn.functional.conv2d(inputs, weight, memory.sir_conv.bias, padding=1)
        grid = gru_cell(driven, memory.grid_conv(grid), grid)
        torch.testing.assert_close(dirs.grid[t], grid[:, :-1])
        torch.testing.assert_close(dirs.change[t], grid[:, -1])
        for b in range(3):
            logits = [float(memory.pool.weight[0, :, 0, 0] @ grid[b, :-1, i, j]) for i in range(7) for j in range(7)]
            share = np.exp(logits) / np.exp(logits).sum()
            mean = sum(w * grid[b, :-1, n // 7, n % 7] for n, w in enumerate(share))
            torch.testing.assert_close(dirs.flat[t, b], mean)
    torch.testing.assert_close(after.recurrent.grid, grid)
    assert after.stage.tolist() == [S, S, EM]


def test_cells_weigh_the_same_before_training():
    memory = NavigationMemory(NAVIGATION)
    cells = torch.randn(2, 49, NAVIGATION.gru_channels)
    torch.testing.assert_close(memory.pooled(cells), cells.mean(1))


def test_single_steps_equal_a_sequence_through_resets():
    memory = make_memory()
    stages = [[S, EM, S], [S, EM, S], [S, S, EM], [S, S, EM]]
    observation, inputs = observations(stages), sirs(4, 3)
    is_first = torch.tensor([[1, 1, 1], [0, 0, 0], [0, 0, 0], [1, 0, 0]]).bool()
    together, after = memory.sequence(memory.initial_state(3), *inputs, observation, is_first)
    state = memory.initial_state(3)
    for t in range(4):
        dirs, state = memory.step(state, *tree.index(inputs, t), tree.index(observation, t), is_first[t])
        for mine, its in zip(tree.leaves(dirs), tree.leaves(tree.index(together, t)), strict=True):
            torch.testing.assert_close(mine, its)
    for mine, its in zip(tree.leaves(state), tree.leaves(after), strict=True):
        torch.testing.assert_close(mine, its)


def test_gradients_of_the_policy_reach_the_pool_and_the_encoder():
    torch.manual_seed(0)
    agent = Agent(NAVIGATION)
    observation = observations([[S, S]] * 3, size=112)
    step = agent.evaluate(agent.initial_state(2), observation, torch.zeros(3, 2, dtype=torch.bool))
    (step.decision.logits[..., 0].sum() + step.decision.value.sum()).backward()
    for part in (agent.memory.pool, agent.memory.grid_conv, agent.encoder.stem, agent.memory.embedding.goal):
        assert part.weight.grad.abs().max() > 0
    features = step.features()
    assert features["dir"].shape == (3, 2, SMALL.gru_channels) and features["dir_grid"].shape[2:] == (64, 7, 7)


def test_weights_are_written_and_read_and_studies_find_the_encoder(tmp_path):
    agent = Agent(NAVIGATION)
    save_agent(agent, tmp_path)
    again = load_agent(tmp_path)
    assert again.config == NAVIGATION and weights.load(tmp_path)[0].memory == "navigation"
    assert all(torch.equal(a, b) for a, b in zip(agent.parameters(), again.parameters(), strict=True))
    assert load_encoder(f"ours@{tmp_path}").description.channels == SMALL.sir_channels


def test_a_navigation_agent_seeks_and_plays_no_whole_games(tmp_path):
    agent = Agent(NAVIGATION)
    save_agent(agent, tmp_path)
    with World(["FloorPlan401"], 2, size=112) as world:
        whole = CacheGame(world, RandomEpisodes(3))
        with pytest.raises(ValueError, match="a navigation agent has no map"):
            AgentPlayer(agent)(whole, np.ones(2, bool))

        def seek(world: World, number: int) -> EpisodeSpec:
            spec = RandomEpisodes(0)(world, number)
            return replace(spec, first=Stage.S, last=Stage.S, pose=(*world.reachable[0].positions[0], 1.0, 1, 0, 0, 0))

        game, player = CacheGame(world, seek), load_player(tmp_path)
        for _ in range(3):
            assert len(game.step(*player(game, np.ones(2, bool))).success) == 2
    with pytest.raises(ValueError, match="a navigation agent has no map"):
        trace_agent(agent, "FloorPlan401", "Cup")
    with pytest.raises(ValueError, match="a navigation agent has no map"):
        agent.choose_place(agent.initial_state(1).metric_map, torch.zeros(1, 4, dtype=torch.int64))


def test_configs_that_a_navigation_agent_cannot_train_are_refused():
    with pytest.raises(ValueError, match="a navigation agent has no map"):
        replace(PRESETS["navigate"], task="cache")
    with pytest.raises(ValueError, match="replay_batches: a navigation agent has no visual dynamics"):
        replace(PRESETS["navigate"], replay_batches=1)
    config = TrainConfig.preset("navigate", numbers="paper")
    assert config.agent.memory == "navigation" and config.difficulties == ("easy", "medium")


def test_a_run_trains_and_resumes_exactly(tmp_path):
    config = TrainConfig.preset(
        "demo", agent=NAVIGATION, objective=PRESETS["navigate"].objective, scenes=("FloorPlan401",), copies=2,
        unroll_length=4, minibatch_games=2, updates=4, checkpoint_interval=2, replay_batches=0,
    )  # fmt: skip
    files = []
    for number in range(2):
        folder = tmp_path / str(number)
        if number:
            shutil.copytree(tmp_path / "0", folder)
            shutil.rmtree(checkpoints(folder)[-1])
        run = Run.open(folder) if number else Run.begin(folder, config)
        train(run)
        run.close()
        last = checkpoints(folder)[-1]
        files.append({path.name: path.read_bytes() for path in last.iterdir() if path.name != "progress.json"})
    assert files[0] == files[1]
    before, after = (load_agent(path) for path in checkpoints(tmp_path / "0"))
    assert not torch.equal(before.memory.pool.weight, after.memory.pool.weight) and before.memory.pool.weight.any()
    assert {name.split(".")[0] for name in safetensors.load(files[0]["optimizers.safetensors"])} == {"play"}
