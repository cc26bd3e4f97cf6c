"""How the sample was drawn: weights, strata, primary units, finite population correction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pybridge._checks import key_column, listed, need_frame, need_range, numeric_column
from pybridge._options import LONELY_PSU, choose, yes_or_no
from pybridge.errors import InputError
from pybridge.tables.labels import encode


@dataclass(frozen=True, eq=False)
class SurveyDesign:
    """A probability sample and how it was drawn. It holds the sample; results do not.

    Attributes
    ----------
    frame : pandas.DataFrame
        The sample, n rows.
    weights : numpy.ndarray
        Shape (n,), inverse inclusion probabilities.
    stratum : numpy.ndarray
        Shape (n,), codes in [0, H).
    strata : numpy.ndarray
        Shape (H,), labels.
    psu : numpy.ndarray or None
        Shape (n,), codes of primary units; None where every unit is its own.
    n_psu : numpy.ndarray
        Shape (H,), primary units in the sample.
    sampling_fraction : numpy.ndarray
        Shape (H,), n_h/N_h; 0 where there is no finite population correction.
    poisson : bool
        Whether units were drawn independently of each other (Poisson sampling).
    lonely_psu : str
        What a stratum with one primary unit contributes, in R's words.
    names : mapping
        The columns that the user named.
    """

    frame: pd.DataFrame
    weights: np.ndarray
    stratum: np.ndarray
    strata: np.ndarray
    psu: np.ndarray | None
    n_psu: np.ndarray
    sampling_fraction: np.ndarray
    poisson: bool
    lonely_psu: str
    names: Mapping[str, str | None]

    @property
    def n_units(self) -> int:
        """n, the number of units in the sample."""
        return len(self.weights)

    @property
    def lonely(self) -> np.ndarray:
        """Labels of the strata with one primary unit that were not sampled whole."""
        return self.strata[(self.n_psu == 1) & (self.sampling_fraction < 1.0)]

    def summary(self) -> str:
        """One line: the kind of design and its size."""
        units = f"{self.n_units:,} units"
        if self.psu is not None:
            units += f" in {int(self.n_psu.sum()):,} primary units"
        kind = "Poisson sample" if self.poisson else "probability sample"
        strata = f" in {len(self.strata)} strata" if len(self.strata) > 1 else ""
        fpc = "with" if (self.sampling_fraction > 0).any() else "without"
        text = f"{kind} of {units}{strata}, {fpc} finite population correction"
        if len(self.lonely):
            text += f"; strata with one primary unit ({listed(self.lonely)}): {self.lonely_psu}"
        return text

    def __repr__(self) -> str:
        return f"SurveyDesign: {self.summary()}"


def survey_design(
    sample: pd.DataFrame,
    *,
    weights: str | None = None,
    strata: str | None = None,
    ids: str | None = None,
    fpc: str | None = None,
    pps: str | None = None,
    lonely_psu: str = "fail",
    nest: bool = False,
) -> SurveyDesign:
    """Describe a probability sample, in the words of R's ``survey::svydesign``.

    Parameters
    ----------
    sample : pandas.DataFrame
        The sampled units, one row each.
    weights : str, optional
        Column of inverse inclusion probabilities. Without it they follow from ``fpc``.
    strata, ids : str, optional
        Columns of the stratum and of the primary unit (cluster).
    fpc : str, optional
        Column of the stratum's number of primary units in the population, or of its sampling
        fraction where all values are at most 1.
    pps : {None, "poisson"}
        ``"poisson"``: units entered independently, each with probability 1/weight.
    lonely_psu : {"fail", "adjust", "average", "certainty", "remove"}
        What to do with a stratum that has one primary unit, as R's ``survey.lonely.psu``:
        ``"adjust"`` as in survey 4.1, without centring; survey 4.5 centres at the mean of all.
    nest : bool
        Whether labels of primary units start anew in every stratum.

    Returns
    -------
    SurveyDesign

    Raises
    ------
    InputError
        Weights that are missing, zero, negative or infinite; a correction that varies within a
        stratum or is smaller than the sample; clusters that cut across strata; strata with one
        primary unit unless ``lonely_psu`` says what to do.
    """
    need_frame("sample", sample)
    choose("lonely_psu", lonely_psu, LONELY_PSU)
    if pps is not None:
        choose("pps", pps, ("poisson",))
        _refuse_with_poisson(strata=strata, ids=ids, fpc=fpc, weights=weights)
    n = len(sample)
    stratum, labels = _codes(sample, strata, "strata", n)
    psu = None
    if ids is not None:
        psu = _primary_units(sample, ids, stratum, nest)
    n_psu = _count_psu(stratum, psu, len(labels))
    fraction = _sampling_fraction(sample, fpc, stratum, labels, n_psu)
    values = _weights(sample, weights, fpc, fraction, stratum)
    if pps is not None and (values < 1).any():
        raise InputError(
            "with Poisson sampling a weight is 1/probability, at least 1",
            code="bad_weight",
            field="weights",
            expected="weights of at least 1",
            got=f"rows {listed(np.flatnonzero(values < 1))}",
        )
    design = SurveyDesign(
        frame=sample,
        weights=values,
        stratum=stratum,
        strata=labels,
        psu=psu,
        n_psu=n_psu,
        sampling_fraction=fraction,
        poisson=pps is not None,
        lonely_psu=lonely_psu,
        names={"weights": weights, "strata": strata, "ids": ids, "fpc": fpc},
    )
    _refuse_lonely(design)
    return design


def _codes(
    sample: pd.DataFrame, name: str | None, field: str, n: int
) -> tuple[np.ndarray, np.ndarray]:
    if name is None:
        return np.zeros(n, dtype=np.intp), np.array(["all"], dtype=object)
    encoded = encode(key_column(sample, name, field=field))
    return np.asarray(encoded.codes, dtype=np.intp), encoded.labels


def _primary_units(sample: pd.DataFrame, ids: str, stratum: np.ndarray, nest: bool) -> np.ndarray:
    codes = np.asarray(encode(key_column(sample, ids, field="ids")).codes, dtype=np.intp)
    if yes_or_no("nest", nest):
        pair = stratum * (codes.max() + 1) + codes
        return np.unique(pair, return_inverse=True)[1].reshape(-1)
    first = np.empty(codes.max() + 1, dtype=np.intp)
    first[codes] = stratum
    if (first[codes] != stratum).any():
        row = int(np.flatnonzero(first[codes] != stratum)[0])
        raise InputError(
            "primary units are not nested in strata",
            code="clusters_cross_strata",
            field="ids",
            expected="every primary unit in one stratum",
            got=f"primary unit {sample[ids].iloc[row]!r}",
            hint="If labels start anew in every stratum, make them a column with the stratum in "
            "the label; survey_design(..., nest=True) does so by itself.",
        )
    return codes


def _count_psu(stratum: np.ndarray, psu: np.ndarray | None, n_strata: int) -> np.ndarray:
    if psu is None:
        return (
            np.bincount(stratum, minlength=n_strata) if n_strata > 1 else np.array([len(stratum)])
        )
    owner = np.empty(psu.max() + 1, dtype=np.intp)
    owner[psu] = stratum
    return np.bincount(owner, minlength=n_strata)


def _sampling_fraction(
    sample: pd.DataFrame,
    fpc: str | None,
    stratum: np.ndarray,
    labels: np.ndarray,
    n_psu: np.ndarray,
) -> np.ndarray:
    if fpc is None:
        return np.zeros(len(labels))
    values = numeric_column(sample, fpc, field="fpc")
    if values.min() <= 0:
        raise InputError(
            "the finite population correction must be positive",
            code="bad_fpc",
            field="fpc",
            expected="numbers of primary units in the population, or fractions of at most 1",
            got=listed(np.unique(values[values <= 0])),
        )
    per_stratum = values[:1].copy()
    if len(labels) > 1:
        per_stratum = np.empty(len(labels))
        per_stratum[stratum] = values
    alike = len(labels) == 1 and values.min() == values.max()
    if not alike and (per_stratum[stratum] != values).any():
        bad = np.unique(stratum[per_stratum[stratum] != values])
        raise InputError(
            "the finite population correction varies within a stratum",
            code="bad_fpc",
            field="fpc",
            expected="one value a stratum",
            got=f"strata {listed(labels[bad])}",
        )
    if values.max() <= 1:
        return per_stratum
    if (per_stratum < n_psu).any():
        bad = np.flatnonzero(per_stratum < n_psu)
        raise InputError(
            "the population of a stratum is smaller than its sample",
            code="bad_fpc",
            field="fpc",
            expected="at least the number of primary units sampled, or fractions of at most 1 "
            "everywhere",
            got=", ".join(f"{labels[h]}: {per_stratum[h]:g} < {n_psu[h]}" for h in bad[:5]),
        )
    return n_psu / per_stratum


def _weights(
    sample: pd.DataFrame,
    weights: str | None,
    fpc: str | None,
    fraction: np.ndarray,
    stratum: np.ndarray,
) -> np.ndarray:
    if weights is None:
        if fpc is None:
            raise InputError(
                "the sample needs weights",
                code="missing_argument",
                field="weights",
                expected="the column of inverse inclusion probabilities, or fpc",
                got=None,
                hint="For a simple random sample of n from N units every weight is N/n.",
            )
        return 1.0 / fraction[stratum]
    values = numeric_column(sample, weights, field="weights")
    if values.min() <= 0:
        rows = np.flatnonzero(values <= 0)
        word = "zero" if (values == 0).any() else "negative"
        raise InputError(
            f"the weights {weights!r} are not all positive ({word} in {rows.size} rows)",
            code="bad_weight",
            field="weights",
            expected="positive inverse inclusion probabilities",
            got=f"{listed(values[rows])} in rows {listed(rows)} (counted from 0)",
        )
    need_range(values, weights, field="weights")
    return values


def _refuse_with_poisson(**given: str | None) -> None:
    if given.pop("weights") is None:
        raise InputError(
            "Poisson sampling needs weights",
            code="missing_argument",
            field="weights",
            expected="the column of 1/probability",
            got=None,
        )
    also = [name for name, value in given.items() if value is not None]
    if also:
        raise InputError(
            f"Poisson sampling has no {', '.join(also)}",
            code="conflicting_arguments",
            field=also[0],
            expected="weights only: each unit enters independently with probability 1/weight",
            got=listed(also),
        )


def _refuse_lonely(design: SurveyDesign) -> None:
    if design.poisson or design.lonely_psu != "fail" or not len(design.lonely):
        return
    raise InputError(
        f"strata with one primary unit have no variance: {listed(design.lonely)}",
        code="lonely_psu",
        field="strata",
        expected="at least two primary units a stratum",
        got=f"{len(design.lonely)} strata with one",
        hint="Join strata, or choose lonely_psu='adjust', 'average', 'certainty' or 'remove'.",
    )
