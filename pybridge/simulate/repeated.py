"""Repeated sampling: one procedure on many samples of a population, in processes, resumable.

Every repetition has random streams of its own, children of the seed, so that neither the number of
processes nor an interruption changes a single bit of the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._options import whole_number
from pybridge._record import Record
from pybridge._version import __version__
from pybridge.design.survey_design import SurveyDesign
from pybridge.errors import FitError, InputError, PybridgeError
from pybridge.simulate._checkpoint import Checkpoint, described, population_digest
from pybridge.simulate._processes import need_executor, results
from pybridge.simulate.plans import SamplingPlan
from pybridge.simulate.populations import FinitePopulation
from pybridge.simulate.progress import Progress
from pybridge.tables.population import Population

_BLOCKS_A_WORKER = 8
_LARGEST_BLOCK = 25
# So many failures without a single result are no bad luck.
_GIVE_UP = 10


@dataclass(frozen=True, eq=False)
class Draw:
    """One repetition's sample, as a procedure gets it.

    Attributes
    ----------
    design : SurveyDesign
        The labelled sample.
    known : Population
        What is known of the whole.
    outcome, domain : str
        Columns.
    seed : int
        For whatever the procedure draws (folds, splits); its own in every repetition.
    population : FinitePopulation
        Everything, the truth included; for other samples beside this one, not for estimates.
    rng : numpy.random.Generator
        For further random numbers of this repetition.
    """

    design: SurveyDesign
    known: Population
    outcome: str
    domain: str
    seed: int
    population: FinitePopulation
    rng: np.random.Generator


Procedure = Callable[[Draw], Mapping[str, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class RepeatedSampling(Record):
    """What a procedure returned in every repetition, stacked.

    Attributes
    ----------
    values : mapping of str to numpy.ndarray
        Shape (R, ...) each, over the repetitions that gave results.
    repetitions : numpy.ndarray
        Shape (R,), their numbers, from 0.
    failed : mapping of str to str
        Number of a repetition that gave none -> why.
    truth : numpy.ndarray
        Shape (m,), true domain means.
    size : numpy.ndarray
        Shape (m,), units of every domain.
    domains : numpy.ndarray
        Shape (m,), labels.
    seed : int
    """

    values: Mapping[str, np.ndarray]
    repetitions: np.ndarray
    failed: Mapping[str, str]
    truth: np.ndarray
    size: np.ndarray
    domains: np.ndarray
    seed: int

    @property
    def n_repetitions(self) -> int:
        """R, the repetitions that gave results."""
        return len(self.repetitions)

    def __getitem__(self, name: str) -> np.ndarray:
        return np.asarray(self.values[name])

    def to_frame(self) -> pd.DataFrame:
        """One row a repetition, with the values that are single numbers or words."""
        table: dict[str, np.ndarray] = {"repetition": self.repetitions}
        table.update({k: np.array(v) for k, v in self.values.items() if np.ndim(v) == 1})
        return pd.DataFrame(table)

    def summary(self) -> str:
        """How many repetitions, what they hold, which ones failed."""
        shapes = ", ".join(f"{k} {np.shape(v)[1:]}" for k, v in self.values.items())
        text = f"{self.n_repetitions} repetitions (seed {self.seed}): {shapes}"
        for number, reason in list(self.failed.items())[:3]:
            text += f"\nrepetition {number} failed: {reason}"
        return text


def repeated_sampling(
    population: FinitePopulation,
    plan: SamplingPlan,
    procedure: Procedure,
    *,
    repetitions: int,
    seed: int = 1,
    workers: int = 1,
    executor: Executor | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> RepeatedSampling:
    """Draw samples, run a procedure on each, and stack what it returns.

    Parameters
    ----------
    population : FinitePopulation
    plan : SamplingPlan
        From `sampling_plan`.
    procedure : callable
        ``procedure(draw) -> mapping of str to number, text or array``, of the same shapes in every
        repetition; see `Draw`. With processes it must pickle: a function at the top of a module, or
        an instance of a class there, such as `EstimateCandidates` and `SelectCandidates`.
    repetitions : int
    seed : int
        Repetition r uses the r-th child of ``numpy.random.SeedSequence(seed)``.
    workers : int
        Processes (spawned). 1 stays in this one. The result does not depend on it.
    executor : concurrent.futures.Executor, optional
        Anything with its ``submit`` (which returns a ``concurrent.futures.Future``) and
        ``shutdown`` instead of own processes: threads, joblib's loky, Dask's
        ``client.get_executor()``. What of a procedure can be sent is the executor's affair.
    checkpoint : path, optional
        Folder in which finished repetitions are kept. A run that was stopped, whenever and however,
        goes on from there and ends with the same result; more repetitions may be asked for later.
    progress : bool
        A line on standard error, where that is a terminal.

    Returns
    -------
    RepeatedSampling
        A repetition in which pybridge raised an error is in ``failed`` with its reason.

    Raises
    ------
    InputError
        A procedure that fails in its own code (``procedure_failed``), returns other shapes, or
        cannot be sent to processes; an executor of another kind; a checkpoint of another study.
    FitError
        No repetition gave a result.
    WorkerDied
        A process ended; what was finished is in the checkpoint.
    """
    whole_number("repetitions", repetitions, least=1)
    whole_number("seed", seed, least=0)
    whole_number("workers", workers, least=1)
    need_executor(executor)
    task = Task(population, plan, procedure, seed)
    store = Checkpoint.open(checkpoint, lambda: _identity(task))
    done = store.load()
    todo = [r for r in range(repetitions) if r not in done]
    bar = Progress(repetitions, done=repetitions - len(todo), enabled=progress)
    try:
        for block in results(task, _blocks(todo, workers), workers, executor):
            store.save(block)
            done.update(block)
            bar.advance(len(block))
            if len(done) >= _GIVE_UP and all("failed" in found for found in done.values()):
                break
    finally:
        bar.close()
    return _stacked({r: done[r] for r in range(repetitions) if r in done}, task)


@dataclass(frozen=True, eq=False)
class Task:
    """All that a process needs for any repetition."""

    population: FinitePopulation
    plan: SamplingPlan
    procedure: Procedure
    seed: int

    def run(self, numbers: list[int]) -> dict[int, dict[str, Any]]:
        """Results of these repetitions by number."""
        return {r: self._one(r) for r in numbers}

    def _one(self, number: int) -> dict[str, Any]:
        # The same as SeedSequence(seed).spawn(R)[number], for any R.
        root = np.random.SeedSequence(self.seed, spawn_key=(number,))
        for_sample, for_procedure, for_folds = root.spawn(3)
        try:
            design = self.plan.draw(self.population, np.random.default_rng(for_sample))
            draw = Draw(
                design=design,
                known=self.population.known,
                outcome=self.population.outcome,
                domain=self.population.domain,
                seed=int(for_folds.generate_state(1)[0]),
                population=self.population,
                rng=np.random.default_rng(for_procedure),
            )
            found = self.procedure(draw)
            return {str(name): _array(value) for name, value in found.items()}
        except PybridgeError as error:
            return {"failed": np.array(f"{type(error).__name__}: {error.message}")}
        except Exception as error:
            raise InputError(
                f"the procedure failed in repetition {number}: {type(error).__name__}: {error}",
                code="procedure_failed",
                field="procedure",
                expected="a mapping of names to numbers, texts or arrays",
                got=f"{type(error).__name__}: {error}",
            ) from error


def _array(value: Any) -> np.ndarray:
    found = np.asarray(value)
    if found.dtype == object:
        found = found.astype(str)
    if found.dtype.kind not in "fiubU":
        raise TypeError(f"values of type {found.dtype} cannot be kept")
    return found


def _blocks(todo: list[int], workers: int) -> list[list[int]]:
    """Repetitions that go to a process together: enough to be worth it, few enough to share."""
    size = max(1, min(_LARGEST_BLOCK, len(todo) // (_BLOCKS_A_WORKER * workers)))
    return [todo[start : start + size] for start in range(0, len(todo), size)]


def _identity(task: Task) -> dict[str, Any]:
    return {
        "pybridge": __version__,
        "population": population_digest(task.population.units),
        "outcome": task.population.outcome,
        "domain": task.population.domain,
        "auxiliary": list(task.population.auxiliary),
        "plan": described(task.plan),
        "procedure": described(task.procedure),
        "seed": task.seed,
    }


def _stacked(results: dict[int, dict[str, Any]], task: Task) -> RepeatedSampling:
    failed = {str(r): str(found["failed"]) for r, found in results.items() if "failed" in found}
    kept = {r: found for r, found in results.items() if "failed" not in found}
    if not kept:
        raise FitError(
            f"no repetition gave a result: {next(iter(failed.values()))}",
            code="nothing_simulated",
            field="procedure",
            expected="at least one repetition with a result",
            got=f"{len(failed)} failed",
        )
    shapes = {r: {name: value.shape for name, value in found.items()} for r, found in kept.items()}
    first = next(iter(shapes.values()))
    other = [r for r, found in shapes.items() if found != first]
    if other:
        raise InputError(
            f"repetition {other[0]} returned other names or shapes than the first",
            code="shapes_differ",
            field="procedure",
            expected=str(first),
            got=str(shapes[other[0]]),
        )
    return RepeatedSampling(
        values={name: np.stack([found[name] for found in kept.values()]) for name in first},
        repetitions=np.array(list(kept), dtype=np.int64),
        failed=failed,
        truth=task.population.truth,
        size=task.population.known.size,
        domains=task.population.known.domains,
        seed=task.seed,
    )
