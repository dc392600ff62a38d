"""All that tools show of objects and errors: what a secret must not be in."""

import traceback
from typing import Any


def everything_public(thing: Any) -> str:
    """All that a debugger, a log or a notebook would show of an object."""
    shown = [repr(thing), str(thing), repr(getattr(thing, "__dict__", None))]
    for name in dir(thing):
        if not name.startswith("__"):
            value = getattr(thing, name, None)
            shown.append(repr(value))
            # CPython before 3.11.3 raises when this attribute of a dataclass with slots is read.
            inner_names = (inner for inner in dir(value) if inner != "__weakref__")
            shown.extend(repr(getattr(value, inner, None)) for inner in inner_names)
    if hasattr(thing, "_repr_html_"):
        shown.append(thing._repr_html_())
    return "\n".join(shown)


def traceback_with_locals(error: BaseException) -> str:
    """The traceback as tools print it that show the local variables of each frame."""
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(told.format())


def error_output(error: BaseException) -> str:
    """An error with all that hangs on it, apart from the frames of the test itself."""
    told = []
    while error is not None:
        told += [everything_public(error), repr(getattr(error, "__notes__", None))]
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(told)


def without_the_callers_frame(error: BaseException) -> BaseException:
    """The error without the frame that caught it, which of course knows the secret."""
    return error.with_traceback(error.__traceback__ and error.__traceback__.tb_next)
