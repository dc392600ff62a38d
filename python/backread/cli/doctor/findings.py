"""What the doctor found: one line each, with what to do."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from backread._client.secret import redact_secret
from backread._display.words import line
from backread.cli.text import escaped, plain

__all__ = ["Finding", "Findings"]

State: TypeAlias = Literal["ok", "warning", "problem"]

INDENT = 11
WIDEST = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing.

    Attributes:
        topic: What it belongs to, such as "service".
        state: A warning may become a problem, or may be meant; a problem must be solved.
        text: What was found.
        advice: What to do; empty if there is nothing to do.
    """

    topic: str
    state: State
    text: str
    advice: str


class Findings:
    """Collects findings; prints each at once, unless they are to be JSON."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._found: list[Finding] = []
        self._topic = ""
        self.exit_code = 0
        """The exit code of the first problem."""

    def begin(self, topic: str) -> None:
        """Begins a group of findings."""
        self._topic = topic
        if not self._as_json:
            sys.stdout.write(f"{topic.capitalize()}\n")

    def ok(self, text: str) -> None:
        """Adds what is as it should be."""
        self._add("ok", text, "")

    def warning(self, text: str, advice: str) -> None:
        """Adds what may be meant, or may become a problem."""
        self._add("warning", text, advice)

    def problem(self, text: str, advice: str, code: int) -> None:
        """Adds what must be solved; ``code`` is the exit code of commands that meet it."""
        self.exit_code = self.exit_code or code
        self._add("problem", text, advice)

    def end(self) -> None:
        """Prints the summary, or everything as one JSON object."""
        states = [each.state for each in self._found]
        counts = {state: states.count(state) for state in ("ok", "warning", "problem")}
        if self._as_json:
            document = {"exit_code": self.exit_code, "findings": [*map(asdict, self._found)]}
            sys.stdout.write(escaped(json.dumps(document, ensure_ascii=False)) + "\n")
            return
        words = [
            f"{count} {state}{'' if state == 'ok' or count == 1 else 's'}"
            for state, count in counts.items()
            if count
        ]
        sys.stdout.write(f"\n{', '.join(words)}\n")

    def _add(self, state: State, text: str, advice: str) -> None:
        # Parts come from the service, TLS certificates, and files.
        text, advice = (plain(line(redact_secret(each))) for each in (text, advice))
        self._found.append(Finding(self._topic, state, text, advice))
        if self._as_json:
            return
        width = min(shutil.get_terminal_size().columns, WIDEST)
        for start, part in ((f"  {state}", text), ("", f"-> {advice}" if advice else "")):
            if part:
                wrapped = textwrap.fill(
                    part,
                    width,
                    initial_indent=start.ljust(INDENT),
                    subsequent_indent=" " * INDENT,
                    break_long_words=False,
                    break_on_hyphens=False,
                )
                sys.stdout.write(wrapped + "\n")
        sys.stdout.flush()
