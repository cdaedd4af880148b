"""The decision service: decisions and feedback over HTTP, written to a log before they are answered.

``domain`` holds the rules, ``storage`` the log, ``runtime`` what happens between a request and its answer, ``http`` the
interface, ``console`` the page. ``application`` puts them together, ``server`` starts them, ``commands`` is the command
line, ``client`` is the Python client. Each imports only from those below it (see ``pyproject.toml``).
"""
