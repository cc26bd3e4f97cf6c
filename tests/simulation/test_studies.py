"""Every study of estimators runs in its quick mode, and writes tables, a page and figures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

STUDIES = Path(__file__).resolve().parents[2] / "validation" / "studies"
TABLES = {
    "verifiable_benchmark": ("accuracy", "components"),
    "deployed_service": ("scores_sampled_inside_domains", "ratios_sampled_at_random_over_all"),
    "self_selected": ("labels", "combined"),
    "design_check": ("ratios",),
    "real_populations": ("accuracy_schools_at_random", "scores_incomes_inside_domains"),
}
FIGURES = {
    "verifiable_benchmark": 3,
    "deployed_service": 5,
    "self_selected": 2,
    "design_check": 1,
    "real_populations": 4,
}


def run(name: str, folder: Path) -> str:
    command = [sys.executable, "-W", "error", str(STUDIES / f"{name}.py"), "--quick"]
    done = subprocess.run(
        [*command, "--out", str(folder)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "verifiable_benchmark",
        "deployed_service",
        "self_selected",
        "design_check",
        pytest.param("real_populations", marks=pytest.mark.r("survey", "emdi")),
    ],
)
def test_a_study_runs_and_writes_what_it_should(name: str, tmp_path: Path) -> None:
    said = run(name, tmp_path)
    page = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert said == page and page.startswith("# ") and "nan" not in page
    for table in TABLES[name]:
        found = pd.read_csv(tmp_path / f"{name}_{table}.csv")
        assert len(found) >= 3 and found.notna().any(axis=None)
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) == FIGURES[name]
    for picture in pictures:
        assert picture.name in page and picture.stat().st_size > 8000


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    text = (STUDIES / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, flags=re.S)[0]
    code = code.replace("repetitions=100, workers=2", "repetitions=2")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "coverage" in done.stdout and "mean score over true MSE" in done.stdout
    assert (tmp_path / "runs" / "study.json").exists()


def test_the_pages_link_to_what_is_there() -> None:
    pages = sorted(STUDIES.glob("*.md"))
    assert len(pages) >= 3
    for page in pages:
        for name in re.findall(r"\]\(([^)#]*)\)", page.read_text(encoding="utf-8")):
            assert name.startswith("http") or (page.parent / name).exists(), f"{page.name}: {name}"
