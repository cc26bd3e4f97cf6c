"""Designs for R's survey: svydesign, calibrate and postStratify, described here and made in R."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pybridge._checks import need_frame, real_array
from pybridge._options import LONELY_PSU, MODES, choose, real_number, yes_or_no
from pybridge.engines import _engine_request as requests
from pybridge.engines._r_formula import FUNCTIONS, r_names, read_one_sided
from pybridge.engines._engine_request import EngineRequest
from pybridge.engines._survey_units import check_design
from pybridge.errors import InputError

PPS = ("brewer", "overton", "HR", "ppsmat", "poisson")


@dataclass(frozen=True, eq=False)
class SvyDesign:
    """A design in the words of svydesign, with the calibrations that follow it.

    It holds the sample; what is estimated from it does not. R makes the design anew in each call.

    Attributes
    ----------
    frame : pandas.DataFrame
        The sample.
    formulas : mapping of str to str
        ids, strata, fpc, weights, probs, as R formulas.
    options : mapping
        nest, check.strata, variance.
    pps : str or None
    joint : numpy.ndarray or None
        Shape (n, n), joint inclusion probabilities.
    psum : float or None
        Of pps="HR".
    lonely_psu, adjust_domain_lonely
        R's options of these names.
    steps : tuple of mapping
        Calibrations and post-stratifications, in order.
    mode : str
    """

    frame: pd.DataFrame
    formulas: Mapping[str, str]
    options: Mapping[str, Any]
    pps: str | None
    joint: np.ndarray | None
    lonely_psu: str
    adjust_domain_lonely: bool
    mode: str
    steps: tuple[Mapping[str, Any], ...] = ()
    psum: float | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that design and steps use."""
        texts = [*self.formulas.values(), *(step["formula"] for step in self.steps)]
        found = [read_one_sided(text, self.frame, field="design").columns for text in texts]
        return tuple(dict.fromkeys(column for one in found for column in one))

    def summary(self) -> str:
        """The calls, as R would have them."""
        words = ", ".join(f"{name} = {text}" for name, text in self.formulas.items())
        inside = "" if self.psum is None else f"({self.psum!r})"
        pps = "" if self.pps is None else f", pps = {self.pps}{inside}"
        steps = "".join(f" |> {step['call']}({step['formula']})" for step in self.steps)
        return f"svydesign({words}{pps}){steps}"

    def __repr__(self) -> str:
        return f"{self.summary()}: {len(self.frame)} units"

    def for_r(self, more: Mapping[str, str] | tuple[str, ...] = ()) -> dict[str, Any]:
        """What the shims take of the design; ``names`` are R's names of all columns."""
        names = r_names(dict.fromkeys([*self.columns, *more]), table=self.frame)

        def code(text: str) -> str:
            return read_one_sided(text, self.frame, field="design", names=names).code

        steps = [
            {
                "call": step["call"],
                "formula": code(step["formula"]),
                "population": _population_for_r(step, names),
                "options": dict(step["options"]),
            }
            for step in self.steps
        ]
        return {
            "names": names,
            "design": {
                "formulas": {name: code(text) for name, text in self.formulas.items()},
                "options": dict(self.options),
                "pps": self.pps,
                "joint": self.joint,
                "psum": self.psum,
            },
            "steps": {f"step{k}": step for k, step in enumerate(steps)},
            "lonely": self.lonely_psu,
            "lonely_domain": self.adjust_domain_lonely,
            "functions": list(FUNCTIONS),
            "guarded": self.mode == "guarded",
        }


def svydesign(
    ids: str | int,
    data: pd.DataFrame,
    *,
    probs: str | None = None,
    strata: str | None = None,
    fpc: str | None = None,
    weights: str | None = None,
    nest: bool = False,
    check_strata: bool | None = None,
    pps: str | None = None,
    joint: Any = None,
    psum: float | None = None,
    variance: str = "HT",
    lonely_psu: str = "fail",
    adjust_domain_lonely: bool = False,
    mode: str = "guarded",
) -> SvyDesign:
    """A complex sample in the words of survey::svydesign; several stages as in R.

    Parameters
    ----------
    ids : str or int
        ``"~dnum + snum"``, the name of a column, or ``"~1"`` (also 0 and 1) without clusters.
    data : pandas.DataFrame
        One row a sampled unit.
    probs, strata, fpc, weights : str, optional
        Formulas, or names of columns.
    nest, check_strata
        As in R.
    pps : {"brewer", "overton", "HR", "ppsmat", "poisson"}, optional
        Sampling proportional to size without replacement, or Poisson sampling with ``probs``.
        ``"ppsmat"`` takes ``joint``, the (n, n) joint inclusion probabilities.
    psum : float, optional
        For ``pps="HR"``: the sum of squared inclusion probabilities of the population over the
        sample size, which R estimates from the sample otherwise. R takes it for the first stratum
        only, so that it is refused beside strata.
    variance : {"HT", "YG"}
        For pps: Horvitz-Thompson's or Yates-Grundy's.
    lonely_psu : {"fail", "adjust", "average", "certainty", "remove"}
        R's option survey.lonely.psu.
    adjust_domain_lonely : bool
        R's option survey.adjust.domain.lonely.
    mode : {"guarded", "raw"}
        Of everything that is estimated from the design. Guarded, weights that are not positive and
        missing values are refused, and strata with one primary unit before R is asked.

    Raises
    ------
    InputError

    References
    ----------
    Lumley (2010), Complex Surveys.
    """
    need_frame("data", data)
    guarded = choose("mode", mode, MODES) == "guarded"
    given = {"ids": ids, "probs": probs, "strata": strata, "fpc": fpc, "weights": weights}
    formulas = {name: side(name, item) for name, item in given.items() if item is not None}
    for name, text in formulas.items():
        read_one_sided(text, data, field=name)
    options: dict[str, Any] = {"nest": yes_or_no("nest", nest)}
    if check_strata is not None:
        options["check.strata"] = yes_or_no("check_strata", check_strata)
    choose("variance", variance, ("HT", "YG"))
    if pps is not None:
        choose("pps", pps, PPS)
        options["variance"] = variance
    elif variance != "HT" and guarded:
        raise _missing("pps", "Yates and Grundy's variance is of sampling proportional to size")
    matrix = _joint(joint, pps, len(data))
    if pps == "poisson" and probs is None:
        raise _missing("probs", "Poisson sampling needs the probabilities")
    if not {"weights", "probs", "fpc"} & set(formulas) and guarded:
        raise _missing("weights", "the sample needs weights: R would take equal probabilities")
    design = SvyDesign(
        frame=data,
        formulas=formulas,
        options=options,
        pps=pps,
        joint=matrix,
        lonely_psu=choose("lonely_psu", lonely_psu, LONELY_PSU),
        adjust_domain_lonely=yes_or_no("adjust_domain_lonely", adjust_domain_lonely),
        mode=mode,
        psum=None if psum is None else _psum(psum, pps, strata),
    )
    if guarded:
        check_design(design)
    return design


def design_request(design: SvyDesign, function: str, **words: Any) -> EngineRequest:
    """A request about the design, for messages and records."""
    arguments = {"design": design.summary(), **words.pop("arguments", {})}
    return requests.request(
        function, arguments, mode=design.mode, seed=None, package="survey", **words
    )


def side(name: str, item: Any) -> str:
    """A one-sided formula from a formula or the name of a column."""
    if name == "ids" and isinstance(item, (int, np.integer)) and not isinstance(item, bool):
        if item in (0, 1):
            return "~1"
    if not isinstance(item, str):
        raise InputError(
            f"{name} must be a formula or the name of a column",
            code="bad_name",
            field=name,
            expected=f"'~{name}' or '{name}'",
            got=item,
        )
    text = item.strip()
    return text if text.startswith("~") else f"~ `{text}`"


def need_design(design: Any) -> SvyDesign:
    """InputError for anything but a design of `svydesign`."""
    if isinstance(design, SvyDesign):
        return design
    raise InputError(
        "design must come from pybridge.engines.survey.svydesign(...)",
        code="wrong_type",
        field="design",
        expected="SvyDesign",
        got=type(design).__name__,
    )


def positive(field: str, value: Any) -> float:
    """A number above 0."""
    number = real_number(field, value)
    if number > 0:
        return number
    raise InputError(
        f"{field} must be positive", code="bad_tolerance", field=field, expected="> 0", got=value
    )


def _missing(field: str, message: str) -> InputError:
    return InputError(
        message, code="missing_argument", field=field, expected="a column, or a formula", got=None
    )


def _psum(psum: Any, pps: str | None, strata: str | None) -> float:
    number = positive("psum", psum)
    if pps == "HR" and strata is None:
        return number
    raise InputError(
        "psum is of pps='HR' without strata",
        code="not_available",
        field="psum",
        expected="pps='HR' and no strata, or no psum",
        got=f"strata={strata!r}" if pps == "HR" else f"pps={pps!r}",
        hint="Beside strata R takes it for the first of them, and has no variance for the others.",
    )


def _joint(joint: Any, pps: str | None, n: int) -> np.ndarray | None:
    if (pps == "ppsmat") != (joint is not None):
        raise InputError(
            "pps='ppsmat' and joint go together",
            code="missing_argument",
            field="joint",
            expected="joint=, an (n, n) matrix of joint inclusion probabilities",
            got=None if joint is None else pps,
        )
    if joint is None:
        return None
    matrix = real_array("joint", joint)
    if matrix.shape != (n, n):
        raise InputError(
            "joint must be a matrix of units by units",
            code="bad_shape",
            field="joint",
            expected=f"shape ({n}, {n})",
            got=f"shape {matrix.shape}",
        )
    return matrix


def _population_for_r(step: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    table = step["population"]
    if step["call"] == "postStratify":
        return {names.get(name, name): column for name, column in table.items()}
    names_of = list(next(iter(table.values())))
    values = np.array(
        [[one[name] for name in names_of] for one in table.values()], dtype=np.float64
    )
    # One row a cluster; without a stage a single row, which R gets as a vector.
    return {"name": names_of, "value": values[0] if list(table) == [None] else values}
