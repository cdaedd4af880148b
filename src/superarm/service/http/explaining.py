"""What is wrong with a body, in a sentence that says what would be right."""

import re
from typing import get_args

from superarm.service.domain.spec import Late, Mode, PolicySpec, ProblemSpec, Settings

_CHOICES = {
    "mode": f"give one of {', '.join(get_args(Mode))}",
    "late": f"give one of {', '.join(get_args(Late))}",
    "control_slate": "give baseline, uniform, or a list of arms",
    "at_window_end": "give ignore, or a number from 0 to 1",
}
_UNKNOWN_CHOICE = re.compile(r"Invalid enum value (.*) - at `\$\.(.*)`", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*?)`(?: - at `\$\.?(.*)`)?", re.DOTALL)
_NO_NAME = re.compile(r"Expected `str` matching regex .* - at (?:`key` in )?`\$\.?(.*)`", re.DOTALL)
_NO_OUTCOME = re.compile(r"Expected `float` [<>]= [01]\.0 - at `\$\.((?:.*\.)?value|outcomes?\[\d+\]\[\d+\])`")
_NO_POLICY = re.compile(r"Expected `object`, got `str` - at `\$\.((?:settings\.)?policy)`")

_PLACES = {
    **dict.fromkeys(ProblemSpec.__struct_fields__, ""),
    **dict.fromkeys(Settings.__struct_fields__, "settings."),
    **dict.fromkeys(PolicySpec.__struct_fields__, "settings.policy."),
}
"""Where a field of a problem belongs; in the bodies of ``/settings`` without the first word."""


def explain(message: str) -> str:
    """The decoder's message; with the choices that there are, the place where a field belongs, or what a name may hold.

    >>> explain("Invalid enum value 'soon' - at `$.settings.late`")
    "settings.late: unknown 'soon'; give one of ignore, learn"
    >>> explain("Expected `float` <= 1.0 - at `$.feedback[0].value`").partition(";")[0]
    'feedback[0].value: an outcome is a number from 0 to 1'
    >>> explain("Object contains unknown field `policy`")
    'policy: unknown here; it belongs into settings: {"settings": {"policy": …}}'
    >>> explain("Expected `str` matching regex '^[^/]*$' - at `$.arms[0]`")
    'arms[0]: a name holds no control character'
    >>> explain("Expected `str` matching regex '^[^/]*$' - at `key` in `$.support`")
    'support: a name holds no control character'
    """
    found = _UNKNOWN_CHOICE.fullmatch(message)
    for field, choices in _CHOICES.items():
        if found is not None and f".{found[2]}".endswith(f".{field}"):
            return f"{found[2]}: unknown {found[1]}; {choices}"
    found = _UNKNOWN_FIELD.fullmatch(message)
    if found is not None and found[1] in _PLACES:
        return _explain_place(found[1], found[2] or "")
    found = _NO_NAME.fullmatch(message)
    if found is not None:
        return f"{found[1] or 'the body'}: a name holds no control character"
    found = _NO_OUTCOME.fullmatch(message)
    if found is not None:
        remedy = "divide by the largest value that can occur; weights scale the reward back"
        return f"{found[1]}: an outcome is a number from 0 to 1; {remedy}"
    found = _NO_POLICY.fullmatch(message)
    return message if found is None else f'{found[1]}: give an object, as in {{"name": "kl_ucb"}}'


def _explain_place(field: str, here: str) -> str:
    """Where a field belongs that was given elsewhere."""
    words = _PLACES[field].split(".")[:-1]
    wanted = f'"{field}": …'
    for word in reversed(words):
        wanted = f'"{word}": {{{wanted}}}'
    name = f"{here}.{field}" if here else field
    place = ".".join(words) or "the problem itself"
    return f"{name}: unknown here; it belongs into {place}: {{{wanted}}}"
