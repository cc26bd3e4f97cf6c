"""The record of JAGS's chains, summarised, and the same chains by a plain R script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from pybridge import _r_text as r
from pybridge._checks import listed
from pybridge._record import plain
from pybridge.engines._engine_request import refuse_redrawn
from pybridge.engines._package_record import PackageFit


WORST_R_HAT = 1.05
SMALLEST_SIZE = 200.0
COLUMNS = (
    *("mean", "standard_deviation", "lower", "median", "upper"),
    *("r_hat", "effective_size", "monte_carlo_error"),
)


@dataclass(frozen=True, eq=False, repr=False)
class JagsSamples(PackageFit):
    """Draws by JAGS, summarised in R; k parameters.

    Attributes
    ----------
    parameters : numpy.ndarray
        Shape (k,), object: the nodes' names; of the taxonomy model with the user's labels.
    table : mapping of str to numpy.ndarray
        Each (k,): mean, standard_deviation, lower, median, upper, r_hat (NaN with one chain),
        effective_size, monte_carlo_error (of the mean).
    n_draws : int
        Kept draws of all chains together.
    """

    parameters: np.ndarray
    table: Mapping[str, np.ndarray]
    n_draws: int

    @property
    def worst_r_hat(self) -> float:
        """The largest R-hat; NaN with one chain."""
        found = np.asarray(self.table["r_hat"])
        return float(np.nanmax(found)) if not np.isnan(found).all() else float("nan")

    @property
    def smallest_effective_size(self) -> float:
        """The smallest effective sample size; NaN without draws."""
        found = np.asarray(self.table["effective_size"])
        return float(np.nanmin(found)) if not np.isnan(found).all() else float("nan")

    def to_frame(self) -> pd.DataFrame:
        """One row a parameter: parameter and the columns of ``table``."""
        columns = {name: np.array(self.table[name]) for name in COLUMNS}
        return pd.DataFrame({"parameter": np.array(self.parameters), **columns})

    def of(self, node: str) -> pd.DataFrame:
        """The rows of one node, ``"theta"`` or ``"beta"``.

        Parameters
        ----------
        node : str
            The name before the bracket.
        """
        frame = self.to_frame()
        own = [str(name).partition("[")[0] == node for name in frame["parameter"]]
        return frame[np.array(own, dtype=bool)].reset_index(drop=True)

    def summary(self) -> str:
        """The draws as text."""
        lines = [
            self.request.summary(),
            f"{self.n_draws} draws of {len(self.parameters)} parameters; status {self.status}; "
            f"largest R-hat {self.worst_r_hat:.3f}, smallest effective size "
            f"{self.smallest_effective_size:.0f}",
        ]
        slow = np.asarray(self.table["effective_size"]) < SMALLEST_SIZE
        if slow.any():
            lines.append(
                f"effective size below {SMALLEST_SIZE:.0f}: {listed(self.parameters[slow])}"
            )
        return "\n".join([*lines, *self.conditions])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the inputs as plain Python values, ready for ``json``."""
        return {
            "request": plain(self.request),
            "status": self.status,
            "n_draws": self.n_draws,
            "parameters": plain(self.to_frame().to_dict("list")),
            "conditions": list(self.conditions),
            "provenance": plain(self.provenance),
        }

    def _need_seed(self) -> None:
        inits = self.inputs.get("inits") or {}
        chains = [item for item in inits.values() if isinstance(item, Mapping)] or [inits]
        own = all({".RNG.seed", ".RNG.state"} & set(chain) for chain in chains)
        if self.inputs.get("seed") is None and not own:
            refuse_redrawn("JAGS drew", hint="Pass seed=, or .RNG.name and .RNG.seed in inits.")

    def _script(self, data: pd.DataFrame | None) -> str:
        return rjags_script(self.request.summary(), self.inputs)


def rjags_script(title: str, inputs: Mapping[str, Any]) -> str:
    """The data, the model, and the functions by which the bridge runs it; leaves ``draws``."""
    path = resources.files("pybridge.r") / "shims" / "rjags.R"
    body = ",\n  ".join(f"{name} = {r.item(item)}" for name, item in inputs.items())
    head = "\n".join([f"# {r.ascii_line(title)}", *r.EXACT_NUMBERS])
    return (
        f"{head}\n{path.read_text(encoding='utf-8')}\n"
        f"inputs <- list(\n  {body}\n)\n"
        "draws <- rjags_object(inputs)\nprint(summary(draws))\n"
    )
