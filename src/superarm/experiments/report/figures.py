"""Figures as files for papers, and as SVG elements that use the colours of the page."""

import base64
import io
import re
from pathlib import Path
from typing import Any

from superarm.experiments.report.axes import INK
from superarm.simulation.plots import COLOURS

FORMATS = ("svg", "png", "pdf")
"""The formats that figures are written in."""
_FONTS = "'DejaVu Sans', Verdana, 'Segoe UI', sans-serif"


def figure_settings(salt: str) -> Any:
    """matplotlib's settings for a figure: text remains text, and equal figures are written as equal bytes."""
    import matplotlib

    return matplotlib.rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": salt, "pdf.fonttype": 42, "font.family": "sans-serif"}
    )


def write_figure(figure: Any, directory: Path, name: str) -> list[str]:
    """Write a figure in every format; return the names of the files."""
    directory.mkdir(parents=True, exist_ok=True)
    dates: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    with figure_settings(name):
        for kind in FORMATS:
            figure.savefig(directory / f"{name}.{kind}", dpi=160, metadata=dates[kind])
    return [f"{name}.{kind}" for kind in FORMATS]


def inline_svg(figure: Any, name: str, description: str) -> str:
    """A figure as an SVG element that scales with the page and uses its text colour.

    ``description`` is for readers who cannot see the figure.
    """
    buffer = io.StringIO()
    with figure_settings(name):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    width = float(re.search(r'width="([\d.]+)pt"', text)[1])  # type: ignore[index]
    head = f'<svg class="figure" viewBox="\\1" role="img" aria-label="{_escape(description)}"'
    head += f' style="max-width:{width * 1.6:.0f}px"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', f"{head} {names}>", text, count=1)
    for n, colour in enumerate(COLOURS):
        text = text.replace(colour, f"var(--c{n})")
    text = text.replace(INK, "currentColor").replace("'sans-serif'", _FONTS).replace("sans-serif;", f"{_FONTS};")
    text = re.sub(r' id="(policy-\d+)"', r' class="\1"', text)  # several panels show the same policy
    used = set(re.findall(r"[#]([\w.-]+)", text))  # ids must be unique on a page with many figures
    text = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", text)
    text = re.sub(r"(\d+\.\d{2})\d+", r"\1", text)  # two decimals suffice, and halve the size
    return re.sub(r">\s+<", "><", text)


def data_uri(png: bytes) -> str:
    """A PNG as the address of an ``img`` element."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _escape(text: str) -> str:
    """Text as an attribute, and as a replacement in ``re.sub``."""
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace("\\", "\\\\")
