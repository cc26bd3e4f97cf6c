"""Registration: what is written, what is refused afterwards, and what each refusal names."""

from __future__ import annotations

import datetime
import hashlib
import json
from pathlib import Path

import pytest

from pybridge.errors import InputError
from pybridge.protocol.plan import Protocol
from pybridge.protocol.reading import load_protocol
from pybridge.protocol.registration import load_registration, need_registered
from pybridge.protocol.template import protocol_template

UTC = datetime.timezone.utc


@pytest.fixture
def plan(tmp_path: Path) -> Protocol:
    path = tmp_path / "claim.toml"
    path.write_text(protocol_template(), encoding="utf-8")
    return load_protocol(path)


def changed(plan: Protocol, before: str, after: str) -> Protocol:
    path = Path(plan.source)
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    return load_protocol(path)


def test_the_canonical_form_its_digest_and_the_date_lie_beside_the_plan(
    plan: Protocol, tmp_path: Path
) -> None:
    before = datetime.datetime.now(UTC).replace(microsecond=0)
    found = plan.register()
    assert found.path == str(tmp_path / "claim.registered.json")
    content = json.loads(Path(found.path).read_text(encoding="utf-8"))
    canonical = json.dumps(
        content["protocol"], sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    assert hashlib.sha256(canonical.encode()).hexdigest() == found.sha256 == plan.sha256()
    moment = datetime.datetime.fromisoformat(found.registered_at)
    assert before <= moment <= datetime.datetime.now(UTC)
    assert found.sha256 in found.summary()
    assert need_registered(plan) == found


def test_a_second_registration_of_the_same_values_changes_nothing(plan: Protocol) -> None:
    first = plan.register(now=datetime.datetime(2025, 1, 1, tzinfo=UTC))
    assert plan.register() == first
    assert changed(plan, "# Resamples (B).", "# other words").register() == first


def test_another_plan_does_not_overwrite_a_registration(plan: Protocol, tmp_path: Path) -> None:
    plan.register()
    other = changed(plan, "floor = 0.1", "floor = 0.05")
    with pytest.raises(InputError) as caught:
        other.register()
    assert caught.value.code == "already_registered"
    assert "P2.floor: registered 0.1, now 0.05" in str(caught.value)
    assert other.register(tmp_path / "second.toml").path.endswith("second.registered.json")


def test_a_changed_plan_is_refused_and_everything_that_differs_is_named(plan: Protocol) -> None:
    plan.register()
    other = changed(plan, "seed = 20250101", "seed = 7")
    other = changed(other, "replicates = 2000", "replicates = 500")
    with pytest.raises(InputError) as caught:
        need_registered(other)
    assert caught.value.code == "protocol_differs"
    assert "seed: registered 20250101, now 7" in str(caught.value)
    assert "resampling.replicates: registered 2000, now 500" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("protocol", {"seed": 1}, "its values do"),
        ("sha256", "0" * 64, "its values do"),
        ("registered_at", "2020-01-01T00:00:00+00:00", "its date or version does"),
    ],
)
def test_an_edited_registration_is_found_out(plan: Protocol, name, value, words: str) -> None:
    path = Path(plan.register().path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content[name] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        need_registered(plan)
    assert caught.value.code == "registration_edited" and words in str(caught.value)


def test_a_date_in_the_future_is_a_wrong_clock(plan: Protocol) -> None:
    later = datetime.datetime.now(UTC) + datetime.timedelta(days=2)
    plan.register(now=later)
    with pytest.raises(InputError) as caught:
        need_registered(plan)
    assert caught.value.code == "bad_clock" and "clocks" in str(caught.value)


def test_without_a_registration_or_with_a_broken_one(plan: Protocol, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        need_registered(plan)
    assert caught.value.code == "not_registered" and "exploratory" in str(caught.value)
    (tmp_path / "claim.registered.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        need_registered(plan)
    assert caught.value.code == "bad_registration"
    with pytest.raises(InputError):
        load_registration(tmp_path)


def test_a_plan_from_no_file_needs_a_path(plan: Protocol, tmp_path: Path) -> None:
    import dataclasses

    homeless = dataclasses.replace(plan, source="")
    with pytest.raises(InputError) as caught:
        homeless.register()
    assert caught.value.code == "no_path"
    assert homeless.register(tmp_path / "kept.json").sha256 == plan.sha256()
