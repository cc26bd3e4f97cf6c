"""Every argument of every R function is here under its own name, or in the table of reasons."""

from __future__ import annotations

import inspect

import pytest

import pybridge as pb
from pybridge.engines.arguments import LEFT_OUT, OWN_FUNCTIONS, r_functions

pytestmark = pytest.mark.r("sae", "emdi", "evd", "ismev", "evir", "hbsae", "metafor", "rjags")

ENGINES = ("sae", "emdi", "evd", "ismev", "evir", "hbsae", "metafor", "rjags", "survey")


def exposed() -> list[tuple[str, str]]:
    return [
        (engine, name)
        for engine in ENGINES
        for name in getattr(pb.engines, engine).__all__
        if not inspect.isclass(getattr(getattr(pb.engines, engine), name))
        and (engine, name) not in OWN_FUNCTIONS
    ]


def ours(engine: str, name: str) -> set[str]:
    return set(inspect.signature(getattr(getattr(pb.engines, engine), name)).parameters)


@pytest.fixture(scope="module")
def formals(plain_r):
    functions = sorted({r for key in exposed() for r in r_functions(*key)})
    return plain_r("".join(f'show("{one}", names(formals({one})))\n' for one in functions))


def gaps(formals, engine, name):
    """R's arguments that are neither in the signature nor in the table."""
    here, reasons = ours(engine, name), LEFT_OUT.get((engine, name), {})
    theirs = [argument for one in r_functions(engine, name) for argument in formals[one]]
    return [a for a in theirs if a.replace(".", "_") not in here and a not in reasons]


@pytest.mark.parametrize(("engine", "name"), exposed())
def test_every_argument_of_r_can_be_given(formals, engine, name):
    assert gaps(formals, engine, name) == []


@pytest.mark.parametrize(("engine", "name"), LEFT_OUT)
def test_what_is_left_out_is_an_argument_of_r_and_not_here(formals, engine, name):
    theirs = {argument for one in r_functions(engine, name) for argument in formals[one]}
    left = LEFT_OUT[engine, name]
    assert set(left) <= theirs and all(left.values())
    assert not {argument.replace(".", "_") for argument in left} & ours(engine, name)


def test_an_argument_that_is_missing_is_found(formals):
    known = {**formals, "sae::eblupFH": [*formals["sae::eblupFH"], "robust"]}
    assert gaps(known, "sae", "eblupFH") == ["robust"]


def test_functions_of_our_own_are_there_and_no_others():
    for engine, name in OWN_FUNCTIONS:
        assert callable(getattr(getattr(pb.engines, engine), name))
    assert len(exposed()) >= 45
