"""What a probe must find of a service in a dialect of the mock."""

from backread import ServiceProfile
from backread.profile import FieldProfile, ListProfile
from backread.testing import Dialect


def compare(profile: ServiceProfile, dialect: Dialect, users: int) -> None:
    """Each finding against the switch that it is about."""
    largest, default = dialect.max_limit, min(dialect.default_limit, dialect.max_limit)
    assert (profile.default_page, profile.largest_page) == (default, largest)
    for found, limit, nearest in (
        (profile.limit_zero, 0, 1),
        (profile.limit_hundred, 100, largest),
    ):
        assert found is not None
        if dialect.over_limit == "refuse":
            assert (found.treatment, found.applied) == ("refused", None), limit
            assert found.answer.status == 422
        else:
            clamps = dialect.over_limit == "clamp"
            word = "clamped" if clamps else "ignored"
            assert found.treatment == (word if nearest != default else None), limit
            assert found.applied == (nearest if clamps else default), limit
    for kind in (profile.users, profile.messages):
        compare_list(kind, dialect)
    if dialect.total in ("low", "high"):
        assert abs(profile.users.total_error or 0) == 1 + users // 10
    # A few pages may all be whole by chance. Where totals are true, those of many lists count.
    for kind in (profile.users, profile.messages):
        assert kind.short_pages in (False, dialect.short_pages)
    if profile.messages.total_exact:
        assert profile.messages.short_pages == dialect.short_pages
    assert profile.message_ids_unique is True
    assert profile.sender_types is not None
    assert {"user", "operator"} <= set(profile.sender_types)
    assert bool(set(profile.sender_types) - {"user", "operator"}) == (
        dialect.sender_type == "others"
    )
    for follows in (profile.updated_at_follows, profile.online_at_follows):
        assert follows is None or follows.holds
    compare_fields(profile, dialect)
    compare_refusals(profile, dialect)


def compare_list(kind: ListProfile, dialect: Dialect) -> None:
    direction = "descending" if dialect.order == "newest" else "ascending"
    if dialect.order == "shuffled":
        assert kind.order is None
    else:
        assert kind.order is not None
        assert (kind.order.field, kind.order.direction) == ("id", direction)
        assert kind.order.exact == (dialect.order != "ties")
    assert kind.stable == (dialect.order in ("id", "newest"))
    assert kind.total_exact == (dialect.total in ("exact", "stale"))
    if dialect.total == "null":
        assert kind.total_error is None
    else:
        assert kind.total_error is not None
        sign = {"low": -1, "capped": -1, "high": 1}.get(dialect.total, 0)
        assert (kind.total_error > 0) - (kind.total_error < 0) == sign
    gives = {"empty": "empty", "not_found": "error", "last_page": "earlier_rows"}
    assert kind.past_end is not None
    assert kind.past_end.gives == gives[dialect.past_end]
    assert kind.past_end.status == (404 if dialect.past_end == "not_found" else 200)


def compare_fields(profile: ServiceProfile, dialect: Dialect) -> None:
    may_be_null = {"file_url", "picture_thumb_url"}
    seen = [
        (kind, name, found)
        for kind, found_fields in profile.fields.items()
        for name, found in found_fields.items()
    ]
    rows = [each for each in seen if each[0] in ("user", "message") and each[2].documented]
    nulls = {(k, n) for k, n, f in rows if f.null_share and n not in may_be_null}
    gaps = {(k, n) for k, n, f in rows if f.missing_share}
    assert bool(nulls) == (dialect.nulls in ("null", "both"))
    assert bool(gaps) == (dialect.nulls in ("missing", "both"))
    extra = {n for kind, n, found in seen if not found.documented and kind != "other_sender"}
    added = {"locale", "tags", "score", "company", "edited_at", "reactions", "has_more", "role"}
    assert extra == (added if dialect.extra_fields else set())
    kind = "string" if dialect.ids == "text" else "integer"
    assert profile.fields["user"]["id"] == FieldProfile(True, (kind,), 0.0, 0.0)
    assert profile.fields["message"]["id"].types == (kind,)
    assert profile.fields["user"]["user_attributes"].types == ("array",)
    assert profile.fields["message"]["sender"].types == ("object",)
    assert profile.fields["message"]["read_by_user"].types == ("boolean",)
    assert ("other_sender" in profile.fields) == (
        dialect.sender_type == "others" or dialect.nulls != "documented"
    )


def compare_refusals(profile: ServiceProfile, dialect: Dialect) -> None:
    refusals = profile.refusals
    for found, status in (
        # A secret that is no lane's is answered by the server itself, which is strict.
        (refusals.wrong_secret, 401),
        (refusals.other_accept, 406 if dialect.strict else 200),
        (refusals.unknown_user, 404),
        (refusals.messages_of_unknown_user, 404),
        (refusals.unknown_message, 404),
    ):
        assert found is not None
        assert (found.status, found.content_type) == (status, "application/json")
        if status != 200:
            assert found.shape["error"]["code"] == "string"
