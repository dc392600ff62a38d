"""Says in our words what is wrong with a command line; Click and Typer have others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import Any

from backread._client.arguments import LARGEST

__all__ = ["NO_MORE", "choices_of", "in_options", "nearest", "usage_text"]

EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
WITHOUT_VALUE = re.compile(r"Option '?(?P<option>--?[\w-]+)'? requires an argument")
WITH_VALUE = re.compile(r"Option '?(?P<option>--?[\w-]+)'? does not take a value")
NEGATIVE = re.compile(r"-\d")

NO_MORE = {
    "backread mock record": "write rows as JSON lines and serve them with backread mock --world",
    "backread mock learn": "backread probe measures a service; name its switches with --dialect",
}
"""What to do instead, by what looks like a command of ``mock``."""

ANYWHERE = re.compile(r"(?<![-\w])(since|until|raw_csv|excel|codec|memory_limit|the format)(?!\w)")
AT_BEGIN = re.compile(r"^(everything|users|tables|limit|words|user|timezone|opening_hours)(?!\w)")
NAMES = {"users": "--user", "tables": "--table", "the format": "--format", "words": "WORDS"}


def usage_text(error: BaseException) -> str | None:
    """What is wrong and what helps; None if the error is not one of a command line.

    The classes of Typer's errors moved between its versions, so their attributes decide.
    """
    describe = getattr(error, "format_message", None)
    if describe is None:
        return None
    context = getattr(error, "ctx", None)
    path = "backread" if context is None else context.command_path
    said = _said(error) or _in_short(str(describe()), path)
    return f"{said}; see {path} --help"


def in_options(text: str) -> str:
    """What a function says of its arguments, with the options of the command line instead."""

    def option(found: re.Match[str]) -> str:
        return NAMES.get(found[0], "--" + found[0].replace("_", "-"))

    return AT_BEGIN.sub(option, ANYWHERE.sub(option, text))


def nearest(typed: str, possible: Iterable[str]) -> str:
    """``; did you mean users or user?``, empty if nothing is similar."""
    found = get_close_matches(typed, list(possible), n=3, cutoff=0.6)
    return f"; did you mean {_listed(found)}?" if found else ""


def choices_of(parameter: Any) -> list[str]:
    """The values that an option or an argument accepts, if they are listed."""
    descriptor = getattr(parameter, "type_descriptor", None)
    source = getattr(parameter, "type", None) if descriptor is None else descriptor
    found = getattr(source, "choices", None) or ()
    return [str(each.value) if isinstance(each, Enum) else str(each) for each in found]


def _said(error: Any) -> str | None:
    parameter = getattr(error, "param", None)
    if type(error).__name__ == "MissingParameter" and parameter is not None:
        return f"{_name(parameter)} is missing{_accepted(parameter)}"
    if hasattr(error, "possibilities"):
        return _unknown_option(error)
    if parameter is not None:
        return f"{_name(parameter)}: {_refused(error, parameter)}"
    return None


def _unknown_option(error: Any) -> str:
    typed = str(error.option_name)
    if NEGATIVE.match(typed):
        return f"{typed} is read as an option; ids and numbers are 0 or more"
    options: list[str] = []
    if error.ctx is not None:
        for each in error.ctx.command.get_params(error.ctx):
            options += [*each.opts, *each.secondary_opts]
    flags = [each for each in options if each.startswith("--")]
    starting = [each for each in flags if typed.startswith("--") and each.startswith(typed)]
    hint = f"; did you mean {_listed(starting[:3])}?" if starting else nearest(typed, flags)
    return f"there is no option {typed}{hint}"


def _refused(error: Any, parameter: Any) -> str:
    if choices := choices_of(parameter):
        if (_input(error) or "").lower() == "delta":
            from backread.mirror.export.target import NO_DELTA

            return NO_DELTA
        return f"it must be {_listed(choices)}{_given(error)}"
    words = _number(parameter, _input(error))
    return f"it must be {words}{_given(error)}" if words else _in_short(str(error.message))


def _number(parameter: Any, given: str | None) -> str:
    """What a number must be; empty for anything else, whose errors are our own."""
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None:
        limits, kind = parameter.type, str(getattr(parameter.type, "name", ""))
    else:
        limits, kind = parameter, str(descriptor.annotation)
        if getattr(descriptor.parameter_info, "parser", None) is not None:
            return ""
    if "int" not in kind and "float" not in kind:
        return ""
    noun = "a number" if "float" in kind else "a whole number"
    low, high = getattr(limits, "min", None), getattr(limits, "max", None)
    # The largest of 64 bits matters only to a number above it.
    if high == LARGEST and not (given and given.isdecimal() and _exceeds(given)):
        high = None
    if low is not None and high is not None:
        return f"{noun} from {low} to {high}"
    return noun if low is None else f"{noun}, {low} or more"


def _exceeds(digits: str) -> bool:
    # Python reads no more than 4,300 digits.
    return len(digits.lstrip("0")) > 19 or int(digits) > LARGEST


def _given(error: BaseException) -> str:
    """``, not 'x'``, if the error says what was given."""
    value = _input(error)
    return "" if value is None else f", not {value!r}"


def _input(error: BaseException) -> str | None:
    """The text that was given, if the error has it."""
    errors = getattr(error.__cause__, "errors", None)
    found: Any = errors() if callable(errors) else []
    value = found[0].get("input") if found else None
    return value if isinstance(value, str) else None


def _accepted(parameter: Any) -> str:
    choices = choices_of(parameter)
    if choices:
        return f": {_listed(choices)}"
    text = (getattr(parameter, "help", None) or "").split(". ")[0].rstrip(".")
    return f" ({text[:1].lower()}{text[1:]})" if text else ""


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    name = max(parameter.opts, key=len)
    variable = parameter.envvar if isinstance(parameter.envvar, str) else None
    return f"{name} or {variable}" if variable else str(name)


def _in_short(text: str, path: str = "backread") -> str:
    """The text of a version of Click or Typer, for what has no attributes."""
    if found := EXTRA.search(text):
        more = found[1].split()
        command = f"{path} {more[0]}" if more else path
        if command in NO_MORE:
            return f"there is no command {command}: {NO_MORE[command]}"
        return f"there {'is an argument' if len(more) == 1 else 'are arguments'} too many: " + (
            " ".join(more)
        )
    if found := WITHOUT_VALUE.search(text):
        return f"{found['option']} needs a value"
    if found := WITH_VALUE.search(text):
        return f"{found['option']} takes no value"
    return " ".join(text.split()).rstrip(".")


def _listed(words: Sequence[str]) -> str:
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
