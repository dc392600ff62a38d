"""The SQL of the figures, over the tables of `Mirror.sql`; docs/how-to/report.md has it as recipes.

``{period}`` is a condition on ``created_at``, ``{timezone}`` a quoted name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backread.mirror.published.published_lists import READ_WHOLE
from backread.mirror.published.views import LAST_READ
from backread.mirror.store.engine import quoted

__all__ = [
    "ATTACHMENTS",
    "BUCKETS",
    "COVERAGE",
    "HOURLY",
    "INVITATIONS",
    "LONGEST",
    "OPERATORS",
    "OPERATORS_TOTAL",
    "OPERATOR_RESPONSES",
    "RESPONSES",
    "STATES",
    "TALKS",
    "TOTALS",
    "UNPROVED",
    "WAITS",
    "WAITS_IN_OPENING_HOURS",
    "buckets",
    "open_intervals",
]

MOST_OPERATORS = 200
MOST_TYPES = 8
MOST_LONGEST = 10
MOST_UNPROVED = 20

BUCKETS = (0, 60, 300, 900, 3_600, 14_400, 86_400, 604_800)
"""Where the ranges of first response times begin, in seconds."""

KIND = """CASE WHEN sender_type = 'user' THEN 'user' WHEN auto_invitation THEN 'invitation'
        WHEN sender_type = 'operator' THEN 'operator' ELSE 'other' END"""

COVERAGE = f"""
SELECT run_id, mode, state, epoch_us(as_of), certificate, certificate_reason,
    (SELECT count(*) FROM rejects)
FROM ({LAST_READ})
"""

UNPROVED = f"""
SELECT users.id, CASE WHEN lists.user_id IS NULL THEN 'never read' ELSE lists.reason END
FROM users LEFT JOIN lists ON lists.user_id = users.id
WHERE users.deleted_at IS NULL AND coalesce(lists.certificate, 'uncertified') = 'uncertified'
ORDER BY 1 LIMIT {MOST_UNPROVED}
"""

TALKS = f"""
CREATE TEMP TABLE talks AS
WITH spoken AS (
    SELECT user_id, id, created_at, read_by_user, read_by_operator, sender_id, {KIND} AS kind
    FROM messages WHERE deleted_at IS NULL
), opening AS (
    SELECT user_id, min(created_at) AS asked_at
    FROM spoken WHERE kind = 'user' GROUP BY user_id
), counted AS (
    SELECT user_id,
        any_value(asked_at) AS asked_at,
        min(created_at) FILTER (kind = 'operator' AND created_at >= asked_at) AS answered_at,
        arg_min_null(sender_id, (created_at, id))
            FILTER (kind = 'operator' AND created_at >= asked_at) AS answered_by,
        max(created_at) FILTER (kind = 'user') AS last_asked_at,
        min(created_at) AS first_message_at,
        max(created_at) AS last_message_at,
        arg_max(kind, (created_at, id)) AS last_kind,
        count(*) AS messages,
        count(*) FILTER ({{period}}) AS in_period,
        count(*) FILTER (kind = 'user') AS user_messages,
        count(*) FILTER (kind = 'operator') AS operator_messages,
        count(*) FILTER (kind IN ('operator', 'invitation') AND NOT read_by_user) AS unread_by_user,
        count(*) FILTER (kind = 'user' AND NOT read_by_operator) AS unread_by_operator
    FROM spoken LEFT JOIN opening USING (user_id) GROUP BY user_id
)
SELECT counted.*, {READ_WHOLE} AS complete
FROM counted JOIN users ON users.id = counted.user_id
LEFT JOIN lists ON lists.user_id = counted.user_id
WHERE users.deleted_at IS NULL
"""

HOURLY = f"""
CREATE TEMP TABLE hourly AS
SELECT date_trunc('hour', created_at AT TIME ZONE {{timezone}}) AS hour, {KIND} AS kind,
    count(*) AS messages, min(created_at) AS first_at, max(created_at) AS last_at
FROM messages WHERE deleted_at IS NULL AND {{period}} GROUP BY ALL
"""

TOTALS = """
SELECT (SELECT count(*) FROM users WHERE deleted_at IS NULL),
    (SELECT count(*) FROM talks WHERE in_period > 0),
    coalesce(sum(messages), 0)::BIGINT,
    coalesce(sum(messages) FILTER (kind = 'user'), 0)::BIGINT,
    coalesce(sum(messages) FILTER (kind = 'operator'), 0)::BIGINT,
    coalesce(sum(messages) FILTER (kind = 'invitation'), 0)::BIGINT,
    coalesce(sum(messages) FILTER (kind = 'other'), 0)::BIGINT,
    coalesce(sum(messages) FILTER (hour IS NULL), 0)::BIGINT,
    epoch_us(min(first_at)), epoch_us(max(last_at)),
    min(hour)::DATE, max(hour)::DATE
FROM hourly
"""

VOLUME = """
WITH written AS (
    SELECT date_trunc({unit}, hour)::DATE AS start, kind, messages FROM hourly
    WHERE hour IS NOT NULL
), begun AS (
    SELECT date_trunc({unit}, first_message_at AT TIME ZONE {timezone})::DATE AS start,
        count(*) AS conversations
    FROM talks WHERE {first_period} GROUP BY ALL
), waited AS (
    SELECT date_trunc({unit}, asked_at AT TIME ZONE {timezone})::DATE AS start,
        median(seconds) AS p50
    FROM waits GROUP BY ALL
), counted AS (
    SELECT start, coalesce(sum(messages) FILTER (kind = 'user'), 0)::BIGINT,
        coalesce(sum(messages) FILTER (kind = 'operator'), 0)::BIGINT,
        coalesce(sum(messages) FILTER (kind = 'invitation'), 0)::BIGINT,
        coalesce(sum(messages) FILTER (kind = 'other'), 0)::BIGINT
    FROM written GROUP BY start
)
SELECT counted.*, coalesce(begun.conversations, 0), waited.p50
FROM counted LEFT JOIN begun USING (start) LEFT JOIN waited USING (start) ORDER BY start
"""

HOURS = """
SELECT isodow(hour), hour(hour),
    coalesce(sum(messages) FILTER (kind = 'user'), 0)::BIGINT,
    coalesce(sum(messages) FILTER (kind = 'operator'), 0)::BIGINT
FROM hourly WHERE hour IS NOT NULL AND kind IN ('user', 'operator') GROUP BY ALL ORDER BY ALL
"""

WAITS = """
CREATE TEMP TABLE waits AS
SELECT user_id, asked_at, answered_by,
    date_diff('millisecond', asked_at, answered_at) / 1000 AS seconds, false AS outside
FROM talks WHERE answered_at IS NOT NULL AND complete AND {asked_period}
"""

OPEN_INTERVALS = """
CREATE TEMP TABLE open_intervals AS
WITH days AS (
    SELECT unnest(generate_series(
        min(asked_at AT TIME ZONE {timezone})::DATE - 1,
        max(answered_at AT TIME ZONE {timezone})::DATE + 1,
        INTERVAL 1 DAY
    ))::DATE AS day
    FROM talks WHERE answered_at IS NOT NULL AND complete AND {asked_period}
), local AS (
    SELECT (day + to_minutes(opens)) AT TIME ZONE {timezone} AS starts_at,
        (day + to_minutes(closes)) AT TIME ZONE {timezone} AS ends_at
    FROM days JOIN (VALUES {hours}) AS week(weekday, opens, closes) ON isodow(day) = weekday
), apart AS (
    -- A clock change can move an opening time past the next one.
    SELECT starts_at, least(ends_at, lead(starts_at) OVER (ORDER BY starts_at, ends_at)) AS ends_at
    FROM local WHERE starts_at < ends_at
)
SELECT starts_at, ends_at, coalesce(sum(epoch_us(ends_at) - epoch_us(starts_at)) OVER (
    ORDER BY starts_at, ends_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
), 0)::BIGINT AS open_before
FROM apart
"""

WAITS_IN_OPENING_HOURS = """
CREATE TEMP TABLE waits AS
SELECT user_id, asked_at, answered_by,
    coalesce(asked_at >= since.ends_at, true) AS outside,
    -- Null if the answer came before the next opening.
    CASE WHEN outside AND since.starts_at IS NOT DISTINCT FROM until.starts_at THEN NULL ELSE
    (coalesce(until.open_before + epoch_us(least(answered_at, until.ends_at))
        - epoch_us(until.starts_at), 0)
    - coalesce(since.open_before + epoch_us(least(asked_at, since.ends_at))
        - epoch_us(since.starts_at), 0)) / 1000000 END AS seconds
FROM talks
ASOF LEFT JOIN open_intervals AS since ON talks.asked_at >= since.starts_at
ASOF LEFT JOIN open_intervals AS until ON talks.answered_at >= until.starts_at
WHERE answered_at IS NOT NULL AND complete AND {asked_period}
"""

RESPONSES = """
SELECT
    (SELECT count(*) FROM talks WHERE asked_at IS NOT NULL AND {asked_period}),
    (SELECT count(*) FROM talks WHERE asked_at IS NOT NULL AND NOT complete AND {asked_period}),
    count(*), count(*) FILTER (outside), count(*) FILTER (seconds IS NULL),
    median(seconds), quantile_cont(seconds, 0.9),
    avg(seconds), max(seconds)::DOUBLE
FROM waits
"""

STATES = """
SELECT count(*) FILTER (last_kind = 'user'), count(*) FILTER (last_kind = 'operator'),
    count(*) FILTER (last_kind = 'invitation'), count(*) FILTER (last_kind = 'other'),
    coalesce(sum(unread_by_operator), 0)::BIGINT, count(*) FILTER (unread_by_operator > 0),
    coalesce(sum(unread_by_user), 0)::BIGINT, count(*) FILTER (unread_by_user > 0)
FROM talks WHERE in_period > 0
"""

INVITATIONS = """
WITH invited AS (
    SELECT messages.user_id, coalesce(created_at < last_asked_at, false) AS followed,
        coalesce(read_by_user, false) AS seen
    FROM messages LEFT JOIN talks USING (user_id)
    WHERE deleted_at IS NULL AND auto_invitation AND sender_type IS DISTINCT FROM 'user'
        AND {period}
)
SELECT count(*), count(*) FILTER (followed), count(*) FILTER (seen AND NOT followed),
    count(*) FILTER (NOT seen AND NOT followed), count(DISTINCT user_id),
    count(DISTINCT user_id) FILTER (followed)
FROM invited
"""

ATTACHMENTS = """
SELECT coalesce(nullif(regexp_extract(lower(split_part(split_part(file_url, '#', 1), '?', 1)),
        '/[^/]*\\.([a-z0-9]{{1,5}})$', 1), ''), 'other') AS type,
    count(*), count(*) FILTER (sender_type = 'user'), count(*) FILTER (sender_type = 'operator')
FROM messages WHERE deleted_at IS NULL AND file_url IS NOT NULL AND {period}
GROUP BY type ORDER BY 2 DESC, 1
"""

ATTACHED = """
SELECT count(DISTINCT user_id) FROM messages
WHERE deleted_at IS NULL AND file_url IS NOT NULL AND {period}
"""

OPERATORS = """
CREATE TEMP TABLE operators AS
SELECT sender_id, count(*) AS messages, count(DISTINCT user_id) AS conversations,
    -- The newest name; a null would sort after all times.
    arg_max(nullif(trim(concat_ws(' ', sender_forename, sender_surname)), ''),
        (coalesce(created_at, TIMESTAMPTZ 'epoch'), id)) AS name
FROM messages
WHERE deleted_at IS NULL AND sender_type = 'operator' AND NOT coalesce(auto_invitation, false)
    AND {period}
GROUP BY sender_id
"""

OPERATOR_RESPONSES = f"""
WITH answers AS (
    SELECT answered_by, count(seconds) AS responses, median(seconds) AS p50,
        quantile_cont(seconds, 0.9) AS p90
    FROM waits GROUP BY answered_by
)
SELECT sender_id, name, messages, conversations, coalesce(responses, 0), p50, p90
FROM operators LEFT JOIN answers ON answered_by IS NOT DISTINCT FROM sender_id
ORDER BY messages DESC, sender_id NULLS LAST LIMIT {MOST_OPERATORS}
"""

OPERATORS_TOTAL = "SELECT count(*) FROM operators"

LONGEST = f"""
SELECT user_id, users.name, messages, user_messages, operator_messages,
    epoch_us(first_message_at), epoch_us(last_message_at)
FROM talks JOIN users ON users.id = user_id
WHERE in_period > 0 ORDER BY messages DESC, user_id LIMIT {MOST_LONGEST}
"""


def open_intervals(intervals: Iterable[tuple[int, int, int]], timezone: str, period: str) -> str:
    """The statement that makes the table of opening hours over the range of the waits."""
    hours = ", ".join(map(str, intervals))
    return OPEN_INTERVALS.format(hours=hours, timezone=quoted(timezone), asked_period=period)


def buckets(bounds: Sequence[int]) -> str:
    """The query that counts the waits from each bound up to the next."""
    counts = [
        f"count(*) FILTER (seconds >= {low} AND seconds < {high})"
        for low, high in zip(bounds, (*bounds[1:], "'inf'::DOUBLE"), strict=True)
    ]
    return f"SELECT {', '.join(counts)} FROM waits"
