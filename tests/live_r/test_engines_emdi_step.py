"""emdi::step on columns whose names R cannot read, beside R's own choice on plain names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pybridge.engines import emdi
from pybridge.errors import InputError

pytestmark = pytest.mark.r("emdi")

ODD = {"a": "a b", "b": "1~b", "d": "도메인", "v": "v v", "y": "y~y"}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    m = 40
    a, b, v = rng.normal(size=m), rng.normal(size=m), rng.uniform(0.1, 0.3, m)
    y = 1 + 2 * b + 0.9 * rng.normal(size=m)
    return pd.DataFrame({"d": np.arange(m) * 10, "a": a, "b": b, "v": v, "y": y})


@pytest.fixture(scope="module")
def found(table, plain_r, tmp_path_factory):
    path = tmp_path_factory.mktemp("step") / "table.csv"
    table.apply(lambda column: column.map(lambda value: float(value).hex())).to_csv(path)
    return plain_r(
        f"""
        d <- as.data.frame(lapply(read.csv("{path}", colClasses = "character")[-1], as.numeric))
        f <- emdi::fh(y ~ a, "v", d, domains = "d", method = "ml")
        for (scope in c(~ a + b, ~ b + a)) {{
          s <- emdi::step(f, scope = scope, trace = FALSE)
          show("fixed", deparse(s$fixed))
          show("end", s$model$model_select$AIC)
          show("estimate", s$ind$FH)
        }}
        """
    )


@pytest.mark.parametrize("scope", ["~ `a b` + `1~b`", "~`1~b` + `a b`"])
def test_columns_are_not_mixed_up(scope, table, found):
    assert found["fixed"] == ["y ~ b", "y ~ b"]
    odd = table.rename(columns=ODD)
    for order in (list(odd), list(odd)[::-1]):
        fit = emdi.fh("`y~y` ~ `a b`", "v v", odd[order], "도메인", method="ml", mode="raw")
        chosen = emdi.step(fit, scope=scope, combined_data=odd[order])
        assert chosen.fixed == "`y~y` ~ `1~b`"
        assert chosen.end == found["end"][0]
        np.testing.assert_array_equal(chosen.fit.estimate, found["estimate"][:40])
        assert "`y~y` ~ `a b`" in chosen.path and not any(".column" in t for t in chosen.path)


def test_guarded_says_in_which_units_the_path_is(table):
    fit = emdi.fh("y ~ a", "v", table, "d", method="ml")
    chosen = emdi.step(fit, scope="~ a + b", combined_data=table)
    assert f"units of {fit.request.unit:g}" in chosen.path[0] and fit.request.unit != 1
    lines = [float(t.split("=")[1]) for t in chosen.path if "AIC =" in t]
    assert lines[0] - lines[-1] == pytest.approx(chosen.start - chosen.end, abs=0.02)


def test_labels_that_are_a_covariate_too(table):
    fit = emdi.fh("y ~ a + d", "v", table, "d", method="ml")
    chosen = emdi.step(fit, scope="~ a + d + b", combined_data=table)
    assert "b" in chosen.fixed and chosen.fit.request.arguments["domains"]
    assert list(chosen.fit.domains) == list(table["d"])


@pytest.mark.parametrize(
    ("more", "field"),
    [({"scope": "~ b"}, "scope"), ({"scope": "~"}, "scope"), ({"trace": "no"}, "trace")],
)
def test_what_cannot_be_is_refused(more, field, table):
    fit = emdi.fh("y ~ a", "v", table, "d", method="ml")
    with pytest.raises(InputError) as caught:
        emdi.step(fit, **more)
    assert caught.value.field == field
    if more == {"scope": "~ b"}:
        assert "combined_data=" in caught.value.hint
