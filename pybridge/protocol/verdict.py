"""The verdict on every pair of models, by every scorer, and the table of the family."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from pybridge._files import place, write_text, writing
from pybridge._record import Record, plain
from pybridge.protocol.outcomes import GATES, GateOutcome
from pybridge.provenance import Provenance
from pybridge.tails._intervals import Interval
from pybridge.tails.records import ParetoFit
from pybridge.tails.scan import TailScan


@dataclass(frozen=True, eq=False, repr=False)
class PairVerdict(Record):
    """One pair by one scorer.

    Attributes
    ----------
    scorer, model_a, model_b : str
    verdict : {"PASS", "KILL"}
    first_failure : str
        The first gate or criterion that is not passed, "" without one.
    outcomes : tuple of GateOutcome
        G1 to G5, P1, P2; every one computed, also after the first failure.
    paired : bool
        Whether items were resampled together.
    shape_a, shape_b : float
    difference : Interval
        Of the shapes, A minus B, by the same resamples: paired where these are. Shown beside P1,
        whose two intervals do not change with pairing.
    scan_passes : tuple of (float, str)
        For every quantile of the scan "pass" or "fail", everything but G5 taken together there,
        or "too few" exceedances to say.
    fishing : str
        A warning where the scan finds a pass that does not hold, else "".
    run : {"registered", "EXPLORATORY"}
    """

    scorer: str
    model_a: str
    model_b: str
    verdict: str
    first_failure: str
    outcomes: tuple[GateOutcome, ...]
    paired: bool
    shape_a: float
    shape_b: float
    difference: Interval
    scan_passes: tuple[tuple[float, str], ...]
    fishing: str
    run: str

    def outcome(self, gate: str) -> GateOutcome:
        """One gate or criterion by its name, for example "G4"."""
        return next(one for one in self.outcomes if one.gate == gate)

    def summary(self) -> str:
        why = f" ({self.first_failure})" if self.first_failure else ""
        how = "items resampled in pairs" if self.paired else "each model resampled alone"
        lines = [
            f"{self.model_a} against {self.model_b} by {self.scorer}: {self.verdict}{why}; {how}"
            + ("" if self.run == "registered" else f" [{self.run}]"),
            *(f"  {one.summary()}" for one in self.outcomes),
            f"  beside P1, {self.difference.summary()}",
        ]
        return "\n".join([*lines, f"  WARNING: {self.fishing}"] if self.fishing else lines)


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Record):
    """The family: all pairs by all scorers, under one protocol.

    Attributes
    ----------
    pairs : tuple of PairVerdict
    exploratory : bool
        Whether the protocol was not registered; then nothing here confirms anything.
    protocol : mapping
        The canonical form.
    protocol_sha256, data_sha256 : str
    registered_at : str
        "" in an exploratory run.
    fits : mapping of "scorer/model" to ParetoFit
    scans : mapping of scorer to TailScan
        Beside the verdict, with bootstrap intervals; never part of it.
    findings : mapping of "scorer/model" to tuple of (str, str)
        What is odd about the scores that were fitted: a code and a sentence each, as of
        :func:`pybridge.tails.diagnosis.diagnose_scores`. Never part of the verdict.
    provenance : Provenance
    """

    pairs: tuple[PairVerdict, ...]
    exploratory: bool
    protocol: Mapping[str, Any]
    protocol_sha256: str
    registered_at: str
    data_sha256: str
    fits: Mapping[str, ParetoFit]
    scans: Mapping[str, TailScan]
    findings: Mapping[str, tuple[tuple[str, str], ...]]
    provenance: Provenance

    @property
    def n_passed(self) -> int:
        return sum(pair.verdict == "PASS" for pair in self.pairs)

    @property
    def label(self) -> str:
        """How this run may be called."""
        return "EXPLORATORY" if self.exploratory else "registered"

    def pair(self, model_a: str, model_b: str, scorer: str | None = None) -> PairVerdict:
        """The verdict on two models, in either order."""
        for one in self.pairs:
            if {one.model_a, one.model_b} == {model_a, model_b} and scorer in (None, one.scorer):
                return one
        raise KeyError((model_a, model_b, scorer))

    def to_frame(self) -> pd.DataFrame:
        """The family table: a row a pair, a column a gate, first failure, verdict."""
        rows = []
        for one in self.pairs:
            row: dict[str, Any] = {
                "scorer": one.scorer,
                "model_a": one.model_a,
                "model_b": one.model_b,
                "shape_a": one.shape_a,
                "shape_b": one.shape_b,
                "difference": one.difference.estimate,
            }
            row.update({outcome.gate: outcome.verdict for outcome in one.outcomes})
            row.update(first_failure=one.first_failure, verdict=one.verdict, run=self.label)
            rows.append(row)
        return pd.DataFrame(rows)

    def gates_frame(self) -> pd.DataFrame:
        """A row a pair and gate, with observed value, limit, interval and sentence."""
        names = ("gate", "name", "verdict", "observed", "limit", "lower", "upper", "sentence")
        rows = [
            {
                "scorer": one.scorer,
                "model_a": one.model_a,
                "model_b": one.model_b,
                **{name: getattr(outcome, name) for name in names},
                "run": self.label,
            }
            for one in self.pairs
            for outcome in one.outcomes
        ]
        return pd.DataFrame(rows)

    def scan_frame(self) -> pd.DataFrame:
        """The scans of all scorers, one row a scorer, model and quantile."""
        parts = [scan.to_frame().assign(scorer=scorer) for scorer, scan in self.scans.items()]
        table = pd.concat(parts, ignore_index=True).assign(run=self.label)
        return table[["scorer", *(name for name in table.columns if name != "scorer")]]

    def findings_frame(self) -> pd.DataFrame:
        """A row a finding about the scores of one model by one scorer."""
        rows = [
            (scorer, model, code, meaning, self.label)
            for scorer in self.protocol["scorers"]
            for model in self.protocol["models"]
            for code, meaning in self.findings[f"{scorer}/{model}"]
        ]
        return pd.DataFrame(rows, columns=["scorer", "model", "finding", "meaning", "run"])

    def summary(self) -> str:
        mark = "EXPLORATORY RUN: the protocol was not registered, nothing here is confirmed."
        head = [mark] if self.exploratory else [f"Protocol registered {self.registered_at}"]
        head += [
            f"Protocol SHA-256 {self.protocol_sha256}",
            f"Data SHA-256 {self.data_sha256}",
            f"{self.n_passed} of {len(self.pairs)} pairs pass every gate and criterion",
            "",
            self._table().to_string(index=False),
            "",
        ]
        odd = [f"- {n}: {code}: {t}" for n, found in self.findings.items() for code, t in found]
        head += ["What is odd about the scores (not part of the verdict):", *odd, ""] if odd else []
        body = "\n\n".join(one.summary() for one in self.pairs)
        tail = ["", mark] if self.exploratory else []
        return "\n".join([*head, body, *tail])

    def to_dict(self) -> dict[str, Any]:
        """Everything but the fits' excesses, as plain values."""
        fits = {
            name: {k: plain(v) for k, v in fit.to_dict().items() if k != "excesses"}
            for name, fit in self.fits.items()
        }
        return {
            "run": self.label,
            "protocol_sha256": self.protocol_sha256,
            "registered_at": self.registered_at,
            "data_sha256": self.data_sha256,
            "pairs": [one.to_dict() for one in self.pairs],
            "protocol": plain(self.protocol),
            "fits": fits,
            "scans": {name: scan.to_dict() for name, scan in self.scans.items()},
            "findings": plain(self.findings),
            "provenance": self.provenance.to_dict(),
        }

    def write(self, folder: str | PathLike[str]) -> list[Path]:
        """Write family.csv, gates.csv, scan.csv, verdict.json and verdict.txt.

        With findings about the scores, findings.csv too.

        Returns
        -------
        list of Path
        """
        out = place(folder, field="folder")
        with writing(out, field="folder"):
            out.mkdir(parents=True, exist_ok=True)
        tables = {"family": self.to_frame(), "gates": self.gates_frame()}
        tables |= {"scan": self.scan_frame(), "findings": self.findings_frame()}
        tables = {name: table for name, table in tables.items() if len(table)}
        paths = []
        for name, table in tables.items():
            paths.append(out / f"{name}.csv")
            table.to_csv(paths[-1], index=False, lineterminator="\n")
        texts = {
            "verdict.json": json.dumps(self.to_dict(), indent=2, ensure_ascii=False),
            "verdict.txt": self.summary(),
        }
        for name, text in texts.items():
            paths.append(out / name)
            paths[-1].write_text(text + "\n", encoding="utf-8", newline="\n")
        return paths

    def plot(self, scorer: str | None = None, ax: Any = None) -> Any:
        """The gates of one scorer's pairs as a picture, over its scan; returns the two axes.

        Parameters
        ----------
        scorer : str, optional
            The first one by default.
        ax : two matplotlib Axes, optional
            To draw on; a new figure, of the size that the table needs, by default.
        """
        from pybridge.report.tail_family import verdict_figure

        return verdict_figure(self, scorer, ax)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write one page with everything, figures included."""
        from pybridge.report.tail_page import verdict_page

        return write_text(path, verdict_page(self))

    def _table(self) -> pd.DataFrame:
        short = {"pass": "pass", "fail": "FAIL", "not computed": "none"}
        table = self.to_frame().drop(columns=["run"])
        for gate in GATES:
            table[gate] = table[gate].map(short)
        for name in ("shape_a", "shape_b", "difference"):
            table[name] = table[name].map(lambda v: f"{v:.3f}")
        return table
