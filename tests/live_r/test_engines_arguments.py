"""Every argument of every R function is here under its own name, or in the table of reasons."""

from __future__ import annotations

import inspect

import pytest

import pybridge as pb
from pybridge.engines.arguments import (
    LEFT_OUT,
    NEWER,
    OTHER_DEFAULTS,
    OWN_FUNCTIONS,
    r_functions,
)

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
    here, key = ours(engine, name), (engine, name)
    reasons = {*LEFT_OUT.get(key, {}), *NEWER.get(key, ())}
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


@pytest.fixture(scope="module")
def defaults(plain_r):
    """R's defaults that are one number, word or logical (of several words the first), by name."""
    functions = sorted({r for key in exposed() for r in r_functions(*key)})
    code = """
    defaults <- function(name, all) for (argument in names(all)) {
      if (is.symbol(all[[argument]])) next
      value <- all[[argument]]
      if (is.call(value) && identical(value[[1]], as.name("c")) && is.character(value[[2]])) {
        value <- value[[2]]
      }
      if (identical(value, quote(-Inf))) value <- -Inf
      if (is.atomic(value) && length(value) == 1 && !is.na(value)) {
        show(paste(name, argument, sep = "|"), value)
        show(paste(name, argument, "kind", sep = "|"), class(value))
      }
    }
    """
    code += "".join(f'defaults("{one}", formals({one}))\n' for one in functions)
    return plain_r(code)


# Said by None here: what a word of R means that is no value of its own, or the same default.
NONE = {
    *(("svydesign", "pps"), ("svyglm", "epsilon"), ("svyglm", "maxit"), ("fpot", "lower")),
    *(("fpot", "upper"), ("svyby", "covmat"), ("svyratio", "covmat"), ("step", "direction")),
}
# Of a function that gets its arguments from the one that is called.
INNER = ("stats::optim",)


@pytest.mark.parametrize(("engine", "name"), exposed())
def test_defaults_are_rs_or_in_the_table(defaults, engine, name):
    known = inspect.signature(getattr(getattr(pb.engines, engine), name)).parameters
    other = OTHER_DEFAULTS.get((engine, name), {})
    for function in r_functions(engine, name):
        for key, (theirs,) in defaults.items():
            where, _, argument = key.partition("|")
            here = known.get(argument.replace(".", "_"))
            if where != function or here is None or function in INNER or argument in other:
                continue
            if here.default is None:
                assert (name, argument) in NONE, (name, argument, theirs)
                continue
            kind = defaults[f"{key}|kind"][0]
            assert here.default == (bool(theirs) if kind == "logical" else theirs), (name, argument)


def test_other_defaults_are_of_arguments_that_are_here():
    for (engine, name), items in OTHER_DEFAULTS.items():
        assert {argument.replace(".", "_") for argument in items} <= ours(engine, name)


def test_arguments_of_newer_versions_are_not_here():
    for (engine, name), arguments in NEWER.items():
        assert not {argument.replace(".", "_") for argument in arguments} & ours(engine, name)


def test_an_argument_that_is_missing_is_found(formals):
    known = {**formals, "sae::eblupFH": [*formals["sae::eblupFH"], "robust"]}
    assert gaps(known, "sae", "eblupFH") == ["robust"]


def test_functions_of_our_own_are_there_and_no_others():
    for engine, name in OWN_FUNCTIONS:
        assert callable(getattr(getattr(pb.engines, engine), name))
    assert len(exposed()) >= 45
