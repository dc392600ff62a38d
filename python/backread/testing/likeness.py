"""Chooses the mock's switches that are nearest to a probe's results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from backread.testing.switches import Nulls, OverLimit, PastEnd, Switches, Total

if TYPE_CHECKING:
    from backread.profile import FieldProfile, LimitAnswer, ListOrder, ListProfile, ServiceProfile

__all__ = ["switches_like"]

# From the easiest for a client to the hardest.
ORDERS = ("id", "newest", "ties", "shuffled")
PAST_ENDS: dict[str, PastEnd] = {
    "empty": "empty",
    "error": "not_found",
    "earlier_rows": "last_page",
}
OVER_LIMITS: dict[str, OverLimit] = {"refused": "refuse", "clamped": "clamp", "ignored": "ignore"}
DOCUMENTED_SENDERS = {"user", "operator"}
MAY_BE_NULL = {"file_url", "picture_thumb_url"}
# The kinds of objects in rows that have documented fields.
KINDS = ("user", "user_attribute", "message", "user_sender", "operator_sender")
ADDED = {
    "page": {"has_more"},
    "user": {"locale", "tags", "score", "company"},
    "message": {"edited_at", "reactions"},
    "user_sender": {"role"},
    "operator_sender": {"role"},
}
"""The fields that the mock adds with ``extra_fields=some``, by the kind of object."""
SENDERS = {"api", "bot", "system"}
"""The mock's senders with ``sender_type=others``."""
STATUSES = {
    "wrong_secret": 401,
    "other_accept": 406,
    "unknown_user": 404,
    "messages_of_unknown_user": 404,
    "unknown_message": 404,
}
"""The mock's statuses for refused requests."""
ERROR_SHAPE = {
    "error": {"code": "string", "guess": "boolean", "message": "string", "status": "integer"}
}


def switches_like(
    profile: ServiceProfile, *, total_users: int | None = None
) -> tuple[Switches, dict[str, str]]:
    """The switches that a profile decides, and what the mock cannot imitate, with the reason."""
    switches: Switches = {}
    left_out: dict[str, str] = {}
    _pages(profile, switches, left_out)
    _lists(profile, total_users, switches, left_out)
    _rows(profile, switches, left_out)
    _refusals(profile, switches, left_out)
    left_out.update(_other_findings(profile))
    return switches, dict(sorted(left_out.items()))


# --- pages ----------------------------------------------------------------------------------------


def _pages(profile: ServiceProfile, switches: Switches, left_out: dict[str, str]) -> None:
    for name, found in (
        ("default_page", profile.default_page),
        ("largest_page", profile.largest_page),
    ):
        if found is None:
            left_out[name] = "not measured; the mock has its own"
        elif not 1 <= found <= 99:
            left_out[name] = f"{found} rows; the mock's pages have 1 to 99"
        elif name == "default_page":
            switches["default_limit"] = found
        else:
            switches["max_limit"] = found
    zero, hundred = _over_limit(profile.limit_zero), _over_limit(profile.limit_hundred)
    chosen = hundred or zero
    if chosen is not None:
        switches["over_limit"] = chosen
    for path, answer, found_here in (
        ("limit_zero", profile.limit_zero, zero),
        ("limit_hundred", profile.limit_hundred, hundred),
    ):
        if answer is None:
            left_out[path] = "not measured"
        elif answer.treatment is not None and found_here != chosen:
            left_out[path] = f"it is {answer.treatment}; the mock has one way for all limits"
        elif answer.treatment in ("applied", "other"):
            left_out[path] = f"it is {answer.treatment}; the mock refuses, clamps or ignores it"
        elif chosen == "refuse" and answer.answer.status != 422:
            left_out[f"{path}.answer"] = f"status {answer.answer.status}; the mock's is 422"


def _over_limit(answer: LimitAnswer | None) -> OverLimit | None:
    return None if answer is None else OVER_LIMITS.get(answer.treatment or "")


# --- lists ----------------------------------------------------------------------------------------


def _lists(
    profile: ServiceProfile,
    total_users: int | None,
    switches: Switches,
    left_out: dict[str, str],
) -> None:
    both = {"users": profile.users, "messages": profile.messages}
    orders: dict[str, Any] = {name: _order(found) for name, found in both.items()}
    known = [each for each in orders.values() if each is not None]
    if known:
        switches["order"] = max(known, key=ORDERS.index)
    ends: dict[str, PastEnd] = {
        name: PAST_ENDS[found.past_end.gives] for name, found in both.items() if found.past_end
    }
    past_end = ends.get("users") or ends.get("messages")
    if past_end is not None:
        switches["past_end"] = past_end
    switches["short_pages"] = any(found.short_pages for found in both.values())
    switches.update(_total(profile, total_users))
    for name, found in both.items():
        for path, words in _odd_order(found, orders[name], switches.get("order")):
            left_out[f"{name}.{path}"] = words
        if name in ends and ends[name] != past_end:
            left_out[f"{name}.past_end"] = "not as for the other lists; the mock's are all alike"
        elif found.past_end and found.past_end.gives == "error" and found.past_end.status != 404:
            left_out[f"{name}.past_end"] = f"status {found.past_end.status}; the mock's is 404"
        if found.total_exact is False and _sign(found) != _sign(profile.users):
            left_out[f"{name}.total_exact"] = "not as for the users; the mock's totals are alike"
    if switches.get("total") in ("low", "high"):
        left_out["users.total_error"] = (
            f"{profile.users.total_error:+}; the mock is a tenth off" + _OTHERWISE
        )


_OTHERWISE = " (where totals stop at a number, say total=capped total_cap=NUMBER)"


def _order(found: ListProfile) -> str | None:
    """The switch for the order of one kind of list; None if unknown."""
    if found.order is None:
        return "shuffled" if found.stable is False else None
    if found.stable is False and not found.order.exact:
        return "ties"
    return "id" if found.order.direction == "ascending" else "newest"


def _odd_order(
    found: ListProfile, switch: str | None, chosen: str | None
) -> Iterator[tuple[str, str]]:
    order = found.order
    if switch is not None and switch != chosen:
        yield "order", f"{_ordered(order)}; the mock's lists are all in one order, {chosen}"
    elif order is None:
        if found.stable:
            yield "order", "by none of the fields, and always the same; the mock goes by id"
    elif order.field not in ("id", "created_at"):
        yield "order", f"{_ordered(order)}; the mock goes by id"
    elif switch != "ties" and not (order.exact and found.stable is not False):
        yield "order", f"{_ordered(order)}; the mock's is exact, or ties that change each time"


def _ordered(order: ListOrder | None) -> str:
    if order is None:
        return "by none of the fields"
    return f"{'' if order.exact else 'roughly '}by {order.field}, {order.direction}"


def _total(profile: ServiceProfile, total_users: int | None) -> Switches:
    found = profile.users if profile.users.total_exact is False else profile.messages
    total: Total
    if found.total_exact is not False:
        return {"total": "exact"}
    if found.total_error is None:
        return {"total": "null"}
    total = "high" if found.total_error > 0 else "low"
    error = profile.users.total_error or 0
    if total == "low" and total_users is not None and total_users + error > 0:
        # The mock's low total is less by a tenth plus one.
        if error != -(1 + total_users // 10):
            return {"total": "capped", "total_cap": total_users + error}
    elif total == "low" and profile.messages.total_exact and error < 0:
        # Lists of messages are below the cap, so it is above the sizes that were read.
        return {"total": "capped", "total_cap": max(profile.messages.rows, 1)}
    return {"total": total}


def _sign(found: ListProfile) -> int:
    error = found.total_error or 0
    return (error > 0) - (error < 0)


# --- rows -----------------------------------------------------------------------------------------


def _rows(profile: ServiceProfile, switches: Switches, left_out: dict[str, str]) -> None:
    seen = [
        (kind, name, found)
        for kind in KINDS
        for name, found in profile.fields.get(kind, {}).items()
        if found.documented and name != "id"
    ]
    null = [f"{kind}.{name}" for kind, name, found in seen if _is_null(name, found)]
    gaps = [f"{kind}.{name}" for kind, name, found in seen if found.missing_share > 0]
    words: dict[tuple[bool, bool], Nulls] = {
        (False, False): "documented",
        (True, False): "null",
        (False, True): "missing",
        (True, True): "both",
    }
    switches["nulls"] = words[bool(null), bool(gaps)]
    if null or gaps:
        left_out["fields"] = (
            f"{_some([*null, *gaps])} may be null or missing; the mock leaves out a fifth of all "
            "fields (a record has them as they are)"
        )
    others = set(profile.sender_types or ()) - DOCUMENTED_SENDERS
    switches["sender_type"] = "others" if others else "documented"
    if others - SENDERS:
        left_out["sender_types"] = f"{_some(sorted(others))}; the mock has {_some(sorted(SENDERS))}"
    extra = {
        kind: {name for name, found in profile.fields.get(kind, {}).items() if not found.documented}
        for kind in ("page", *KINDS)
    }
    switches["extra_fields"] = any(extra.values())
    unknown = [
        f"{kind}.{name}"
        for kind, names in extra.items()
        for name in sorted(names - ADDED.get(kind, set()))
    ]
    if unknown:
        left_out["fields.extra"] = f"{_some(unknown)}; the mock adds other fields"
    ids = {kind: profile.fields.get(kind, {}).get("id") for kind in ("user", "message")}
    types = {kind: found.types for kind, found in ids.items() if found is not None and found.types}
    if ("string",) in types.values():
        switches["ids"] = "text"
    for kind, found in types.items():
        if found != (("string",) if "ids" in switches else ("integer",)):
            left_out[f"fields.{kind}.id"] = f"{' or '.join(found)}; the mock's ids are all alike"


def _is_null(name: str, found: FieldProfile) -> bool:
    return found.null_share > 0 and name not in MAY_BE_NULL


def _some(names: list[str]) -> str:
    """The first few names in a line."""
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"


# --- refusals, and what has no switch -------------------------------------------------------------


def _refusals(profile: ServiceProfile, switches: Switches, left_out: dict[str, str]) -> None:
    accept, secret = profile.refusals.other_accept, profile.refusals.wrong_secret
    if accept is not None:
        switches["strict"] = accept.status >= 400
    elif secret is not None:
        switches["strict"] = secret.status >= 400
    for name, status in STATUSES.items():
        found, path = getattr(profile.refusals, name), f"refusals.{name}"
        if found is None:
            left_out[path] = "not measured"
        elif found.status == 200:
            # A mock that is not strict answers these two; the strict case was reported above.
            if name not in ("wrong_secret", "other_accept") or switches.get("strict"):
                left_out[path] = f"it is answered; the mock refuses with {status}"
        elif found.status != status:
            left_out[path] = f"status {found.status}; the mock's is {status}"
        elif found.shape != ERROR_SHAPE:
            left_out[path] = "a body of another shape than the mock's"
    if not switches.get("strict", True) and secret is not None and secret.status >= 400:
        left_out.setdefault(
            "refusals.wrong_secret",
            "refused, though another Accept is not; a mock that is not strict takes any secret, "
            "unless it is a lane's",
        )


def _other_findings(profile: ServiceProfile) -> Iterator[tuple[str, str]]:
    """Findings without a corresponding switch."""
    http = profile.http
    if profile.message_ids_unique is False:
        yield "message_ids_unique", "ids of messages repeat among users; the mock's do not"
    for name in ("updated_at_follows", "online_at_follows"):
        follows = getattr(profile, name)
        if follows is not None and not follows.holds:
            yield name, f"for {follows.share:.0%} of users; of the mock's users it always holds"
    if http.version not in (None, "HTTP/1.1"):
        yield "http.version", f"{http.version}; the mock speaks HTTP/1.1"
    if http.compression not in (None, "none"):
        yield "http.compression", f"{http.compression}; the mock does not compress"
    if http.validators:
        yield "http.validators", f"{', '.join(http.validators)}; the mock sends none"
    limited = "how many requests are answered is not measured: say it with --rate 'NUMBER/s"
    if http.rate_limit_headers:
        names = ", ".join(http.rate_limit_headers)
        yield "http.rate_limit_headers", f"{names}; {limited} says=headers'"
    elif 429 in http.statuses:
        yield "http.statuses", f"some answers were 429; {limited}'"
