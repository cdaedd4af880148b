"""How results are shown: a self-contained HTML report, figures and tables for papers, and text for terminals.

All numbers come from ``analysis``; only what drawing needs is computed here.

- ``report.py``: builds ``report.html`` and the files beside it; the short form for notebooks.
- ``sections.py``: the content of each section of the report.
- ``plots.py``, ``heat_maps.py``: figures, as matplotlib objects; ``axes.py``: their panels, ticks and legends.
- ``figures.py``: figures as files, and as SVG inside the page.
- ``tables.py``: tables as CSV and LaTeX.
- ``text.py``: a study as lines of text.
- ``side_by_side.py``: a comparison of two studies as text and as a page.
- ``templates/``: the pages; their style sheet is in ``superarm.pages``.
"""
