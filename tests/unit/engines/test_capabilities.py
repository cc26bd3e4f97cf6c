"""The table of what each engine can do: complete, without repetition, and readable."""

import pytest

from pybridge.engines.capabilities import (
    CAPABILITIES,
    capabilities,
    capabilities_frame,
    capabilities_text,
    engines_for,
)
from pybridge.errors import InputError
from pybridge.r.packages import packages


def test_every_r_engine_is_a_package_of_the_list():
    listed = {item.name for item in packages()}
    assert {item.engine for item in CAPABILITIES if item.needs_r} <= listed
    assert not any(item.needs_r for item in CAPABILITIES if item.engine == "native")


def test_an_engine_has_one_row_a_function():
    keys = [(item.engine, item.task, item.function) for item in CAPABILITIES]
    assert len(set(keys)) == len(keys)
    assert all(item.methods for item in CAPABILITIES)


def test_what_sae_has_and_has_not():
    (sae,) = capabilities(engine="sae", task="area_level")
    assert sae.methods == ("REML", "ML", "FH") and not sae.out_of_sample


def test_engines_for_a_method():
    assert set(engines_for("area_level", "reml")) == {"sae", "emdi", "native"}
    assert "sae" not in engines_for("area_level", "bayes")
    assert "native" in engines_for("direct")


def test_unknown_words_are_refused():
    with pytest.raises(InputError):
        capabilities(engine="sas")
    with pytest.raises(InputError):
        engines_for("area level")


def test_both_views_hold_every_row():
    assert len(capabilities_frame()) == len(CAPABILITIES)
    for item in CAPABILITIES:
        assert item.function in capabilities_text()
