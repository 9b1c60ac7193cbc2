"""Actors and critics of all stages in one pass."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Categorical

from scrubjay import tree
from scrubjay.agent.config import PAPER, SMALL, AgentConfig
from scrubjay.agent.heads import CLAIM, OPEN_AT_ACTIONS, Decision, Heads, check_stage
from scrubjay.agent.memory import DynamicRepresentation
from scrubjay.game.actions import ALLOWED, NAMES, PLACE_ACTIONS, Stage, action_index
from scrubjay.game.observation import Observation
from scrubjay.training import losses

COUNTS = {Stage.EM: 57, Stage.OH: 200, Stage.OM: 62, Stage.S: 58}


def random_dirs(*lead: int, seed: int = 0) -> DynamicRepresentation:
    draw = torch.Generator().manual_seed(seed)
    grid = torch.randn(*lead, SMALL.gru_channels, 7, 7, generator=draw)
    return DynamicRepresentation(torch.randn(*lead, SMALL.lstm, generator=draw), grid, grid[..., 0, :, :])


def decide(heads: Heads, dirs: DynamicRepresentation, stage: torch.Tensor) -> Decision:
    """The decision for DIRs, with the SIRs and observations of `make_inputs`."""
    return heads(dirs, *make_inputs(stage, dirs.flat.shape[-2]))


def make_inputs(stage: torch.Tensor, games: int) -> tuple[torch.Tensor, Observation]:
    """SIRs and observations at stages (..., B); each game has its own goal object and target."""
    sir = torch.randn(games, SMALL.sir_channels, 7, 7, generator=torch.Generator().manual_seed(9))
    number = torch.arange(games)
    goal, target = number * 3 % 5, torch.stack([number % 3, number * 2 % 7, number * 5 % 7], -1)
    lead = (*stage.shape[:-1], games)
    nothing = torch.zeros(lead, dtype=torch.long)
    observation = Observation(
        image=nothing, last_action=nothing, last_success=nothing, standing=nothing, goal=goal.expand(lead), stage=stage,
        place=nothing, landed=nothing, target=target.expand(*lead, 3), time_left=torch.ones(lead),
    )  # fmt: skip
    return sir.expand(*lead, -1, -1, -1), observation


def make_heads(config: AgentConfig = SMALL) -> Heads:
    torch.manual_seed(0)
    heads = Heads(config)
    for parameter in heads.parameters():
        nn.init.normal_(parameter, std=0.2)
    for number, head in enumerate(heads.stages.values()):
        head.return_norm.mean.fill_(number - 1.5), head.return_norm.variance.fill_((number + 2) ** 2)
    return heads


def test_the_papers_shapes():
    heads = Heads(PAPER)
    for stage, count in COUNTS.items():
        head = heads.get_submodule(f"stages.{stage.name}")
        assert head.mlp[0].weight.shape == (512, 512)
        assert head.actor.weight.shape == (count, 512) and head.critic.weight.shape == (1, 512)
        assert head.cell_filters.weight.shape == (4 if stage == Stage.OH else 1, 128 + 256, 1, 1)
        assert (head.goal_filters is not None) == (stage == Stage.S)
        assert (head.target_embedding is not None) == (stage == Stage.OM)
    assert heads.get_submodule("stages.S").goal_filters.weight.shape == (5, 128 + 256, 1, 1)
    assert heads.get_submodule("stages.OM").target_embedding.weight.shape == (3 + 7 + 7, 512)


def test_every_game_uses_its_stages_head():
    heads, dirs = make_heads(), random_dirs(10)
    stage = torch.arange(10) % 5
    sir, observation = make_inputs(stage, 10)
    decision = heads(dirs, sir, observation)
    assert decision.logits.shape == (10, 219) and decision.value.shape == (10,)
    for b in range(10):
        which = Stage(b % 5)
        if which == Stage.PS:
            assert not decision.logits[b].any() and decision.value[b] == 0 and not decision.openable[b].any()
            continue
        head = heads.get_submodule(f"stages.{which.name}")
        flat = dirs.flat[b]
        if which == Stage.OM:
            # A target is the sum of embeddings of its modality, row and column.
            modality, row, column = observation.target[b]
            vectors = head.target_embedding.weight
            flat = flat + vectors[modality] + vectors[3 + row] + vectors[3 + 7 + column]
        hidden = torch.relu(head.mlp[0](flat))
        expected = dict(zip(np.flatnonzero(ALLOWED[which]), head.actor(hidden), strict=True))
        odds = torch.zeros(7, 7)
        for row, column in np.ndindex(7, 7):
            # Cell filters score OpenAt, and in OH PlaceAt by modality, at each cell.
            names = [f"OpenAt|{row + 1},{column + 1}"]
            names += (
                [f"PlaceAt|{modality},{row + 1},{column + 1}" for modality in range(3)] if which == Stage.OH else []
            )
            cell = torch.cat([sir[b, :, row, column], dirs.grid[b, :, row, column]])
            odds[row, column] = head.cell_filters.weight[0, :, 0, 0] @ cell + head.open_logit
            for name, logit in zip(names, head.cell_filters.weight[:, :, 0, 0] @ cell, strict=True):
                expected[action_index(name)] = expected[action_index(name)] + logit
        if which == Stage.S:
            # The mean of all cells' odds that they show the game's goal object.
            cells = torch.cat([sir[b], dirs.grid[b]]).flatten(1)
            shown = (head.goal_filters.weight[observation.goal[b], :, 0, 0] @ cells).exp().mean()
            expected[action_index("ClaimVisible")] = expected[action_index("ClaimVisible")] + shown.log()
            torch.testing.assert_close(decision.visible[b], shown.log())
        else:
            assert decision.visible[b] == 0
        torch.testing.assert_close(decision.logits[b, ALLOWED[which]], torch.stack(list(expected.values())))
        torch.testing.assert_close(decision.openable[b], odds)
        # Returns have mean -1.5 and deviation 2 in E&M, -0.5 and 3 in OH, and so on.
        mean, deviation = {Stage.EM: (-1.5, 2), Stage.OH: (-0.5, 3), Stage.OM: (0.5, 4), Stage.S: (1.5, 5)}[which]
        torch.testing.assert_close(decision.value[b], deviation * head.critic(hidden)[0] + mean)


def test_only_a_stages_actions_have_probability():
    decision = decide(make_heads(), random_dirs(10), torch.arange(10) % 5)
    probabilities = decision.logits.softmax(-1)
    for b in range(10):
        allowed = torch.from_numpy(ALLOWED[b % 5])
        if b % 5 == Stage.PS:
            torch.testing.assert_close(probabilities[b], torch.full((219,), 1 / 219))
        else:
            assert torch.equal(probabilities[b] > 0, allowed)
            assert torch.equal(decision.logits[b] == -torch.inf, ~allowed)
    assert Categorical(logits=decision.logits).entropy().isfinite().all()


def test_a_sequence_is_decided_like_its_steps():
    heads, dirs, stage = make_heads(), random_dirs(4, 5), torch.arange(20).view(4, 5) % 5
    together = decide(heads, dirs, stage)
    assert together.hittable.shape == (4, 5, 3, 7, 7)
    for t in range(4):
        alone = decide(heads, tree.index(dirs, t), stage[t])
        torch.testing.assert_close(vars(alone), vars(tree.index(together, t)))


def test_the_heads_compile_as_one_graph():
    heads, dirs, stage = make_heads(), random_dirs(5), torch.arange(5)
    torch._dynamo.reset()
    compiled = torch.compile(heads.forward, backend="eager", fullgraph=True)
    torch.testing.assert_close(vars(compiled(dirs, *make_inputs(stage, 5))), vars(decide(heads, dirs, stage)))


def test_gradients_reach_only_the_heads_of_the_stages_in_the_batch():
    heads, stage = make_heads(), torch.tensor([Stage.S, Stage.PS, Stage.S])
    decision = decide(heads, random_dirs(3), stage)
    loss = -Categorical(logits=decision.logits).log_prob(torch.tensor([0, 0, len(NAMES) - 1])).sum()
    (loss + decision.value.sum() + decision.openable.sum()).backward()
    for name, parameter in heads.named_parameters():
        gradient = parameter.grad
        assert gradient is None or gradient.isfinite().all()
        reached = gradient is not None and bool(gradient.any())
        assert reached == name.startswith("stages.S."), name


def test_hittable_is_the_sum_of_cell_and_global_logits():
    heads, dirs = make_heads(), random_dirs(2)
    stage = torch.tensor([Stage.OM, Stage.OH])
    here = decide(heads, dirs, stage).hittable
    moved = decide(heads, DynamicRepresentation(dirs.flat, dirs.grid.roll(1, -1), dirs.change), stage).hittable
    cells = nn.functional.conv2d(dirs.grid, heads.hittable_cells.weight, heads.hittable_cells.bias)
    torch.testing.assert_close(moved - here, cells.roll(1, -1) - cells, atol=1e-4, rtol=1e-4)
    hidden = heads.get_submodule("stages.OM").mlp(dirs.flat)
    torch.testing.assert_close(here - cells, heads.hittable_global(hidden).view(2, 3, 7, 7), atol=1e-4, rtol=1e-4)


def test_openability_with_a_filter_of_its_own_is_read_by_the_actor_and_learned_from_tries_alone():
    config, dirs, stage = replace(SMALL, separate_openable_head=True), random_dirs(3), torch.tensor([0, 3, 4])
    heads, plain = make_heads(config), make_heads(config)
    decision = decide(heads, dirs, stage)
    sir, _ = make_inputs(stage, 3)
    cells = torch.cat([sir, dirs.grid], -3)
    for b, which in enumerate((Stage.EM, Stage.OM, Stage.S)):
        head = heads[which]
        evidence = nn.functional.conv2d(cells[b], head.openable_filter.weight)[0]
        torch.testing.assert_close(decision.openable[b], evidence + head.open_logit)
        # The actor gets the evidence without the prior, on top of its own filter.
        nn.init.zeros_(plain[which].openable_filter.weight)
        without = decide(plain, dirs, stage).logits[b, OPEN_AT_ACTIONS]
        torch.testing.assert_close(decision.logits[b, OPEN_AT_ACTIONS] - without, evidence.flatten())
    Categorical(logits=decision.logits).log_prob(torch.tensor(OPEN_AT_ACTIONS[:3])).sum().backward(retain_graph=True)
    head = heads[Stage.EM]
    assert head.openable_filter.weight.grad is None and head.open_logit.grad is None
    assert head.cell_filters.weight.grad.any()
    heads.zero_grad()
    action = torch.from_numpy(OPEN_AT_ACTIONS[:3])[None]
    yes = torch.ones(1, 3, dtype=torch.bool)
    losses.openable(decision.openable[None], action, yes, yes).backward()
    assert head.openable_filter.weight.grad.any() and head.open_logit.grad < 0
    assert head.cell_filters.weight.grad is None or not head.cell_filters.weight.grad.any()
    assert any(part is head.openable_filter for part in head.output_layers)
    assert heads[Stage.OH].openable_filter is None, "OH has no openable loss"


def test_a_deeper_filter_of_openability_is_a_network_at_each_cell():
    heads = Heads(replace(SMALL, separate_openable_head=True, openable_hidden=5))
    head, cells = heads[Stage.EM], torch.randn(4, SMALL.sir_channels + SMALL.gru_channels, 7, 7)
    assert not head.openable_filter(cells).any(), "untrained it says the base rate"
    first, _, last = head.openable_filter
    nn.init.normal_(last.weight)
    pixel = (first.weight[..., 0, 0] @ cells[2, :, 3, 6] + first.bias).relu() @ last.weight[0, :, 0, 0]
    torch.testing.assert_close(head.openable_filter(cells)[2, 0, 3, 6], pixel)


def test_the_hand_is_read_from_the_cells_of_the_memory_alone():
    heads, dirs = Heads(replace(SMALL, hand_head=True)), random_dirs(2)
    decision = decide(heads, dirs, torch.tensor([Stage.OM, Stage.S]))
    expected = heads.hand.weight[0, :, 0, 0] @ dirs.grid[1, :, 4, 2] + heads.hand.bias[0]
    torch.testing.assert_close(decision.hand[1, 4, 2], expected)
    assert decision.hand.shape == (2, 7, 7)
    assert not decide(Heads(SMALL), dirs, torch.tensor([Stage.OM, Stage.S])).hand.any()


def test_hiders_know_what_opens_and_where_a_manipulation_would_succeed():
    plain, informed = make_heads(), make_heads(replace(SMALL, hiding_priors=True))
    dirs, stages = random_dirs(4), torch.tensor([Stage.EM, Stage.OH, Stage.OM, Stage.S])
    before, after = (decide(heads, dirs, stages) for heads in (plain, informed))
    others = stages != Stage.OH
    assert torch.equal(after.logits[others], before.logits[others]), "only hiders are told"
    explorer = decide(plain, dirs, torch.tensor([Stage.EM] * 4)).openable[1]
    told = after.logits[1] - before.logits[1]
    torch.testing.assert_close(told[OPEN_AT_ACTIONS], explorer.flatten())
    chance = before.hittable[1].sigmoid().flatten()
    torch.testing.assert_close(told[PLACE_ACTIONS].exp(), chance / chance.mean())
    rest = np.setdiff1d(np.flatnonzero(ALLOWED[Stage.OH]), [*OPEN_AT_ACTIONS, *PLACE_ACTIONS])
    assert not told[rest].any()
    after.logits[1, PLACE_ACTIONS].sum().backward()
    assert informed.hittable_cells.weight.grad is None, "the actor does not move what it is told"


@pytest.mark.parametrize("separate", [False, True])
def test_with_the_prior_open_at_starts_at_its_base_rate(separate):
    config = replace(SMALL, open_at_prior=True, separate_openable_head=separate)
    heads, dirs = Heads(config), random_dirs(4)
    decision = decide(heads, dirs, torch.tensor([Stage.EM, Stage.OH, Stage.OM, Stage.S]))
    opening = decision.logits[:, OPEN_AT_ACTIONS]
    assert (opening[[0, 2, 3]] + 4).abs().max() < 0.1 and opening[1].abs().max() < 0.1, "OH has no openable loss"
    opening.sum().backward()
    assert heads[Stage.EM].open_logit.grad is None, "the actor does not move the prior"


def test_an_untrained_filter_of_openability_says_the_base_rate_and_leaves_the_policy():
    for config in (SMALL, replace(SMALL, separate_openable_head=True)):
        decision = decide(Heads(config), random_dirs(1), torch.tensor([Stage.EM]))
        assert (decision.openable == -4).all()
        assert decision.logits[:, OPEN_AT_ACTIONS].abs().max() < 0.1, "nearly uniform"


def test_heads_that_do_not_read_cells_depend_on_nothing_but_the_flat_dir():
    config = replace(SMALL, heads_read_cells=False, running_norms=False)
    torch.manual_seed(0)
    heads = Heads(config)
    for parameter in heads.parameters():
        nn.init.normal_(parameter, std=0.2)
    for name, head in heads.stages.items():
        parts = {part.partition(".")[0] for part, _ in head.named_parameters()}
        assert parts == {"mlp", "actor", "critic"} and len(head.output_layers) == 2, name
        assert not head.state_dict().keys() - dict(head.named_parameters()).keys(), "no statistics"
    dirs, stage = random_dirs(10), torch.arange(10) % 5
    sir, observation = make_inputs(stage, 10)
    decision = heads(dirs, sir, observation)
    for b in range(10):
        if stage[b] != Stage.PS:
            head = heads[Stage(int(stage[b]))]
            hidden = torch.relu(head.mlp[0](dirs.flat[b]))
            torch.testing.assert_close(decision.logits[b, ALLOWED[stage[b]]], head.actor(hidden))
            torch.testing.assert_close(decision.value[b], head.critic(hidden)[0])
    other = heads(
        replace(dirs, grid=dirs.grid + 1, change=dirs.change + 1), sir * 2 + 1,
        replace(
            observation, goal=(observation.goal + 1) % 5, target=(observation.target + 1) % 3,
            last_action=observation.goal, standing=observation.goal, landed=observation.goal,
            time_left=observation.time_left / 2,
        ),
    )  # fmt: skip
    assert torch.equal(other.logits, decision.logits) and torch.equal(other.value, decision.value)
    assert not decision.openable.any() and not torch.equal(other.hittable, decision.hittable)


def test_only_critics_see_the_time_and_only_if_told_to():
    dirs, stage = random_dirs(4), torch.tensor([0, 2, 3, 4])
    sir, observation = make_inputs(stage, 4)
    late = replace(observation, time_left=torch.tensor([0.5, 0.25, 0.1, 0.0]))
    for config, sees in ((SMALL, False), (replace(SMALL, critic_sees_time=True), True)):
        heads = make_heads(config)
        before, after = heads(dirs, sir, observation), heads(dirs, sir, late)
        for name in ("logits", "hittable", "openable"):
            assert torch.equal(getattr(before, name), getattr(after, name)), name
        assert torch.equal(before.value, after.value) != sees
        assert (before.value != after.value).all() == sees
    head = heads[Stage.EM]
    hidden = head.critic_hidden(head.mlp(dirs.flat[0])) + head.time_embedding(torch.tensor([0.5]))
    torch.testing.assert_close(after.value[0], 2 * head.critic(hidden.relu())[0] - 1.5)
    after.value.sum().backward()
    assert head.time_embedding.weight.grad.any() and head.mlp[0].weight.grad.any()
    assert head.actor.weight.grad is None


def test_a_critic_that_sees_the_time_learns_what_is_left_to_earn():
    """The same state at all times, worth what 200 steps at gamma 0.99 still bring at 1 each: 5 to 87."""
    torch.manual_seed(0)
    left = torch.arange(1, 41) / 40
    worth = (1 - 0.99 ** (200 * left)) / 0.01
    dirs = tree.map(lambda tensor: tensor.expand(40, *tensor.shape[1:]), random_dirs(1))
    sir, observation = make_inputs(torch.zeros(40, dtype=torch.long), 40)
    errors = {}
    for sees in (False, True):
        heads = Heads(replace(SMALL, critic_sees_time=sees))
        heads[Stage.EM].return_norm.mean.copy_(worth.mean()), heads[Stage.EM].return_norm.variance.copy_(worth.var())
        optimizer = torch.optim.Adam(heads[Stage.EM].parameters(), 3e-3)
        for _ in range(150):
            error = (heads(dirs, sir, replace(observation, time_left=left)).value - worth).square().mean()
            optimizer.zero_grad()
            error.backward()
            optimizer.step()
        errors[sees] = error.item()
    assert errors[True] < 0.05 * worth.var().item() and errors[False] > 0.9 * worth.var().item(), errors


def test_a_stage_that_copies_anothers_policy_acts_like_it_and_keeps_its_critic_and_its_own_actions():
    config = replace(SMALL, separate_openable_head=True, openable_hidden=8, open_at_prior=True)
    heads = make_heads(config)
    dirs, both = random_dirs(3), ALLOWED[Stage.EM] & ALLOWED[Stage.S]
    explore, seek = (make_inputs(torch.full((3,), int(stage)), 3) for stage in (Stage.EM, Stage.S))
    before = heads(dirs, *seek)
    heads[Stage.S].copy_policy(heads[Stage.EM])
    exploring, seeking = heads(dirs, *explore), heads(dirs, *seek)
    assert not torch.equal(before.logits[:, both], exploring.logits[:, both])
    assert torch.equal(before.exploring, exploring.logits) and not before.exploring.requires_grad
    torch.testing.assert_close(seeking.logits[:, both], exploring.logits[:, both])
    torch.testing.assert_close(seeking.openable, exploring.openable)
    assert seeking.logits[:, CLAIM].isfinite().all() and not torch.equal(seeking.value, exploring.value)


@pytest.mark.parametrize("unknown", [-1, 5])
def test_an_unknown_stage_is_an_error(unknown):
    with pytest.raises(ValueError, match=f"stage: {unknown} is none of EM 0, PS 1, OH 2, OM 3, S 4"):
        decide(make_heads(), random_dirs(2), torch.tensor([0, unknown]))


def test_stages_of_the_wrong_shape_or_type_are_errors():
    with pytest.raises(ValueError, match=r"stage: expected shape \(2,\), got \(3,\)"):
        decide(make_heads(), random_dirs(2), torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match="float"):
        check_stage(torch.zeros(3))


def test_the_heads_learn_actions_values_and_hittable_targets():
    torch.manual_seed(0)
    heads, dirs, stage = Heads(SMALL), random_dirs(20), torch.tensor([0, 2, 3, 4]).repeat(5)
    allowed = torch.from_numpy(ALLOWED)[stage]
    action = torch.stack([row.nonzero()[7 * b % int(row.sum())][0] for b, row in enumerate(allowed)])
    value, hit = torch.randn(20), torch.rand(20, 3, 7, 7) < 0.5
    optimizer = torch.optim.Adam(heads.parameters(), 3e-3)
    for _ in range(150):
        decision = decide(heads, dirs, stage)
        loss = nn.functional.cross_entropy(decision.logits, action) + (decision.value - value).square().mean()
        loss = loss + nn.functional.binary_cross_entropy_with_logits(decision.hittable, hit.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.equal(decision.logits.argmax(1), action)
    assert (decision.value - value).abs().max() < 0.1
    assert ((decision.hittable > 0) == hit).float().mean() > 0.95
