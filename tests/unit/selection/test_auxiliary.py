"""Sets of auxiliary variables: the candidates with each, and how each relates to the outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import pybridge as pb
from pybridge.errors import InputError
from pybridge.selection.auxiliary import read_sets, with_sets

SETS = {"weak": ["g"], "strong": ["f"], "both": ["f", "g"]}


def units(n_domains: int = 40, a_domain: int = 50, seed: int = 3) -> pd.DataFrame:
    """y depends on f over units and domains, on g over domains only."""
    rng = np.random.default_rng(seed)
    place = np.arange(n_domains * a_domain) % n_domains
    level_f, level_g = rng.normal(size=n_domains), rng.normal(size=n_domains)
    f = level_f[place] + rng.normal(size=len(place))
    g = level_g[place] + 2.0 * rng.normal(size=len(place))
    y = 3 + f + (0.8 * level_g + 0.3 * rng.normal(size=n_domains))[place]
    y = y + rng.normal(size=len(place))
    table = pd.DataFrame({"d": [f"d{i:02d}" for i in place], "f": f, "g": g, "truth": y})
    return table.assign(y=np.where(rng.random(len(place)) < 0.2, y, np.nan))


def setting() -> tuple[Any, Any]:
    table = units()
    known = pb.population(table, domain="d", auxiliary=["f", "g"])
    labelled = table[table["y"].notna()]
    return pb.survey_design(labelled.assign(w=len(table) / len(labelled)), weights="w"), known


TEMPLATES = [
    pb.candidate("HT"),
    pb.candidate("PPI", direct="ppi", unit_auxiliary="f"),
    pb.candidate("GREG", direct="greg", unit_auxiliary="f"),
    pb.candidate("FH0", smoothing="fay_herriot"),
    pb.candidate("FH", smoothing="fay_herriot", area_formula="~ f"),
    pb.candidate(
        "PP-S", direct="greg", unit_auxiliary="f", smoothing="fay_herriot", area_formula="~ f"
    ),
    pb.candidate("mine", function=lambda sample, known: np.zeros(known.n_domains)),
]


def test_every_candidate_with_every_set() -> None:
    found = with_sets(TEMPLATES, read_sets(SETS))
    assert [item.name for item in found] == [
        *("HT", "FH0", "mine"),
        *(f"{name} [weak]" for name in ("PPI", "GREG", "FH", "PP-S")),
        *(f"{name} [strong]" for name in ("PPI", "GREG", "FH", "PP-S")),
        *(f"{name} [both]" for name in ("GREG", "FH", "PP-S")),
    ]
    last = found[-1]
    assert last.unit_auxiliary == ("f", "g") and last.area_formula == "~ f + g"
    assert found[-2].unit_auxiliary == () and found[-2].area_formula == "~ f + g"


def test_select_with_sets_is_select_with_those_candidates() -> None:
    found = pb.select(*setting(), TEMPLATES, outcome="y", auxiliary_sets=SETS)
    names = ("HT", "GREG [weak]", "GREG [strong]", "GREG [both]", "FH [both]")
    by_hand = [
        pb.candidate("HT"),
        *(
            pb.candidate(f"GREG [{label}]", direct="greg", unit_auxiliary=columns)
            for label, columns in SETS.items()
        ),
        pb.candidate("FH [both]", smoothing="fay_herriot", area_formula="~ f + g"),
    ]
    alone = pb.select(*setting(), by_hand, outcome="y")
    assert alone.reference == found.reference == "GREG(f, g)"
    for name in names:
        i, j = found.candidates.index(name), alone.candidates.index(name)
        np.testing.assert_allclose(found.scores["db_cv"][i], alone.scores["db_cv"][j], rtol=1e-12)


def test_slopes_and_correlations_of_each_set() -> None:
    design, known = setting()
    found = pb.select(design, known, TEMPLATES, outcome="y", auxiliary_sets=SETS)
    table = found.auxiliary.to_frame()
    assert table["set"].tolist() == ["weak", "strong", "both", "both"]
    assert table["auxiliary"].tolist() == ["g", "f", "f", "g"]
    sample = design.frame
    for row in table.itertuples():
        assert row.unit_correlation == pytest.approx(
            np.corrcoef(sample["y"], sample[row.auxiliary])[0, 1]
        )
        columns = SETS[row.set]
        x = np.column_stack([np.ones(len(sample)), *(sample[name] for name in columns)])
        beta, rest = np.linalg.lstsq(x, sample["y"], rcond=None)[:2]
        assert row.slope == pytest.approx(beta[1 + columns.index(row.auxiliary)])
        explained = 1 - rest[0] / ((sample["y"] - sample["y"].mean()) ** 2).sum()
        assert row.set_unit_correlation == pytest.approx(np.sqrt(explained))
    record = pb.generalized_regression(design, known, outcome="y", auxiliary=["f", "g"])
    means, z = known.auxiliary_means, record.estimate
    observed = [np.corrcoef(z, means[:, known.auxiliary.index(name)])[0, 1] for name in "gffg"]
    np.testing.assert_allclose(table["observed_domain_correlation"], observed)
    spread = z.var(ddof=1)
    np.testing.assert_allclose(
        table["domain_correlation"],
        np.array(observed) * np.sqrt(spread / (spread - record.variance.mean())),
    )
    assert found.auxiliary.direct == "GREG(f, g)" and found.auxiliary.n_domains == 40
    assert "strong: f" in found.summary()


def test_the_domain_level_correlation_is_that_of_the_true_means() -> None:
    # Noise draws the observed one towards 0; over samples the corrected one is right.
    shown, observed, true = [], [], []
    for seed in range(25):
        table = units(seed=seed, a_domain=60)
        means = table.groupby("d")[["truth", "g"]].mean()
        true.append(means.corr().iloc[0, 1])
        labelled = table[table["y"].notna()].iloc[::2].assign(w=10.0)
        known = pb.population(table, domain="d", auxiliary=["f", "g"])
        found = pb.select(
            pb.survey_design(labelled, weights="w"),
            known,
            TEMPLATES[:1],
            outcome="y",
            auxiliary_sets={"g": ["g"]},
            reference="hajek",
        ).auxiliary
        shown.append(found.domain_correlation[0])
        observed.append(found.observed_domain_correlation[0])
    gap = np.array(shown) - true
    error = gap.std(ddof=1) / 5
    assert abs(gap.mean()) < 3 * error and error < 0.03
    assert (np.array(observed) - true).mean() < -3 * error


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "bad_auxiliary_set"),
        ([], "bad_auxiliary_set"),
        ({"a": []}, "bad_auxiliary_set"),
        ({"": ["f"]}, "bad_auxiliary_set"),
        ({3: ["f"]}, "bad_auxiliary_set"),
        ([["f"], "f"], "duplicate_name"),
        ({"a": ["f", "f"]}, "duplicate_name"),
        ({"a": [3]}, "bad_name"),
        ({"a": ["z"]}, "unknown_auxiliary"),
    ],
)
def test_sets_that_cannot_be(given: Any, code: str) -> None:
    with pytest.raises(InputError) as caught:
        pb.select(*setting(), TEMPLATES[:3], outcome="y", auxiliary_sets=given)
    assert caught.value.code == code and caught.value.field


def test_sets_without_names_are_called_by_their_variables() -> None:
    assert read_sets(["f", ["f", "g"]]) == {"f": ("f",), "f, g": ("f", "g")}
    assert read_sets("f") == {"f": ("f",)} and read_sets(None) == {}


def test_too_few_domains_for_a_correlation() -> None:
    table = units(n_domains=2)
    known = pb.population(table, domain="d", auxiliary=["f"])
    design = pb.survey_design(table[table["y"].notna()].assign(w=5.0), weights="w")
    found = pb.select(design, known, TEMPLATES[2:3], outcome="y").auxiliary
    assert np.isnan(found.domain_correlation[0]) and np.isfinite(found.unit_correlation[0])


def test_evaluate_with_sets() -> None:
    table = units().drop(columns="truth")
    words: dict[str, Any] = dict(outcome="y", domain="d", engine="native", auxiliary_sets=SETS)
    found = pb.evaluate(table, candidates="direct", **words)
    assert found.selection.candidates == (
        *("HT", "Hájek", "PPI [weak]", "GREG [weak]"),
        *("PPI [strong]", "GREG [strong]", "GREG [both]"),
    )
    assert found.population.auxiliary == ("g", "f")
    page = found.summary()
    assert "both: g" in page and "set: variable" in page
    assert found.provenance.options["auxiliary_sets"]["both"] == ("f", "g")
    with pytest.raises(InputError) as caught:
        pb.evaluate(table, outcome="y", domain="d", candidates="direct")
    assert caught.value.field == "auxiliary"
