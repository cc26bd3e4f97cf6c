"""The default engines are R's, and asking for one never gives another."""

from __future__ import annotations

import inspect

import pytest

import pybridge as pb

DEFAULTS = {
    "fay_herriot": ("engine", "sae"),
    "evaluate": ("engine", "sae"),
    "generalized_pareto": ("engine", "evd"),
}
# Names that come with the tails; until then there is nothing to check.
LATER = {"generalized_pareto"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_the_default_engine_is_the_one_promised(name: str) -> None:
    if name in LATER and name not in pb.__all__:
        return
    argument, default = DEFAULTS[name]
    assert inspect.signature(getattr(pb, name)).parameters[argument].default == default


PLANNING = (
    "required_exceedances",
    "detectable_difference",
    "planning_table",
    "simulated_power",
)


def test_level_is_the_confidence_level_everywhere() -> None:
    for name in pb.__all__:
        thing = getattr(pb, name)
        if not inspect.isfunction(thing):
            continue
        parameters = inspect.signature(thing).parameters
        if "level" in parameters:
            assert parameters["level"].default in (0.95, inspect.Parameter.empty), name
        # The error rate of a planned test is the one thing that may be called alpha.
        assert "alpha" not in parameters or name in PLANNING, name
