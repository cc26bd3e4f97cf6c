"""What R's packages do against expectation, and whether the installed versions still do it.

A row for each behaviour that the guarded mode is built around and that a small probe can see. The
probes are plain R, in ``pybridge/r/shims/traps.R`` under the names given here. A newer package may
have mended one; the guarded mode stays right then, as it compares with the exact optimum, but a
number of raw mode or of R itself is another one than with the older package.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pandas as pd

from pybridge._options import choose
from pybridge._record import Record
from pybridge.errors import EngineError, EngineUnavailable
from pybridge.r import call, call_many

STATES = ("as documented", "mended", "not installed", "not probed")
# Some probes use the data of another package.
_ALSO = {"evd": ("ismev",)}
_SECONDS = 120.0


class Trap(NamedTuple):
    """One behaviour of one package: the probe's name, what R does, what guarded mode does."""

    package: str
    name: str
    behaviour: str
    guarded: str


TRAPS = tuple(
    Trap(name.partition("_")[0], name, behaviour, guarded)
    for name, behaviour, guarded in (
        ("sae_offset", "offset() in a formula is ignored in silence", "refused"),
        (
            "sae_vardir_symbol",
            "vardir as text, vector or expression fails where data is given",
            "columns by name",
        ),
        (
            "sae_precision",
            "the model variance stops at a relative error of some millionths",
            "the exact optimum beside it",
        ),
        (
            "sae_silent_limit",
            "the iteration limit gives one NA without a word",
            "status not_converged",
        ),
        (
            "sae_negative_variance",
            "a negative sampling variance gives a negative mean squared error",
            "refused",
        ),
        (
            "sae_zero_variance",
            "a model variance of 0 counts as converged, without a flag",
            "status boundary",
        ),
        (
            "sae_spatial_limit",
            "the spatial fits stop with an R error at the iteration limit",
            "status not_converged",
        ),
        (
            "sae_factor_labels",
            "direct() returns codes for the labels of a factor with a domain without units",
            "labels kept",
        ),
        (
            "sae_post_strata",
            "pssynt() gives 0 everywhere where the codes are not columns",
            "refused",
        ),
        (
            "emdi_absolute_tolerance",
            "the optimiser's tolerance is absolute: small scales are fitted badly",
            "variances rescaled",
        ),
        (
            "emdi_underflow",
            "amrl_yl and ampl_yl underflow and return the end of the interval",
            "rescaled",
        ),
        (
            "emdi_bias_outside",
            "ML: the bias of the error outside the sample has the wrong sign",
            "computed anew",
        ),
        ("emdi_robust_k", "robust fits ignore k", "2.2.3 is the least version"),
        (
            "emdi_logit",
            "logit with bias correction stops: non-finite function value",
            "own quadrature",
        ),
        (
            "emdi_arcsin",
            "arcsin with bias correction misses a narrow density and returns 0",
            "closed form",
        ),
        (
            "emdi_order",
            "combine_data() sorts by name, so that a proximity matrix no longer fits",
            "matched by label",
        ),
        (
            "emdi_raking",
            "raking misses its target where the shares do not add up to one",
            "shares normalised",
        ),
        ("emdi_seed", "fh() sets R's random seed", "random stream put back"),
        (
            "evd_units",
            "fpot's optimum depends on the units of the scores",
            "excesses divided by their mean",
        ),
        (
            "evd_unbounded",
            "five values: successful, shape near -1, standard error of some millionths",
            "status infeasible",
        ),
        (
            "evd_point_process_profile",
            "profile() of a point process fails: unused argument",
            "own profile",
        ),
        ("evd_density_at_location", "dgpd() is 0 at the location", "1/scale"),
        ("evd_tiny_shape", "pgpd() loses its digits at tiny shapes", "exponential limit"),
        (
            "evd_return_level",
            "the parameter of a return level (mper) stops early",
            "rescaled, exact optimum",
        ),
        ("evd_no_exceedance", "exi() is NaN where nothing exceeds", "refused"),
        (
            "ismev_simplex",
            "gpd.fit's Nelder-Mead stops with an error of up to 1e-3 in the shape",
            "tighter tolerance",
        ),
        (
            "ismev_point_process",
            "pp.fit stops far from the maximum from its own start",
            "a start near the maximum",
        ),
        ("ismev_units", "standard errors depend on the units of the scores", "rescaled"),
        ("ismev_missing", "a missing score is an obscure error of optim", "refused by name"),
        ("ismev_shape_zero", "a start at shape 0 fails", "exponential limit"),
        (
            "ismev_default_range",
            "mrl.plot's default range is max - 0.1, whatever the units",
            "range from the scores",
        ),
        (
            "survey_lonely_adjust",
            "lonely_psu 'adjust' does not centre a stratum of one (survey up to 4.1 only)",
            "as survey 4.1, natively",
        ),
        ("survey_lone_unit", "a domain of one unit has standard error 0", "NaN, single_unit"),
    )
)
PACKAGES = tuple(dict.fromkeys(item.package for item in TRAPS))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TrapReport(Record):
    """What the probes saw.

    Attributes
    ----------
    rows : tuple of tuple
        For each trap: package, installed version ("" where there is none), the probe's name,
        state (one of :data:`STATES`), R's words where a probe stopped, behaviour, guarded.
    """

    rows: tuple[tuple[str, ...], ...]

    @property
    def mended(self) -> tuple[str, ...]:
        """The names of the traps that the installed packages no longer hold."""
        return tuple(row[2] for row in self.rows if row[3] == "mended")

    def to_frame(self) -> pd.DataFrame:
        """A row for each trap."""
        columns = ["package", "version", "trap", "state", "said", "behaviour", "guarded"]
        return pd.DataFrame(list(self.rows), columns=columns)

    def summary(self) -> str:
        """The traps as text, a heading for each package."""
        lines: list[str] = []
        last = None
        for package, version, name, state, said, behaviour, guarded in self.rows:
            if package != last:
                lines.append(f"{package} {version}".rstrip())
                last = package
            lines.append(f"    {state:<14} {name.partition('_')[2]}: {behaviour}")
            lines.append(f"    {'':<14} guarded: {guarded}" + (f"; R said: {said}" if said else ""))
        counts = {state: sum(row[3] == state for row in self.rows) for state in STATES}
        lines.append(", ".join(f"{n} {state}" for state, n in counts.items() if n))
        return "\n".join(lines)


def probe_traps(*packages: str) -> TrapReport:
    """Ask R whether the installed packages still behave as documented.

    Parameters
    ----------
    *packages : str
        Of :data:`PACKAGES`; default all. Each takes a second or less.

    Returns
    -------
    TrapReport
        A package that is not there is a state, not an error.

    Raises
    ------
    InputError
        For a package without traps in the table.
    EngineUnavailable
        Where R or rpy2 themselves are missing.
    """
    wanted = [choose("packages", name, PACKAGES) for name in packages] or list(PACKAGES)
    call("selftest_session", {})  # without R nothing below can be told
    return TrapReport(tuple(row for name in dict.fromkeys(wanted) for row in _probed(name)))


def _probed(package: str) -> list[tuple[str, ...]]:
    traps = [item for item in TRAPS if item.package == package]
    try:
        replies = call_many(
            "traps_probe",
            [{"name": item.name} for item in traps],
            packages=(package, *_ALSO.get(package, ())),
            time_limit=_SECONDS,
        )
    except EngineUnavailable as error:
        state = "not installed" if error.code == "package_missing" else "not probed"
        said = "" if error.field == package and state == "not installed" else str(error)
        return [_row(item, "", state, said) for item in traps]
    except EngineError as error:
        return [_row(item, "", "not probed", error.message) for item in traps]
    rows = []
    for item, reply in zip(traps, replies):
        version = reply.versions[package]
        if reply.error is not None:
            rows.append(_row(item, version, "not probed", reply.error["message"].strip()))
        else:
            state = "as documented" if reply.value["trapped"][0] else "mended"
            rows.append(_row(item, version, state, ""))
    return rows


def _row(item: Trap, version: str, state: str, said: str) -> tuple[str, ...]:
    return (item.package, version, item.name, state, said, item.behaviour, item.guarded)
