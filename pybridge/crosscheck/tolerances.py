"""How far two producers may lie apart: named constants, each with its unit and its reason.

A global relative tolerance would be too wide for numbers that the data determine well and too
narrow for those they hardly determine. So estimates and parameters are compared in units of their
own standard error, and maxima in log-likelihood: where an optimiser stopped does not matter while
it changes the answer by less than the data could ever tell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BITS = "bits"
STANDARD_ERROR = "standard errors"
LOG_LIKELIHOOD = "log-likelihood"
RELATIVE = "of itself"
LAST_DIGIT = "last digits"
UNITS = (BITS, STANDARD_ERROR, LOG_LIKELIHOOD, RELATIVE, LAST_DIGIT)


@dataclass(frozen=True)
class Tolerance:
    """The largest difference that is no difference.

    Attributes
    ----------
    limit : float
        In ``unit``.
    unit : str
        ``bits`` (representable numbers apart), ``standard errors``, ``log-likelihood``,
        ``of itself`` (relative), or ``last digits`` (of a printed number).
    reason : str
        Why this much and no more.
    one_sided : bool
        Only a first value above the second counts.
    """

    limit: float
    unit: str
    reason: str
    one_sided: bool = False

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"no such unit: {self.unit}")


def relative(tolerance: Tolerance, limit: float | None = None) -> Tolerance:
    """The same for a quantity without a standard error (a standard error, an MSE)."""
    return replace(tolerance, unit=RELATIVE, limit=tolerance.limit if limit is None else limit)


def likelihood(tolerance: Tolerance, limit: float) -> Tolerance:
    """The same for a log-likelihood."""
    return replace(tolerance, unit=LOG_LIKELIHOOD, limit=limit)


# ---------------------------------------------------------------------------------- the same sums

IDENTICAL = Tolerance(
    0.0, BITS, "the same R on the same machine does the same arithmetic, call for call"
)
LAST_BITS = Tolerance(
    4.0, BITS, "R's covariance is scaled by the unit before or after its root is taken: rounding"
)
KEPT = Tolerance(
    1e-9, RELATIVE, "answers kept from another machine: another BLAS gives other last digits"
)
TWO_ROUTES = Tolerance(
    1e-10, RELATIVE, "closed formulas summed in another order: rounding of sums of some 200 terms"
)

# ------------------------------------------------------------------------------- exact optimisers

# Plain R brackets the root of the score, the native engine polishes by Newton's method: both end
# within rounding of the root. Measured 2e-14 of the value; a standard error is less than that
# times 1e6 in every case here.
EXACT = Tolerance(1e-8, STANDARD_ERROR, "two exact optimisers: rounding of the score at its root")
EXACT_LOG_LIKELIHOOD = Tolerance(
    1e-8, LOG_LIKELIHOOD, "two sums of the same terms at the same optimum: rounding"
)
NEVER_ABOVE = Tolerance(
    1e-8, LOG_LIKELIHOOD, "nothing lies above the maximum, but for rounding", one_sided=True
)
# Golden section on a profile sees the likelihood only: half of a double's digits.
GOLDEN_SECTION = Tolerance(
    1e-4, STANDARD_ERROR, "golden section on the likelihood stops at the root of rounding"
)
NUMERICAL_DERIVATIVES = Tolerance(
    1e-4, RELATIVE, "second derivatives by central differences keep four digits"
)
DENSE_SEARCH = Tolerance(
    1e-4, STANDARD_ERROR, "a search that sees the likelihood only stops at the root of rounding"
)
QUADRATURE = Tolerance(
    1e-6, STANDARD_ERROR, "two quadratures of the same posterior, in posterior deviations"
)

# --------------------------------------------------------------------------------- R's optimisers

# sae stops when the variance moves by less than PRECISION = 1e-4 of itself. Scoring converges
# linearly here, and the variance is a few standard errors at most: measured up to 6e-6 of itself.
SAE = Tolerance(1e-3, STANDARD_ERROR, "sae stops at a relative change of 1e-4 in the variance")
SAE_LOG_LIKELIHOOD = Tolerance(
    1e-3, LOG_LIKELIHOOD, "the ordinary likelihood has a slope where REML or FH has its optimum"
)
# What an R fit lacks to its own maximum is second order, since there is no slope there.
SAE_SHORTFALL = Tolerance(
    1e-6, LOG_LIKELIHOOD, "a relative change of 1e-4 in the variance costs the square of that"
)
SAE_TIGHT = Tolerance(1e-7, STANDARD_ERROR, "sae with PRECISION = 1e-12 stops at its rounding")

# The rule for stopping divides by the signed parameter: a negative correlation is not watched.
SPATIAL = Tolerance(
    1e-2, STANDARD_ERROR, "sae stops at a relative change of 1e-4, and does not watch rho < 0"
)
SPATIAL_SHORTFALL = likelihood(SPATIAL, 1e-4)

# emdi searches by optimize() with its default tolerance, which is absolute; on variances rescaled
# to near 100 it leaves 1e-4 of the variance. Its likelihood on the default interval is as coarse.
EMDI = Tolerance(
    1e-3, STANDARD_ERROR, "optimize() at its default tolerance leaves 1e-4 of the variance"
)
EMDI_RAW = Tolerance(
    1e-1, STANDARD_ERROR, "optimize()'s tolerance is absolute: in small units little is left"
)
HBSAE = Tolerance(
    2e-3, STANDARD_ERROR, "hbsae knows the sampling variances up to a prior of 10^4 observations"
)
HBSAE_COEFFICIENTS = Tolerance(
    0.1, STANDARD_ERROR, "hbsae gives them at the variance's mean, the exact ones are averaged"
)

# evd and ismev take numerical derivatives. On 60 healthy tails they lay within 0.006 standard
# errors and 2.2e-5 in log-likelihood of each other; in other units than 1 a raw call is worse.
TAIL_GUARDED = Tolerance(
    1e-3, STANDARD_ERROR, "rescaled to mean 1 and tightened, R's search ends near 1e-6 of the shape"
)
TAIL_RAW = Tolerance(
    5e-2, STANDARD_ERROR, "R's searches at their defaults stop up to 2e-3 in shape too early"
)
TAIL_SHORTFALL = likelihood(TAIL_GUARDED, 1e-6)
TAIL_SHORTFALL_RAW = likelihood(TAIL_RAW, 1e-3)
TAIL_STANDARD_ERROR = Tolerance(
    1e-2, RELATIVE, "R's Hessian is taken by differences, the native one in closed form"
)

# metafor maximises over the variances themselves; JAGS draws.
METAFOR = Tolerance(
    1e-3, STANDARD_ERROR, "metafor's search stops at a relative change of the likelihood"
)
METAFOR_SHORTFALL = likelihood(METAFOR, 1e-4)
MONTE_CARLO = Tolerance(
    0.2, STANDARD_ERROR, "five Monte Carlo errors at an effective size of some 600 draws"
)

MONTE_CARLO_ERRORS = Tolerance(
    5.0, STANDARD_ERROR, "five errors of the simulation itself, over some hundreds of numbers"
)

# ------------------------------------------------------------------------------- printed numbers

PRINTED = Tolerance(0.51, LAST_DIGIT, "rounding of the printed number, by the same engine")
PRINTED_OTHER_ENGINE = Tolerance(
    1.0, LAST_DIGIT, "rounding of the printed number, and what the engine that printed it left"
)
