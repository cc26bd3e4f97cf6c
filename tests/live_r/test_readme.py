"""What the README shows runs as it stands, and R gives the numbers that it says R gives."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"
pytestmark = pytest.mark.r


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both Python examples, run one after the other, and a line that prints the fit."""
    place = tmp_path_factory.mktemp("readme")
    script = "\n".join(blocks("python")) + '\nprint("model variance", repr(fit.model_variance))\n'
    (place / "example.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "example.py"],
        cwd=place,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (place / "printed.txt").write_text(done.stdout, encoding="utf-8")
    return place


def test_the_python_examples_write_what_they_name(folder: Path) -> None:
    wanted = {"estimates.csv", "selection.csv", "means.csv", "provenance.json"}
    assert wanted <= {path.name for path in (folder / "results").iterdir()}
    assert "Chosen: " in (folder / "printed.txt").read_text(encoding="utf-8")


def test_r_gives_the_same_model_variance(folder: Path) -> None:
    printed = (folder / "printed.txt").read_text(encoding="utf-8")
    ours = float(re.search(r"model variance (\S+)", printed)[1])
    lines = blocks("r")[0].strip().splitlines()
    lines[-1] = f"fit <- {lines[-1]}"
    script = "\n".join([*lines, "cat(sprintf('%.17g', fit$est$fit$refvar))"])
    (folder / "example.R").write_text(script, encoding="utf-8")
    rscript = shutil.which("Rscript")
    assert rscript is not None
    done = subprocess.run(
        [rscript, "example.R"], cwd=folder, capture_output=True, text=True, check=True
    )
    # area.csv rounds nothing (shortest digits that read back), so R starts from the same doubles.
    assert float(done.stdout) == pytest.approx(ours, rel=1e-9)


def test_the_demo_shown_is_the_one_that_runs(folder: Path) -> None:
    """The page in the README names the candidates and the choice that the demo has today."""
    page = blocks("text")[0]
    shown = re.search(r"Chosen: (\S+),", page)[1]
    done = subprocess.run(
        [sys.executable, "-m", "pybridge", "demo", "--out", "demo"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"Chosen: {shown}," in done.stdout
    table = [line.split()[0] for line in page.split("computed by")[1].splitlines()[1:10]]
    for name in table:
        assert re.search(rf"^  {re.escape(name)} ", done.stdout, flags=re.M), name
