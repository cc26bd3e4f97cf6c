"""The list of R packages, and the errors that name the line which installs one."""

import csv

import pytest

from pybridge.r.packages import (
    LIST,
    in_scope,
    install_line,
    minimum,
    older,
    packages,
    unavailable,
)


def test_the_list_is_complete_and_ordered():
    names = [item.name for item in packages()]
    assert len(set(names)) == len(names)
    # emdi does not build with the tzdb that Debian has.
    assert names.index("tzdb") < names.index("emdi")
    assert "Matrix" not in names
    for item in packages():
        assert item.source in ("debian", "cran") and item.scope in ("demo", "tests")
        assert bool(item.debian) == (item.source == "debian")
        assert item.minimum[0].isdigit() and item.purpose


def test_the_header_is_what_the_set_up_script_reads():
    with open(LIST, encoding="utf-8", newline="") as file:
        assert next(csv.reader(file))[:5] == ["package", "source", "debian", "minimum", "scope"]


def test_scopes():
    demo = {item.name for item in in_scope("demo")}
    assert {"sae", "survey"} <= demo < {item.name for item in in_scope("all")}


@pytest.mark.parametrize(
    "version, least, expected",
    [
        ("1.3", "1.3", False),
        ("1.2", "1.3", True),
        ("1.10", "1.9", False),
        ("2.3-6.1", "2.3-3", False),
        ("0.3.0", "0.5.0", True),
        ("4-13", "4-10", False),
    ],
)
def test_versions_compare_part_by_part(version, least, expected):
    assert older(version, least) is expected


def test_install_lines():
    assert install_line("survey") == "sudo apt-get install r-cran-survey"
    assert 'install.packages("sae")' in install_line("sae")


@pytest.mark.parametrize(
    "why, code",
    [("missing", "package_missing"), ("old", "package_too_old"), ("broken", "package_broken")],
)
def test_errors_name_package_version_and_mend(why, code):
    error = unavailable("survey", why, "3.9", "object 'x' not found")
    assert error.code == code and error.field == "survey" and error.exit_status == 3
    assert minimum("survey") in error.expected
    assert "pybridge setup-r" in error.hint and "apt-get install r-cran-survey" in error.hint
