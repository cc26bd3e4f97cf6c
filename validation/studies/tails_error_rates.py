"""Error rates of the whole protocol, and of naive practice beside it.

    python validation/studies/tails_error_rates.py [--pairs 400] [--quick]

Pairs of models with equal means and equal TVaR, on shared items, with the protocol's 31,400 items
(1,570 exceedances). Without a difference of shapes the protocol should pass at most 1 % of pairs;
with a difference of 0.25 it should pass at least 80 % of what G1 to G5 admit. Naive practice says
"different" when two intervals do not overlap at the best of nine thresholds. Also G5's false kills
at 2,000 and 31,400 items. Every share has its Monte Carlo standard error.
"""

from __future__ import annotations

import argparse

from pybridge.protocol.reading import make_protocol
from pybridge.protocol.run import run_protocol
from pybridge.simulate.tail_scores import TailModel, equal_tail_means, simulate_tail_scores
from pybridge.tails.planning import simulated_power


def protocol(replicates, **changes):
    words = {"models": ["a", "b"], "mean_margin": 0.05, "tail_margin": 0.2, "engine": "native"}
    words |= {"replicates": replicates, "fit_method": "table"}
    return make_protocol(**(words | changes))


def rates(*, difference, pairs, replicates, seed, n_items=31_400, **changes):
    """Shares of pairs: passing, admitted by G1 to G5, passing of these, naive, killed by G5."""
    scale = equal_tail_means(difference, other_shape=0.0)
    models = {"a": TailModel(), "b": TailModel(shape=difference, tail_scale=scale)}
    plan = protocol(replicates, **changes)
    passed = admitted = naive = unstable = 0
    for k in range(pairs):
        scores = simulate_tail_scores(models, n_items=n_items, seed=1000 * seed + k)
        verdict = run_protocol(plan, scores, exploratory=True)
        one = verdict.pairs[0]
        scan = verdict.scans["score"]
        a, b = scan.model == "a", scan.model == "b"
        apart = (scan.lower[a] > scan.upper[b]) | (scan.lower[b] > scan.upper[a])
        gates = all(one.outcome(gate).passed for gate in ("G1", "G2", "G3", "G4", "G5"))
        passed += one.verdict == "PASS"
        admitted += gates
        naive += bool(apart.any())
        unstable += not one.outcome("G5").passed
    return {
        "protocol": passed / pairs,
        "admitted": admitted / pairs,
        "passed_of_admitted": passed / admitted if admitted else float("nan"),
        "naive": naive / pairs,
        "unstable": unstable / pairs,
    }


def share(value, n):
    """A share with its Monte Carlo standard error; of 0 or 1 with the 95 % limit instead."""
    if value != value:
        return "none"
    if value in (0.0, 1.0):
        bound = 1.0 - 0.05 ** (1.0 / n)
        return f"{value:.3f} ({'at most' if value == 0.0 else 'at least'} " + (
            f"{bound:.4f})" if value == 0.0 else f"{1.0 - bound:.4f})"
        )
    return f"{value:.3f} ± {(value * (1.0 - value) / n) ** 0.5:.3f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="40 pairs")
    words = parser.parse_args()
    pairs = 40 if words.quick else words.pairs
    names = ("protocol", "naive", "admitted", "passed_of_admitted", "unstable")
    print(f"{'difference':>10} {'items':>6} {'pairs':>5}  " + "  ".join(f"{n:>22}" for n in names))
    for difference, n_items, part in (
        (0.0, 31_400, 1.0),
        (0.0, 2000, 1.0),
        (0.25, 31_400, 0.5),
    ):
        n = max(1, round(part * pairs))
        found = rates(difference=difference, pairs=n, replicates=499, seed=1, n_items=n_items)
        admitted = max(1, round(found["admitted"] * n))
        cells = [share(found[k], admitted if k == "passed_of_admitted" else n) for k in names]
        print(
            f"{difference:10.2f} {n_items:6d} {n:5d}  " + "  ".join(f"{c:>22}" for c in cells),
            flush=True,
        )
    # The two criteria alone, of independent models: what the protocol's rate cannot exceed by much.
    for gap in (0.0, 0.10, 0.25):
        found = simulated_power(1570, gap, what="rule", replicates=100 * pairs)
        print(f"P1 and P2 alone at 1,570 exceedances, difference {gap:g}: {found.summary()}")


if __name__ == "__main__":
    main()
