"""How results are shown: a self-contained HTML report, figures and tables for papers, and text for terminals.

All numbers come from ``analysis``; only what drawing needs is computed here.

- ``report.py``: builds ``report.html`` and the files beside it; the short form for notebooks.
- ``figures.py``: figures, as matplotlib objects, as files, and as SVG inside the page.
- ``tables.py``: tables as CSV and LaTeX, and a study as lines of text.
- ``reproduction.py``: published beside measured numbers, as a page with one figure.
- ``comparison.py``: a comparison of two studies, as text and as a page.
- ``templates/``: the pages; their style sheet is in ``superarm.output.pages``.
"""
