"""The option ``--until`` of made-up data: when its times end."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, TypeAlias

import typer

__all__ = ["Until"]


def _instant(text: str) -> datetime:
    if text == "now":
        return datetime.now(UTC)
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("it must be a date, such as 2026-11-30, or now") from None
    return given if given.tzinfo else given.replace(tzinfo=UTC)


Until: TypeAlias = Annotated[
    datetime | None,
    typer.Option(
        "--until",
        metavar="DATE",
        parser=_instant,
        show_default=False,
        help="When the times of the rows end, in UTC: a date such as 2026-11-30, or now.",
    ),
]
