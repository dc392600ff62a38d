"""Finds the rejects of users to forget, by the ids in their JSON, which may have any type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from backread._files.json import parse_json

if TYPE_CHECKING:
    from backread.mirror.store.store import Store

__all__ = ["RejectsOf"]

ID = "id"
"""The end of the names of fields that hold ids, such as ``user_id`` and ``visitorId``."""

BLANKED = "its record named a user who was forgotten"


class RejectsOf:
    """The rejects in a table that are the users' own, or name one of them.

    The users' own are records in their lists, and records of users with their id as any type. Of
    others that name one of the users, only the JSON and the reason are removed: the row may be why
    no row of a list counts as deleted.
    """

    def __init__(self, store: Store, table: str, user_ids: Iterable[int]) -> None:
        self._store = store
        self._table = table
        self._own: list[int] = []
        self._naming: list[int] = []
        self.user_ids: set[int] = set()
        wanted = {str(user_id): user_id for user_id in user_ids}
        if wanted:
            self._find(wanted)

    def _find(self, wanted: dict[str, int]) -> None:
        found = self._store.rows(
            f"SELECT rowid, resource, user_id, json FROM {self._table} "
            "WHERE list_contains(CAST($ids AS BIGINT[]), user_id) "
            "OR list_has_any(regexp_extract_all(json, '[0-9]+'), CAST($ids AS VARCHAR[]))",
            {"ids": list(wanted)},
        )
        for row, resource, user_id, text in found:
            if str(user_id) in wanted:
                self._own.append(row)
                self.user_ids.add(user_id)
                continue
            try:
                record = parse_json(text)
            except ValueError:
                # Unreadable, so it may be anyone's.
                self._naming.append(row)
                continue
            if isinstance(record, dict):
                # Of a message, this is the message's own.
                record_id = _plain(record.pop(ID, None))
                own = wanted.get(record_id) if resource == "users" else None
                if own is not None:
                    self._own.append(row)
                    self.user_ids.add(own)
                    continue
            named = {wanted[each] for each in _ids(record) if each in wanted}
            if named:
                self._naming.append(row)
                self.user_ids |= named

    def remove(self) -> int:
        """Removes them, inside the caller's transaction; returns their number."""
        if self._own:
            self._store.rows(f"DELETE FROM {self._table} WHERE rowid IN ({_listed(self._own)})")
        if self._naming:
            self._store.rows(
                f"UPDATE {self._table} SET json = NULL, reason = ? "
                f"WHERE rowid IN ({_listed(self._naming)})",
                [BLANKED],
            )
        return len(self._own) + len(self._naming)


def _listed(rows: list[int]) -> str:
    return ", ".join(map(str, rows))


def _ids(record: Any) -> Iterator[str]:
    """The values of all fields whose names end in ``id``, as text."""
    waiting = [record]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()
            yield from (_plain(each[name]) for name in each if name.lower().endswith(ID))


def _plain(value: Any) -> str:
    """An id as text; empty for what is no id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return ""
    return str(value).strip()
