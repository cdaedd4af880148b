"""Formulas as MathML, which browsers show by themselves: no script, no font, no other host."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

_FUNCTION = r"(?:log|exp|ln|kl|arcsin|arccos|sinh|sin|cosh|cos|tan|max|min)(?![A-Za-z])"
"""Functions whose names are set apart from their neighbours."""
_REPLACED = (
    (r"\\operatorname\*?\{([^}]*)\}", r"\\mathrm{\1}"),
    (r"\\(?:big|Big|bigg)(?![a-z])", ""),
    (r"\\tfrac|\\dfrac", r"\\frac"),
    (r"\\le(?![a-z])", r"\\leq"),
    (r"\\ge(?![a-z])", r"\\geq"),
    (r"\\lVert|\\rVert", r"\\|"),
    (rf"(\\{_FUNCTION})(?=\s*[A-Za-z0-9\\])(?!\s*\\(?:left|bigl|Bigl|\{{|[,;_^]))", r"\1\\,"),
    (rf"(?<!\\sqrt)(?:(?<=[A-Za-z0-9}})])|(?<=\^\+))\s*(\\{_FUNCTION})", r"\\,\1"),
)
_OPENING, _CLOSING = r"\\(?:bigl|Bigl|biggl)(?![a-z])", r"\\(?:bigr|Bigr|biggr)(?![a-z])"
_NUMBER = re.compile(r"\s*\\tag\{(\w+)\}")


def to_mathml(latex: str, display: str) -> str:
    """The formula as a ``<math>`` element; an unknown command is an error.

    A fraction such as \\frac12 gets its braces first, since the converter needs them. Brackets of a given size become
    brackets that grow with what is between them.
    """
    sized = len(re.findall(_OPENING, latex)) == len(re.findall(_CLOSING, latex))
    latex = re.sub(_CLOSING, r"\\right" if sized else "", re.sub(_OPENING, r"\\left" if sized else "", latex))
    for pattern, replacement in _REPLACED:
        latex = re.sub(pattern, replacement, latex)
    latex = re.sub(r"\\frac\s*([0-9])\s*([0-9])", r"\\frac{\1}{\2}", latex)
    return convert(latex, display=display)


def _visit_inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(f'<span class="math">{to_mathml(node.astext(), "inline")}</span>')
    raise nodes.SkipNode


def _visit_block(writer: Any, node: nodes.math_block) -> None:
    latex = node.astext()
    numbers = "".join(f'<span class="math-number">({number})</span>' for number in _NUMBER.findall(latex))
    writer.body.append(f'<div class="math-block">{to_mathml(_NUMBER.sub("", latex), "block")}{numbers}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
