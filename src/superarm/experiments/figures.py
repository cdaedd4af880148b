"""Figures as files for papers, and as SVG that takes the colours of the page it stands in."""

import base64
import io
import re
from pathlib import Path
from typing import Any

from superarm.experiments.plots import INK
from superarm.simulation.plots import COLOURS

FORMATS = ("svg", "png", "pdf")
_FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', sans-serif"


def settings(salt: str) -> Any:
    """matplotlib's settings for a figure: text stays text, and the same figure gives the same bytes."""
    import matplotlib

    return matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": salt, "pdf.fonttype": 42, "font.family": "sans-serif"}
    )


def export(figure: Any, directory: Path, name: str) -> list[str]:
    """Write a figure in every format; the names of the files."""
    directory.mkdir(parents=True, exist_ok=True)
    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with settings(name):
        for kind in FORMATS:
            figure.savefig(directory / f"{name}.{kind}", dpi=160, metadata=dates[kind])
    return [f"{name}.{kind}" for kind in FORMATS]


def inline(figure: Any, name: str, words: str) -> str:
    """A figure as an SVG element that scales with its place and is drawn in the page's ink.

    ``words`` say to those who cannot see it what the figure shows.
    """
    buffer = io.StringIO()
    with settings(name):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    width = float(re.search(r'width="([\d.]+)pt"', text)[1])  # type: ignore[index]
    head = f'<svg class="figure" viewBox="\\1" role="img" aria-label="{_quoted(words)}"'
    head += f' style="max-width:{width * 1.6:.0f}px"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', f"{head} {names}>", text, count=1)
    for n, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{n})")
    text = text.replace(INK, "currentColor").replace("'sans-serif'", _FONTS).replace("sans-serif;", f"{_FONTS};")
    used = set(re.findall(r"[#]([\w.-]+)", text))  # a page with many figures may not have the same id twice
    text = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", text)
    text = re.sub(r"(\d+\.\d{2})\d+", r"\1", text)  # a hundredth of a point is enough, and half of the bytes
    return re.sub(r">\s+<", "><", text)


def data_uri(png: bytes) -> str:
    """A PNG as something that an ``img`` can hold."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _quoted(words: str) -> str:
    return words.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\\", "\\\\")
