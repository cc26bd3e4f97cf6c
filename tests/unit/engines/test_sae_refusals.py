"""What the functions of sae refuse before R is asked for anything, and proximity by its labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import _engine_request as requests
from pybridge.engines import sae
from pybridge.engines._sae_proximity import proximity_matrix, remarks
from pybridge.errors import InputError

M = 20


@pytest.fixture(autouse=True)
def no_r(monkeypatch):
    """Any call of R is a failure here."""

    def call(*args, **words):
        raise AssertionError("R was called")

    monkeypatch.setattr(requests, "call_many", call)


def area(m=M):
    draw = np.random.default_rng(1)
    return pd.DataFrame(
        {"name": [f"d{i}" for i in range(m)], "y": draw.normal(size=m), "x": draw.normal(size=m)}
    ).assign(v=1.0)


def ring(m=M):
    labels = [f"d{i}" for i in range(m)]
    w = np.zeros((m, m))
    for i in range(m):
        w[i, [(i + 1) % m, (i - 1) % m]] = 0.5
    return pd.DataFrame(w, index=labels, columns=labels)


def over_time(domains=5, times=3):
    table = pd.DataFrame(
        [(f"d{i}", t) for i in range(domains) for t in range(times)], columns=["name", "year"]
    )
    draw = np.random.default_rng(2)
    return table.assign(y=draw.normal(size=len(table)), x=draw.normal(size=len(table)), v=1.0)


def units():
    draw = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "county": np.repeat(list("abcd"), 5),
            "y": draw.normal(size=20),
            "x": draw.normal(size=20),
            "w": 2.0,
            "g": np.tile(list("uv"), 10),
        }
    )


MEANS = pd.DataFrame({"county": list("abcd"), "x": [0.0] * 4})
SIZES = pd.DataFrame({"county": list("abcd"), "N": [10.0] * 4})
STRATA = pd.DataFrame({"county": list("abcd"), "u": [5.0] * 4, "v": [5.0] * 4})


def refused(code, function, *args, **words):
    with pytest.raises(InputError) as caught:
        function(*args, **words)
    error = caught.value
    assert error.code == code, error
    assert error.field and error.expected is not None
    return error


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("not_a_table", {"data": {"y": 1}}),
        ("missing_column", {"formula": "y ~ z"}),
        ("missing_column", {"vardir": "w"}),
        ("missing_column", {"domain": "z"}),
        ("unknown_option", {"method": "reml"}),
        ("unknown_option", {"mode": "fast"}),
        ("bad_count", {"MAXITER": -1}),
        ("bad_precision", {"PRECISION": 0.0}),
        ("bad_count", {"B": 1.5}),
        ("bad_count", {"seed": -1, "B": 1}),
        ("bad_level", {"level": 95}),
        ("not_a_number", {"time_limit": "soon"}),
        ("transformed_outcome", {"formula": "log(y) ~ x"}),
        ("offset_not_supported", {"formula": "y ~ x + offset(v)"}),
        ("duplicate_domain", {"data": area().assign(name="one")}),
        ("out_of_sample", {"data": area().assign(y=[np.nan] + [1.0] * (M - 1))}),
        ("negative_variance", {"data": area().assign(v=-1.0)}),
        ("missing_variance", {"data": area().assign(v=np.nan)}),
        ("all_variances_zero", {"data": area().assign(v=0.0)}),
        ("infinite_values", {"data": area().assign(v=np.inf)}),
        ("missing_covariate", {"data": area().assign(x=[np.nan] + [1.0] * (M - 1))}),
        ("missing_covariate", {"data": area().assign(x=[np.inf] + [1.0] * (M - 1))}),
        ("not_numeric", {"data": area().assign(y="a")}),
        ("too_large", {"data": area(9000)}),
        ("too_large", {"B": 10**9, "time_limit": 60}),
    ],
)
@pytest.mark.parametrize("function", [sae.eblupFH, sae.mseFH])
def test_tables_of_domains(function, code, words):
    words = {"data": area(), "formula": "y ~ x", "vardir": "v", "domain": "name", **words}
    error = refused(code, function, **words)
    if code == "too_large":
        assert "native" in error.hint and "time_limit" in error.hint


def test_an_expression_for_the_variances():
    error = refused("missing_column", sae.mseFH, area(), "y ~ x", "v^2")
    assert error.field == "vardir" and "column" in error.hint


@pytest.mark.parametrize(
    ("code", "w"),
    [
        ("unlabelled_proximity", ring().to_numpy()),
        ("unlabelled_proximity", ring().to_numpy().tolist()),
        ("unknown_domain", pd.DataFrame(ring().to_numpy())),
        ("unknown_domain", ring(M + 1)),
        ("unknown_domain", ring().iloc[1:]),
        ("duplicate_domain", ring().rename(index={"d1": "d0"})),
        ("missing_values", ring().where(ring() != 0.5)),
        ("no_neighbours", 0.0 * ring()),
        ("not_numeric", ring().astype(str) + "x"),
    ],
)
@pytest.mark.parametrize("name", ["eblupSFH", "mseSFH", "pbmseSFH", "npbmseSFH"])
def test_proximity_matrices(name, code, w):
    error = refused(code, getattr(sae, name), area(), "y ~ x", "v", w, domain="name")
    assert error.field == "proxmat"


def test_spatial_methods_and_sizes():
    refused("unknown_option", sae.npbmseSFH, area(), "y ~ x", "v", ring(), method="ML")
    refused("unknown_option", sae.mseSFH, area(), "y ~ x", "v", ring(), method="FH")
    refused("bad_count", sae.pbmseSFH, area(), "y ~ x", "v", ring(), B=0, domain="name")
    large = ring(3000)
    refused("too_large", sae.eblupSFH, area(3000), "y ~ x", "v", large, domain="name")


def test_proximity_is_put_in_the_order_of_the_domains():
    w = ring().to_numpy() * np.arange(1, M + 1)[:, None]
    labelled = pd.DataFrame(w, index=range(M), columns=[str(i) for i in range(M)])
    mixed = np.random.default_rng(4).permutation(M)
    shuffled = labelled.iloc[mixed, mixed[::-1]]
    labels = np.arange(M)[::-1].astype(object)
    found = proximity_matrix(shuffled, labels, mode="guarded")
    np.testing.assert_array_equal(found, w[::-1, ::-1])
    np.testing.assert_array_equal(proximity_matrix(shuffled, labels, mode="raw"), shuffled)


def test_what_is_odd_about_a_proximity_matrix_is_said():
    labels = np.array([f"d{i}" for i in range(M)], dtype=object)
    assert remarks(ring().to_numpy(), labels) == ()
    assert remarks(np.round(ring().to_numpy() / 1.5, 5) * 1.5, labels) == ()
    binary = (ring().to_numpy() > 0).astype(float)
    binary[3] = 0.0
    binary[5, 5] = 1.0
    said = " ".join(remarks(binary, labels))
    assert "without neighbours: d3" in said and "add up" in said and "themselves" in said


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("missing_argument", {"time": None}),
        ("missing_column", {"domain": None}),
        ("bad_count", {"D": 4}),
        ("bad_count", {"T": 5}),
        ("not_balanced", {"data": over_time().iloc[1:]}),
        ("not_balanced", {"data": over_time().assign(year=[0, 0, 1] * 5), "T": 2}),
        ("one_instant", {"data": over_time(times=1)}),
        ("unknown_option", {"model": "st"}),
        ("not_a_bool", {"theta_iter": 1}),
        ("bad_start", {"sigma21_start": -1.0}),
        ("bad_start", {"rho1_start": 1.0}),
        ("bad_start", {"rho2_start": -1.0}),
        ("missing_argument", {"mode": "raw"}),
    ],
)
@pytest.mark.parametrize("function", [sae.eblupSTFH, sae.pbmseSTFH])
def test_tables_over_time(function, code, words):
    given = {"data": over_time(), "formula": "y ~ x", "vardir": "v", "proxmat": ring(5)}
    refused(code, function, **{**given, "domain": "name", "time": "year", **words})


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("missing_column", {"dom": "z"}),
        ("missing_column", {"formula": "y ~ z"}),
        ("transformed_outcome", {"formula": "log(y) ~ x"}),
        ("missing_values", {"data": units().assign(y=[np.nan] + [1.0] * 19)}),
        ("missing_values", {"data": units().assign(county=[None] + ["a"] * 19)}),
        ("missing_covariate", {"data": units().assign(x=[np.nan] + [1.0] * 19)}),
        ("unknown_option", {"method": "FH"}),
    ],
)
@pytest.mark.parametrize("function", [sae.eblupBHF, sae.pbmseBHF])
def test_units(function, code, words):
    given = {"data": units(), "formula": "y ~ x", "dom": "county"}
    refused(code, function, **{**given, "meanxpop": MEANS, "popnsize": SIZES, **words})


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("missing_column", {"y": "z"}),
        ("missing_argument", {"domsize": None}),
        ("missing_argument", {"domsize": None, "sweight": None}),
        ("missing_argument", {"domsize": None, "replace": True}),
        ("not_a_bool", {"replace": "yes"}),
        ("missing_values", {"data": units().assign(w=[np.nan] + [1.0] * 19)}),
        ("bad_weight", {"data": units().assign(w=0.0)}),
        ("not_two_columns", {"domsize": SIZES.assign(more=1)}),
        ("unknown_domain", {"domsize": SIZES[1:]}),
        ("duplicate_domain", {"domsize": SIZES.assign(county="a")}),
        ("bad_size", {"domsize": SIZES.assign(N=4.0)}),
        ("missing_values", {"domsize": SIZES.assign(N=[np.nan, 1, 1, 1])}),
    ],
)
def test_direct(code, words):
    given = {"data": units(), "y": "y", "dom": "county", "sweight": "w", "domsize": SIZES}
    refused(code, sae.direct, **{**given, **words})


def test_post_strata_and_composites():
    table = units()
    refused("unknown_post_stratum", sae.pssynt, table, "y", "w", "g", STRATA.drop(columns="v"))
    refused("unknown_post_stratum", sae.pssynt, table, "y", "w", "g", STRATA.assign(z=1.0))
    values = pd.DataFrame({"county": list("abcd"), "estimate": [1.0] * 4})
    given = {"data": table, "dom": "county", "sweight": "w", "domsize": SIZES}
    for code, words in (
        ("bad_number", {"delta": 0.0}),
        ("not_two_columns", {"direct": values.assign(n=5)}),
        ("unknown_domain", {"synthetic": values[1:]}),
        ("missing_values", {"direct": values.assign(estimate=[np.nan, 1, 1, 1])}),
    ):
        words = {"direct": values, "synthetic": values, **words}
        refused(code, sae.ssd, **given, **words)


def test_the_namespace_is_lazy_and_lists_what_is_there():
    import pybridge as pb

    assert "sae" in dir(pb.engines) and pb.engines.sae is sae
    with pytest.raises(AttributeError, match="there are"):
        pb.engines.spss
    for name in sae.__all__:
        assert getattr(sae, name).__doc__
