"""Parts of the pages: tables, columns of wide letters, and fonts for names in other letters."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pybridge.report import canvas
from pybridge.report.canvas import known_glyphs_only, readable
from pybridge.report.markup import picture, preformatted, table
from pybridge.report.words import columns_of, table_text


def test_a_table() -> None:
    frame = pd.DataFrame(
        {
            "name": ["<b>", None],
            "n_units": [12345, 2],
            "value": [1.23456789, np.nan],
            "near": [True, False],
        }
    )
    page = table(frame)
    assert page.startswith('<div class="wide"><table>') and page.count("<tr>") == 3
    assert '<th class="text">name</th><th>n_<wbr>units</th>' in page
    assert '<td class="text">&lt;b&gt;</td><td>12,345</td><td>1.2346</td><td>yes</td>' in page
    assert '<td class="text">–</td><td>2</td><td>–</td><td>no</td>' in page
    assert "<td" not in table(frame.iloc[:0])


def test_wide_letters_in_columns_take_two() -> None:
    lines = table_text([["서울 x", "1"], ["abcdef", "22"]], ["시군", "n"])
    page = preformatted("\n".join(["점수 by 시군, <all>", *lines]))
    first, header, seoul, latin = page.removeprefix("<pre>").removesuffix("</pre>").split("\n")
    assert first == "점수 by 시군, &lt;all&gt;"  # prose needs no columns
    assert '<i style="width:4ch">시군</i>' in header and '<i style="width:4ch">서울</i>' in seoul
    for line, shown in zip(lines, (header, seoul, latin)):
        bare = re.sub("<[^>]*>", "", shown)
        assert bare == line and columns_of(bare) == columns_of(lines[0])


def families(text: str) -> list[str]:
    ax = Figure().subplots()
    ax.set_title(text)
    assert readable(ax) is ax
    return list(ax.title.get_fontfamily())


def test_names_in_letters_that_the_usual_font_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canvas, "_FURTHER_FONTS", ("No Such Font", "DejaVu Serif"))
    usual = families("Zürich – σ²/N")
    assert "DejaVu Serif" not in usual and families("Москва") == usual
    for name in ("서울", "東京", "😀 x"):
        assert families(name) == [*usual, "DejaVu Serif"]


def test_a_font_with_the_letters_draws_them(monkeypatch: pytest.MonkeyPatch) -> None:
    # Numerals in circles: the sans serif font has them, the typewriter of TeX has not.
    def drawn(further: tuple[str, ...]) -> bytes:
        monkeypatch.setattr(canvas, "_FURTHER_FONTS", further)
        ax = Figure().subplots()
        ax.set_title("①②③", fontfamily="cmtt10")
        target = io.BytesIO()
        with known_glyphs_only():
            readable(ax).figure.savefig(target, dpi=40)
        return target.getvalue()

    assert drawn(()) == drawn(("No Such Font",)) != drawn(("DejaVu Sans",))


def test_a_picture() -> None:
    ax: Any = Figure().subplots()
    page = picture(ax, 'a "b" <c>', dpi=20)
    assert page.startswith('<img alt="a &quot;b&quot; &lt;c&gt;" src="data:image/png;base64,iVBOR')
