"""Formulas as MathML, which browsers show by themselves: no script, no font, no other host."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

_REPLACED = (
    (r"\\operatorname\*?\{([^}]*)\}", r"\\mathrm{\1}"),
    (r"\\bigl|\\bigr|\\Bigl|\\Bigr|\\biggl|\\biggr|\\Big|\\big", ""),
    (r"\\tfrac|\\dfrac", r"\\frac"),
    (r"\\le(?![a-z])", r"\\leq"),
    (r"\\ge(?![a-z])", r"\\geq"),
    (r"\\lVert|\\rVert", r"\\|"),
    (r"(\\(?:log|exp|ln|kl|arcsin|sin|cos|max|min))(?=\s*[A-Za-z\\])(?!\s*\\(?:left|bigl|Bigl|\{|[,;_^]))", r"\1\\,"),
)


def to_mathml(latex: str, display: str) -> str:
    """The formula as a ``<math>`` element; an unknown command is an error.

    A fraction such as \\frac12 gets its braces first, since the converter needs them.
    """
    for pattern, replacement in _REPLACED:
        latex = re.sub(pattern, replacement, latex)
    latex = re.sub(r"\\frac\s*([0-9])\s*([0-9])", r"\\frac{\1}{\2}", latex)
    return convert(latex, display=display)


def _visit_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f'<span class="math">{to_mathml(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def _visit_block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(f'<div class="math-block">{to_mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
