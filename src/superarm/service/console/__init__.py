"""The console: pages for people, made from jinja2 templates, and the changes that they can make from them.

- ``routes.py``: who may look, the answers, log-in, and changes: retire and restore arms, set the control share, pause,
  go back to a version.
- ``pages.py``: what each page shows, as plain data for its template; ``address.py``: what the address asks for.
- ``verdicts.py``: the tiles at the top.
- ``arms.py``: arms with their estimates, the heat map, and what a slate is worth; its table as CSV.
- ``charts.py``: curves over time, as points of a picture, and as CSV.
- ``templates``: one template per page, the style sheet and the script.
"""
