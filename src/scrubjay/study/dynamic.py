"""The dynamic experiments: what agents remember, read out of their DIRs, beside all baselines (F.2).

A study is a pure function of data, agents, encoders and scale. Features and predictions are files that are named after
all they depend on, so that an interrupted study continues where it stopped, and a new agent only adds its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from scrubjay.agent.agent import Agent
from scrubjay.errors import DataError, ProbeError
from scrubjay.files import write_atomically
from scrubjay.study.dynamic_experiments import EXPERIMENTS, SHUFFLED, Examples, Experiment
from scrubjay.study.dynamic_probe import (
    REPETITIONS,
    SIZES,
    Predictions,
    Probes,
    Score,
    digest_path,
    draw_repetitions,
    mean_score,
)
from scrubjay.study.encoders import StudyEncoder, agent_encoder
from scrubjay.study.feature_files import features_files, features_path
from scrubjay.study.result_table import table_text
from scrubjay.study.rotation_odds import OddsRow, TurningOdds, odds_text, turning_back
from scrubjay.study.sequences import SequenceData
from scrubjay.study.sources import (
    STACK,
    DynamicSource,
    ForwardSteps,
    ImageSource,
    Source,
    untrained_sources,
)
from scrubjay.study.weight_files import sha256_of
from scrubjay.workers.base import HERE, Workers

FIELDS = (
    "experiment", "source", "size", "step", "accuracy", "low", "high", "balanced", "difference", "difference_low",
    "difference_high", "tested", "repetitions",
)  # fmt: skip
"""Columns of dynamic.csv. `step`: of examples so many steps after the object was seen alone. `accuracy` is balanced in
tracking; `balanced` always is. `difference` is to the first agent, `tested` how many examples a repetition tests."""
UNTRAINED_NAME = "Rand."
"""Of the untrained networks, as the paper has it."""
Row = dict[str, str | int | float]
Progress = Callable[[int, int, str], None]
"""Takes how much is done, of how much, and what is being done in words."""


@dataclass(frozen=True)
class DynamicScale:
    """How much a study does."""

    sizes: tuple[int, ...] = SIZES
    """Training examples."""
    repetitions: int = REPETITIONS


SCALES = {"paper": DynamicScale(), "mini": DynamicScale((20, 60), 4)}


@dataclass(frozen=True)
class Result:
    """What a study found."""

    rows: list[Row]
    odds: list[OddsRow]
    predictions: Mapping[str, tuple[Examples, Mapping[str, Sequence[Predictions]]]]
    """By experiment: its examples, and each source's predictions, one for each of its networks."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Experiments whose examples cannot be probed, with the reason."""


class DynamicStudy:
    """Probes of several agents and encoders; results are in a folder."""

    def __init__(
        self,
        data: Mapping[str, SequenceData],
        agents: Mapping[str, Agent],
        encoders: Sequence[StudyEncoder],
        out: Path,
        scale: DynamicScale = SCALES["paper"],
        device: str = "cpu",
    ) -> None:
        """`data` are by experiment, agents by name; others are compared with the first agent."""
        if not agents or not data:
            raise DataError("a study needs at least one agent, and the data of at least one experiment")
        if unknown := set(data) - {one.data for one in EXPERIMENTS.values()}:
            raise DataError(f"unknown data {min(unknown)}; there are contained, tracking, rotation, space")
        self.data, self.agents, self.encoders, self.out = data, dict(agents), list(encoders), Path(out)
        self.scale, self.device = scale, device

    def run(self, progress: Progress = lambda done, total, what: None, workers: Workers = HERE) -> Result:
        """Computes what is missing; writes dynamic.csv, agents.json, encoders.json and, from rotation, odds.csv."""
        self.compute_features(progress, workers)
        return self.fit(progress, workers)

    def compute_features(
        self, progress: Progress = lambda done, total, what: None, workers: Workers = HERE
    ) -> list[Path]:
        """The files of all features, and of rotation's log-odds: what needs images, and gains from a GPU.

        Features from which everything was predicted before are not computed again if they are gone. `progress` is told
        of sequences, and in words of what is done. Workers read the folder of data, which all of them must see.
        """
        todo: dict[tuple[str, str], tuple[str, Examples, list[Source]]] = {}
        for one in self.experiments:
            examples = one.examples(self.data[one.data])
            every = [source for parts in self.sources(one).values() for source in parts]
            sources = [source for source in every if self._needs_features(one, examples, source)]
            # Both distances of free space have the same examples.
            known = todo.setdefault((one.data, examples.digest), (one.data, examples, []))[2]
            keys = {source.key for source in known}
            known += [source for source in sources + self._odds_sources(one) if source.key not in keys]
        total = sum(len(self.data[name]) for name, _, _ in todo.values())
        done, paths = 0, []
        for name, examples, sources in todo.values():
            words = f"{name}, {len(sources)} sources"

            def tell(part: int, whole: int, done: int = done, name: str = name, words: str = words) -> None:
                progress(done + part * len(self.data[name]) // max(whole, 1), total, words)

            tell(0, 1)
            folder = self.out / "features"
            paths += features_files(sources, self.data[name], examples, folder, self.device, tell, workers)
            done += len(self.data[name])
        return paths

    def fit(self, progress: Progress = lambda done, total, what: None, workers: Workers = HERE) -> Result:
        """Fits probes to features, all of which must be there; `progress` is told of repetitions.

        Workers read the folder of features, which all of them must see.
        """
        sources = {one.name: self.sources(one) for one in self.experiments}
        total = sum(len(parts) for each in sources.values() for parts in each.values()) + len(self.experiments)
        rows: list[Row] = []
        kept: dict[str, tuple[Examples, dict[str, list[Predictions]]]] = {}
        done, repetitions = 0, self.scale.repetitions

        def tell(what: str) -> Callable[[int, int], None]:
            nonlocal done
            done += repetitions
            return lambda part, _: progress(done - repetitions + part, total * repetitions, what)

        odds: list[OddsRow] = []
        workers.check_folder(self.out / "features")
        for one in self.experiments:
            examples, predictions, chance = self._predict(one, sources[one.name], workers, tell)
            kept[one.name] = examples, predictions
            rows += self._rows(one, predictions)
            rows.append(_row(one, SHUFFLED, [chance], chance.sizes[-1], None, repetitions))
            for source in self._odds_sources(one):
                path = features_path(source, self.data[one.data], examples, self.out / "features")
                values = np.load(path, allow_pickle=False)[:, 0]
                odds += turning_back(source.name, self.data[one.data], examples.frame, values)
        if odds:
            write_atomically(self.out / "odds.csv", odds_text(odds))
        encoders = [encoder.description.as_dict() for encoder in self.all_encoders.values()]
        write_atomically(self.out / "encoders.json", json.dumps(encoders, indent=1) + "\n")
        write_atomically(self.out / "agents.json", json.dumps(self._agents(), indent=1) + "\n")
        write_atomically(self.out / "dynamic.csv", table_text(rows, FIELDS))
        return Result(rows, odds, kept, self.left_out)

    @cached_property
    def experiments(self) -> list[Experiment]:
        """Those whose data there is, without those that are left out; ProbeError if none remains."""
        left = [one for one in EXPERIMENTS.values() if one.data in self.data and one.name not in self.left_out]
        if not left:
            raise ProbeError("; ".join(f"{name}: {reason}" for name, reason in self.left_out.items()))
        return left

    @cached_property
    def left_out(self) -> dict[str, str]:
        """Experiments whose examples cannot be probed, with the reason: a seeker that found too little, for example."""
        left_out = {}
        for one in EXPERIMENTS.values():
            if one.data in self.data:
                try:
                    draw_repetitions(one.examples(self.data[one.data]).table, self.scale.sizes, self.scale.repetitions)
                except ProbeError as error:
                    left_out[one.name] = str(error)
        return left_out

    def sources(self, experiment: Experiment) -> dict[str, list[Source]]:
        """The sources of an experiment by label, the first agent's first; several networks of one are averaged."""
        sources: dict[str, list[Source]] = {f"DIR ({name})": [source] for name, source in self._own_sources.items()}
        sources[f"DIR ({UNTRAINED_NAME})"] = list(self._untrained_sources)
        encoders = self.all_encoders
        sources |= {f"SIR ({name})": [ImageSource(name, encoder)] for name, encoder in encoders.items()}
        forward = experiment.with_forward_steps
        for name, encoder in encoders.items():
            sources[f"DIR (4CNN-{name})"] = [ImageSource(name, encoder, STACK, forward)]
        if forward:
            sources["Forward Steps"] = [ForwardSteps()]
        return sources

    @cached_property
    def all_encoders(self) -> dict[str, StudyEncoder]:
        """Those of the agents, by the agents' names, and the others."""
        own = {name: agent_encoder(name, agent.encoder, agent.config) for name, agent in self.agents.items()}
        return own | {encoder.description.name: encoder for encoder in self.encoders}

    @cached_property
    def _own_sources(self) -> dict[str, DynamicSource]:
        return {name: DynamicSource(name, agent) for name, agent in self.agents.items()}

    @cached_property
    def _untrained_sources(self) -> list[DynamicSource]:
        return untrained_sources(next(iter(self.agents.values())).config)

    def _odds_sources(self, experiment: Experiment) -> list[Source]:
        return [TurningOdds(one) for one in self._own_sources.values()] if experiment.name == "rotation" else []

    def _needs_features(self, experiment: Experiment, examples: Examples, source: Source) -> bool:
        """Whether a source's features are there, or something is still to be predicted from them."""
        path = features_path(source, self.data[experiment.data], examples, self.out / "features")
        if path.exists() or not digest_path(path).exists():
            return True
        probes, chance = self._probes(examples, HERE)
        first = next(iter(self.sources(experiment).values()))[0]
        tables = [probes, chance] if source.key == first.key else [probes]
        return not all(each.has_predictions(path) for each in tables)

    def _probes(self, examples: Examples, workers: Workers) -> tuple[Probes, Probes]:
        """Those of an experiment's examples, and of the same with shuffled labels."""
        scale, folder = self.scale, self.out / "probes"
        probes, chance = (
            Probes(table, folder, scale.sizes, scale.repetitions, workers=workers)
            for table in (examples.table, examples.table.shuffled())
        )
        return probes, chance

    def _agents(self) -> list[dict[str, str | int]]:
        """agents.json: what has the DIR of each name, with digests of weights."""
        untrained = [source.agent for source in self._untrained_sources]
        networks = {**{name: [agent] for name, agent in self.agents.items()}, UNTRAINED_NAME: untrained}
        listed: list[dict[str, str | int]] = []
        for name, each in networks.items():
            digests = [sha256_of(agent.state_dict()) for agent in each]
            listed.append({
                "name": name, "network": "Agent" if len(each) == 1 else f"Agent, {len(each)} networks",
                "parameters": sum(parameter.numel() for parameter in each[0].parameters()),
                "licence": "none" if each is untrained else "yours",
                "sha256": digests[0] if len(each) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest(),
            })  # fmt: skip
        return listed

    def _predict(
        self,
        experiment: Experiment,
        sources: Mapping[str, Sequence[Source]],
        workers: Workers,
        tell: Callable[[str], Callable[[int, int], None]],
    ) -> tuple[Examples, dict[str, list[Predictions]], Predictions]:
        """An experiment's examples, each source's predictions, and those of the first with shuffled labels."""
        data = self.data[experiment.data]
        examples = experiment.examples(data)
        probes, chance = self._probes(examples, workers)
        predictions: dict[str, list[Predictions]] = {}
        paths = []
        for name, parts in sources.items():
            for source in parts:
                paths.append(features_path(source, data, examples, self.out / "features"))
                predictions.setdefault(name, []).append(probes.run(paths[-1], tell(f"{experiment.name}, {name}")))
        shuffled = chance.run(paths[0], tell(f"{experiment.name}, {SHUFFLED}"))
        return examples, predictions, shuffled

    def _rows(self, experiment: Experiment, predictions: Mapping[str, Sequence[Predictions]]) -> list[Row]:
        rows = []
        base = next(iter(predictions.values()))
        steps = base[0].table.steps
        cases = [(size, experiment.headline_step) for size in base[0].sizes]
        if steps is not None:
            # Steps that every repetition has test examples of.
            common = set.intersection(*({int(step) for step in steps[one.test]} for one in base[0].repetitions))
            cases += [(base[0].sizes[-1], step) for step in sorted(common - {experiment.headline_step})]
        for name, parts in predictions.items():
            for size, step in cases:
                reference = mean_score([part.score(size, step=step) for part in base])
                row = _row(experiment, name, parts, size, step, self.scale.repetitions)
                if parts is not base:
                    score = mean_score([part.score(size, step=step) for part in parts]).minus(reference)
                    half = score.half_width(experiment.counts_test_sampling)
                    row |= {"difference": score.mean, "difference_low": score.mean - half}
                    row["difference_high"] = score.mean + half
                rows.append(row)
        return rows


def _row(
    experiment: Experiment, name: str, parts: Sequence[Predictions], size: int, step: int | None, repetitions: int
) -> Row:
    score = mean_score([part.score(size, step=step) for part in parts])
    balanced: Score = mean_score([part.score(size, balanced=True, step=step) for part in parts])
    half = score.half_width(experiment.counts_test_sampling)
    return {
        "experiment": experiment.name, "source": name, "size": size, "step": "" if step is None else step,
        "accuracy": score.mean, "low": max(score.mean - half, 0.0), "high": min(score.mean + half, 1.0),
        "balanced": balanced.mean, "tested": float(np.mean([len(one.test) for one in parts[0].repetitions])),
        "repetitions": repetitions,
    }  # fmt: skip


def headline(rows: Sequence[Row], experiment: Experiment) -> list[Row]:
    """The rows of an experiment at its largest size, at the step of the headline."""
    step = "" if experiment.headline_step is None else experiment.headline_step
    mine = [row for row in rows if row["experiment"] == experiment.name and row["source"] != SHUFFLED]
    largest = max((int(row["size"]) for row in mine), default=0)
    return [row for row in mine if row["size"] == largest and row["step"] == step]
