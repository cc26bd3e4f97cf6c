"""The populations of two experiments on evaluating AI systems by domain, simulated.

Source: the experiments of the paper on prediction-powered smoothing that this package follows: a
verifiable benchmark of task types, and the traffic of a deployed service judged by a cheap model.
What the paper states is reproduced (counts of domains and units, correlations of the auxiliary
variables); what it does not state (sizes of the single domains, domain-mean correlations of the
benchmark's auxiliaries, spread of the means) is chosen here and said in the docstrings.
"""

from __future__ import annotations

import numpy as np

from pybridge._options import whole_number
from pybridge.simulate.auxiliaries import Auxiliary
from pybridge.simulate.outcomes import Outcome
from pybridge.simulate.populations import FinitePopulation, simulate_population
from pybridge.tails._streams import stream

# Questions of every task type, benchmark by benchmark: 34 types.
_BENCHMARKS = {
    "BBH": (250,) * 16 + (187, 178, 146, 250),
    "GPQA": (198, 546, 448),
    "IFEval": (541,),
    "MATH": (307, 123, 132, 280, 154, 193, 135),
    "MuSR": (250, 256, 250),
}
_SYSTEMS, _KINDS, _TRAFFIC = 21, ("guided", "open", "contested"), 68_371


def verifiable_benchmark(*, seed: int = 1) -> FinitePopulation:
    """34 task types in 5 benchmarks, whether an answer is right, three auxiliary variables.

    ``specialist`` and ``small`` (0 or 1, another model's answer is right; correlations of units
    0.31 and 0.33) and ``difficulty`` (a share of earlier models; 0.61). Their domain means
    correlate with the truth by 0.30, 0.75 and 0.93: a choice, made so that the two weak ones differ
    at the domain level as the paper reports. The spread of ``difficulty`` gives it a slope near 1,
    that of the weak ones a slope near 1/3, as reported. Sizes are 123 to 546 questions.

    Returns
    -------
    FinitePopulation
        Taxonomy ``benchmark`` > ``domain``.
    """
    sizes = [size for counts in _BENCHMARKS.values() for size in counts]
    benchmark = [name for name, counts in _BENCHMARKS.items() for _ in counts]
    labels = [f"{name} {i + 1:02d}" for name, c in _BENCHMARKS.items() for i in range(len(c))]
    return simulate_population(
        sizes,
        labels=labels,
        groups={"benchmark": benchmark},
        outcome=Outcome("binary", mean=0.55, domain_sd=0.13, level_sd={"benchmark": 0.12}),
        auxiliaries=[
            Auxiliary("specialist", 0.31, 0.30, "binary", mean=0.45, between=0.12),
            Auxiliary("small", 0.33, 0.75, "binary", mean=0.38, between=0.12),
            Auxiliary("difficulty", 0.61, 0.93, "share", mean=0.48, between=0.35, sd=0.30),
        ],
        seed=seed,
    )


def deployed_service(*, seed: int = 1, n_units: int = _TRAFFIC) -> FinitePopulation:
    """21 routed systems × 3 kinds of conversation, satisfaction from 0 to 100, a judge's score.

    ``judge``: correlation 0.40 of units and 0.93 of domain means; ``content``, a covariate of the
    conversation: 0.25 and 0.60 (a choice). Domains hold 200 to 3,000 of 68,371 conversations (a
    choice: systems are routed unequally); a tenth of them is 108 labels a domain on average. Users
    (``cluster``, about 45 conversations each) share a fifth of the latent satisfaction.

    Parameters
    ----------
    seed : int
    n_units : int
        Other than 68,371 for a population of the same shape and another size.

    Returns
    -------
    FinitePopulation
        Taxonomy ``system`` > ``domain``.
    """
    total = whole_number("n_units", n_units, least=63)
    m = _SYSTEMS * len(_KINDS)
    routed = np.exp(0.55 * stream(seed, "routing").standard_normal(_SYSTEMS))
    share = np.outer(routed, (0.45, 0.33, 0.22)).ravel()
    sizes = np.maximum(1, np.floor(total * share / share.sum())).astype(int)
    sizes[int(np.argmax(sizes))] += total - int(sizes.sum())
    systems = [f"system {i + 1:02d}" for i in range(_SYSTEMS) for _ in _KINDS]
    labels = [f"{systems[i]} {_KINDS[i % len(_KINDS)]}" for i in range(m)]
    return simulate_population(
        sizes,
        labels=labels,
        groups={"system": systems},
        outcome=Outcome(
            "score",
            mean=66.0,
            domain_sd=2.5,
            level_sd={"system": 5.5},
            unit_sd=26.0,
            scale=100.0,
            cluster_share=0.2,
        ),
        auxiliaries=[
            Auxiliary("judge", 0.40, 0.93, mean=60.0, between=0.12, sd=20.0),
            Auxiliary("content", 0.25, 0.60, mean=0.0, between=0.10, sd=1.0),
        ],
        cluster_size=45,
        seed=seed,
    )
