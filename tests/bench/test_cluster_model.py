"""The model of an update: numbers worked out by hand, and what must always hold."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrubjay.bench.cluster_model import (
    Network,
    Parts,
    average_seconds,
    cost,
    expected_maximum,
    fixed_share,
    predict,
    ring_seconds,
)

NETWORK = Network(bandwidth=1e9, latency=0.01, inner_bandwidth=1e10, inner_latency=0.001, per_node=4)
PARTS = Parts(
    steps=1000, play=4.0, play_std=0.5, play_fixed=0.25, learn=2.0, learn_std=0.1, learn_fixed=0.5, optimizer_steps=4,
    messages=10, megabytes=100,
)  # fmt: skip


def test_a_ring_sends_nearly_everything_twice():
    # Four processes send 2 x 3/4 of 100 MB at 1 GB/s: 0.15 s; two messages of six hops each: 0.12 s.
    assert ring_seconds(100e6, 4, 1e9, 0.01, messages=2) == pytest.approx(0.15 + 0.12)
    assert ring_seconds(100e6, 1, 1e9, 0.01) == 0


def test_nodes_average_within_and_between():
    # 8 in two nodes of 4. Within: 1.5 x 0.1 GB at 10 GB/s, 6 hops. Between: 1 x 0.1 GB at 1 GB/s, 2 hops.
    assert average_seconds(100e6, 8, NETWORK) == pytest.approx(0.015 + 0.006 + 0.1 + 0.02)
    assert average_seconds(100e6, 4, NETWORK) == pytest.approx(0.021), "one node needs no network"


def test_the_largest_of_normal_numbers():
    """1 / sqrt(pi), 3 / (2 sqrt(pi)), and tables of order statistics."""
    known = {1: 0.0, 2: 0.56419, 3: 0.84628, 4: 1.02938, 8: 1.42360, 64: 2.34373}
    assert {count: expected_maximum(count) for count in known} == pytest.approx(known, abs=2e-5)


def test_what_does_not_shrink_with_the_games():
    assert fixed_share([8, 4, 2], [1.0, 0.6, 0.4]) == pytest.approx(0.2), "0.2 s, and 0.1 s a game"
    assert fixed_share([8, 4, 2], [0.8, 0.4, 0.2]) == pytest.approx(0)
    assert fixed_share([8, 4, 2], [0.8, 0.3, 0.0]) == 0, "never less than none"


def test_two_processes_by_hand():
    both = predict(PARTS, 2, NETWORK, "global")
    assert both.play == pytest.approx(4 * (0.25 + 0.75 / 2)) and both.learn == pytest.approx(2 * (0.5 + 0.5 / 2))
    # Playing varies by an eighth of its time, an optimizer step of a quarter of the time by 0.1 / 2.
    assert both.wait == pytest.approx(0.56419 * (2.5 / 8 + 4 * 0.1 / 2 * 1.5 / 2), rel=1e-4)
    assert both.average == pytest.approx(0.1e9 / 1e10 + 10 * 2 * 0.001)
    assert both.update == pytest.approx(both.play + both.learn + both.wait + both.average)
    assert both.steps_per_s == pytest.approx(1000 / both.update) and both.efficiency == pytest.approx(3 / both.update)
    assert both.bottleneck == "small shares"


def test_each_process_with_its_own_batch_by_hand():
    both = predict(PARTS, 2, NETWORK, "process")
    assert (both.play, both.learn) == (4, 2) and both.steps_per_s == pytest.approx(2000 / both.update)
    assert both.wait == pytest.approx(0.56419 * (0.5 + 0.2), rel=1e-4) and both.efficiency == pytest.approx(
        6 / both.update
    )


def test_whatever_costs_most_is_the_bottleneck():
    even = replace(PARTS, play_std=0.0, learn_std=0.0)
    assert predict(even, 4, NETWORK, "process").bottleneck == "compute"
    assert predict(replace(PARTS, play_std=3.0), 4, NETWORK, "process").bottleneck == "stragglers"
    assert predict(replace(even, megabytes=50_000), 8, NETWORK, "process").bottleneck == "network"


def test_processes_compete_for_cores():
    parts = replace(PARTS, cores=1.5)
    assert predict(parts, 2, NETWORK, "process", cores=2).play == pytest.approx(4 * 3 / 2)
    assert predict(parts, 1, NETWORK, "process", cores=2).play == 4


def test_at_once_the_slower_one_counts():
    parts = replace(PARTS, overlap=True, play_std=0.0, learn_std=0.0)
    assert predict(parts, 1, NETWORK, "global").update == 4
    slow = predict(replace(parts, megabytes=40_000), 2, NETWORK, "process")
    assert slow.update == pytest.approx(slow.learn + slow.average) and slow.bottleneck == "network"


def test_days_and_money():
    alone = predict(replace(PARTS, play_std=0.0, learn_std=0.0), 1, NETWORK, "process")
    # 1,000 steps in 6 s are a game of 500 in 3 s: 28,800 a day; a million take 34.72 days, at 48 a day.
    assert cost(alone, 1e6, 500, 2) == {"games_a_day": 28_800, "days": 34.72, "cost": 1667}


positive = st.floats(1e-3, 1e3)
share = st.floats(0, 1)
parts = st.builds(
    Parts, positive, positive, st.floats(0, 10), share, positive, st.floats(0, 10), share, st.integers(1, 100),
    st.integers(0, 1000), st.floats(0, 1e5), st.floats(0, 8), st.booleans(),
)  # fmt: skip
networks = st.builds(
    Network, st.floats(1e6, 1e12), st.floats(0, 1e-2), st.floats(1e6, 1e12), st.floats(0, 1e-2), st.integers(1, 16)
)
counts = st.integers(1, 100)
rules = st.sampled_from(["global", "process"])


@settings(deadline=None)
@given(parts, counts, networks, rules, st.floats(1, 100))
def test_a_better_network_is_never_slower(parts, count, network, rule, factor):
    now = predict(parts, count, network, rule).update
    assert predict(parts, count, replace(network, bandwidth=network.bandwidth * factor), rule).update <= now
    assert predict(parts, count, replace(network, inner_bandwidth=network.inner_bandwidth * factor), rule).update <= now
    assert predict(parts, count, replace(network, latency=network.latency / factor), rule).update <= now


@settings(deadline=None)
@given(parts, counts, networks, rules)
def test_nothing_is_faster_than_ideal_and_less_noise_helps(parts, count, network, rule):
    found = predict(parts, count, network, rule)
    assert 0 < found.efficiency <= 1 + 1e-9 and found.wait >= 0 and found.average >= 0
    steady = predict(replace(parts, play_std=0.0, learn_std=0.0), count, network, rule)
    assert steady.update <= found.update * (1 + 1e-9)
    assert predict(replace(parts, megabytes=2 * parts.megabytes), count, network, rule).update >= found.update


@settings(deadline=None)
@given(parts, networks, rules)
def test_one_process_needs_nobody(parts, network, rule):
    alone = predict(parts, 1, network, rule)
    assert alone.average == 0 and alone.wait == pytest.approx(0, abs=1e-6)
    assert alone.efficiency == pytest.approx(1, abs=1e-6) and alone.bottleneck == "compute"
