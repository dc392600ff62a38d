"""Hides e-mail addresses in names and other texts of strangers."""

from __future__ import annotations

import re

from backread._display.words import IGNORABLE

__all__ = ["HIDDEN", "hide_addresses"]

HIDDEN = "[e-mail address hidden]"

# Invisible characters may follow it; where they are removed later, the address would be whole.
AT = rf"(?:[@＠﹫]|%40|&#64;|&#x40;|&commat;)[{IGNORABLE}]*+"
# Whatever does not end a word: also combining marks and invisible characters, which are not \w.
LOCAL = r"""[^\s@＠﹫<>()\[\],;:"'/\\?=&#%]"""
DOMAIN = r"(?:(?:[\w-]+[.．。])*[^\W\d][\w-]*|\[[\w.:]+\])"
# Begins where a word begins, and gives nothing back: the time is linear in the length of the text.
ADDRESS = re.compile(rf"(?<!{LOCAL}){LOCAL}++{AT}{DOMAIN}", re.IGNORECASE)


def hide_addresses(text: str) -> str:
    """The text with `HIDDEN` in place of what looks like an e-mail address as usually written."""
    return ADDRESS.sub(HIDDEN, text)
