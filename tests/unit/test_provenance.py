"""The provenance record: what made a number, without the time."""

import json
import pickle

import numpy as np
import pytest

from pybridge.provenance import provenance


def test_it_names_engine_versions_options_and_seed():
    record = provenance(
        "sae", "REML", options={"precision": 1e-4}, seed=3, versions={"R": "4.2.2", "sae": "1.3"}
    )
    assert record.r == "4.2.2" and dict(record.packages) == {"sae": "1.3"}
    assert record.numpy == np.__version__
    for part in ("REML by sae", "R 4.2.2", "sae 1.3", "precision=0.0001", "seed 3"):
        assert part in record.summary()


def test_the_same_work_gives_the_same_record():
    assert provenance("native", "ML") == provenance("native", "ML")
    assert provenance("native", "ML") != provenance("native", "REML")


def test_it_is_frozen_pickles_and_is_plain_in_json():
    record = provenance("sae", "REML", options={"levels": ["a", "b"]}, versions={"R": "4.2.2"})
    assert pickle.loads(pickle.dumps(record)) == record
    with pytest.raises(AttributeError):
        record.engine = "native"
    with pytest.raises(TypeError):
        record.options["levels"] = ()
    assert json.loads(json.dumps(record.to_dict()))["options"] == {"levels": ["a", "b"]}


def test_without_r_there_is_no_version_of_it():
    record = provenance("native", "REML")
    assert record.r is None and ", R " not in record.summary()
