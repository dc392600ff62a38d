"""What the doctor found: one line each, with what to do."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from functools import partial

from backread._client.secret import redact_secret
from backread._display.words import amount, line
from backread.cli.text import escaped, plain

INDENT = 11
WIDEST = 100
wrapped = partial(
    textwrap.fill, subsequent_indent=" " * INDENT, break_long_words=False, break_on_hyphens=False
)


class Findings:
    """Collects findings; prints each at once, except for JSON.

    A finding has a topic, such as "service"; a state, of which a warning may be meant, and a
    problem must be solved; a text; and an advice, empty if there is nothing to do.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._found: list[dict[str, str]] = []
        self._topic = ""
        self.exit_code = 0
        """The exit code of the first problem."""

    def begin(self, topic: str) -> None:
        """Begins a group of findings."""
        self._topic = topic
        self._print(topic.capitalize())

    def ok(self, text: str, advice: str = "") -> None:
        """Adds what is as it should be."""
        self._add("ok", text, advice)

    def warning(self, text: str, advice: str) -> None:
        """Adds what may be meant, or may become a problem."""
        self._add("warning", text, advice)

    def problem(self, text: str, advice: str, code: int) -> None:
        """Adds what must be solved; ``code`` is the exit code of commands that meet it."""
        self.exit_code = self.exit_code or code
        self._add("problem", text, advice)

    def end(self) -> None:
        """Prints the summary, or everything as one JSON object."""
        if self._as_json:
            document = {"exit_code": self.exit_code, "findings": self._found}
            sys.stdout.write(escaped(json.dumps(document, ensure_ascii=False)) + "\n")
        states = [each["state"] for each in self._found]
        counts = (amount(states.count(state), state) for state in ("problem", "warning"))
        self._print(f"\n{', '.join(counts)}")

    def _add(self, state: str, text: str, advice: str) -> None:
        # Parts come from the service, TLS certificates, and files.
        text, advice = (plain(line(redact_secret(each))) for each in (text, advice))
        found = {"topic": self._topic, "state": state, "text": text, "advice": advice}
        self._found.append(found)
        width = min(shutil.get_terminal_size().columns, WIDEST)
        for start, part in ((f"  {state}", text), ("", advice and f"-> {advice}")):
            if part:
                self._print(wrapped(start.ljust(INDENT) + part, width))

    def _print(self, text: str) -> None:
        if not self._as_json:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
