"""Self-contained HTML pages: one style sheet and one way to fill templates, for reports of every kind.

- ``rendering.py``: templates of a package, filled in.
- ``numbers.py``: numbers as people read them.
- ``templates/style.css``: the style sheet that all pages include.
"""
