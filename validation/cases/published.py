"""Numbers that were printed somewhere, as text: their last digit says how well they are known.

Sources are named; "memory" in the notes of whoever collected them means that the page itself was
not at hand, so that such a number confirms but cannot refute. "reference run" is R's own answer,
run once and kept to the digits given.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

POVERTY = Path(__file__).with_name("published_poverty.csv")


@dataclass(frozen=True)
class Published:
    """One published fit.

    ``printed`` maps a quantity to the numbers as printed; ``not_possible`` says of numbers that
    cannot be reproduced why.
    """

    name: str
    source: str
    printed: dict[str, tuple[str, ...]]


PUBLISHED = (
    Published(
        "milk REML",
        "sae's example (R Journal 7, 2015)",
        {"model variance": ("0.01855022",), "log-likelihood": ("12.677478",)},
    ),
    Published(
        "milk at the optimum",
        "reference run of sae with a tight PRECISION; REML, ML, FH",
        {"model variances": ("0.01855033476", "0.01551750871", "0.01642026365")},
    ),
    Published(
        "grapes REML",
        "reference run of sae",
        {
            "model variance": ("103.9121845",),
            "log-likelihood": ("-1221.042742",),
            "coefficients": ("-0.01001093", "0.48442615"),
        },
    ),
    Published(
        "grapes spatial REML",
        "reference run of sae; sae's vignette",
        {
            "model variance": ("69.74898653",),
            "correlation": ("0.6142697392",),
            "log-likelihood": ("-1210.200401",),
        },
    ),
    Published(
        "grapes spatial ML",
        "reference run of sae",
        {"model variance": ("69.22195331",), "correlation": ("0.6045822267",)},
    ),
    Published(
        "spacetime",
        "reference run of sae; sigma21, rho1, sigma22, rho2",
        {"components": ("0.000479482749", "0.646077200", "0.000496155375", "0.204724429")},
    ),
    Published(
        "corn and soybean",
        "Battese, Harter and Fuller (1988), unit 33 left out; reference run of sae",
        {
            "model variance": ("140.0238897",),
            "error variance": ("147.2686295",),
            "coefficients": ("51.07039808", "0.328721732", "-0.134568448"),
            "log-likelihood": ("-149.1833154",),
            "estimate": (
                *("122.195403435", "126.228017065", "106.663763338", "108.422190382"),
                *("144.307169560", "112.158586024", "112.780104057", "122.001966889"),
                *("115.343847267", "124.414368379", "106.888266848", "143.031210807"),
            ),
        },
    ),
    Published(
        "eusilcA ML",
        "emdi's vignette (Harmening, Kreutzmann, Schmidt, Salvati and Schmid 2023)",
        {
            "model variance": ("1371195",),
            "coefficients": ("3070.51231", "1.05939", "1.74564"),
            "log-likelihood": ("-847.8303",),
            "AIC": ("1703.661",),
            "BIC": ("1713.834",),
            "first estimates": ("14242.04", "21616.40", "12680.38"),
        },
    ),
    Published(
        "eusilcA REML",
        "reference run of emdi",
        {
            "model variance": ("1464702",),
            "coefficients": ("3075.1785", "1.0582460", "1.7532307"),
            "log-likelihood": ("-847.8506",),
        },
    ),
    Published(
        "rain over 30",
        "Coles (2001), section 4.4.1",
        {
            "scale": ("7.44",),
            "shape": ("0.184",),
            "log-likelihood": ("-485.1",),
            "standard errors": ("0.959", "0.101"),
        },
    ),
    Published(
        "rain over 30, ismev",
        "a public notebook that runs ismev",
        {"scale": ("7.4422639",), "shape": ("0.1843027",), "log-likelihood": ("-485.0937",)},
    ),
    Published(
        "rain over 30, evd",
        "reference run of evd",
        {"scale": ("7.441098092",), "shape": ("0.184522723",)},
    ),
    Published(
        "rain over 10, ismev",
        "ismev's example as run by rdrr.io",
        {
            "scale": ("7.43768624",),
            "shape": ("0.05045225",),
            "log-likelihood": ("-6123.465",),
            "scale error": ("0.23606472",),
            "exceedance rate": ("0.1142547",),
        },
    ),
    Published(
        "rain, level of 100 years",
        "reference run: root finding on the profile in plain R; 365 days a year",
        {
            "return level": ("106.328",),
            "profile interval": ("80.857", "184.988"),
            "delta interval": ("65.48", "147.18"),
        },
    ),
    Published(
        "rain, point process",
        "Coles (2001), section 7.3; location, scale, shape",
        {"parameters": ("39.55", "9.20", "0.184")},
    ),
    Published(
        "Danish fires over 10",
        "McNeil (1997): 109 losses",
        {"shape": ("0.50",), "scale": ("6.98",), "exceedances": ("109",)},
    ),
    Published(
        "Danish fires over 20",
        "McNeil (1997): 36 losses",
        {"shape": ("0.68",), "scale": ("9.63",), "exceedances": ("36",)},
    ),
    Published(
        "Danish fires over 10, evd",
        "reference run of evd",
        {"shape": ("0.496987747",), "scale": ("6.975450389",)},
    ),
)

# Numbers that stand in print and cannot be compared, with the reason.
UNREACHABLE = {
    "rain, profile interval of the shape (0.019, 0.418) and of the level (81.6, 185.7)": (
        "Coles (2001) reads them off his plots; root finding gives (0.0136, 0.4154) and (80.9, 185)"
    ),
    "rain, level of 100 years by the delta method (65.6, 147.0), variance 431.3": (
        "Coles (2001) computes them from parameters rounded to three digits; unrounded ones give "
        "(65.5, 147.2) and 434.3"
    ),
    "tables of Rao and Molina (2015)": "the book is not reachable, so no digit could be verified",
    "corn and soybean, variances 140 and 147 of Battese, Harter and Fuller (1988)": (
        "fitted by another method (fitting of constants) than REML, which gives 140.02 and 147.27"
    ),
}


def poverty() -> pd.DataFrame:
    """Poverty in the Spanish provinces: the table of sae's vignette (direct, synthetic, SSD)."""
    return pd.read_csv(POVERTY, float_precision="round_trip")


def last_digit(text: str) -> float:
    """One unit of the last printed digit."""
    return 10.0 ** -len(text.partition(".")[2])
