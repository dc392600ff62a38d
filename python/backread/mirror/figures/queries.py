"""The SQL of the figures, over the tables of `Mirror.sql`; recipes: docs/how-to/analysts.md.

Each gives a row for each dict of `Figures`, whose keys are the columns. ``{period}`` is a condition
on ``created_at``, ``{asked_period}`` and ``{first_period}`` the same on ``asked_at`` and
``first_message_at``; ``{timezone}`` is a quoted name; ``{now}`` and the limits of what was read,
``{since}`` and ``{until}``, are times.
"""

from __future__ import annotations

import re

from backread.mirror.published.views import LAST_READ, READ_WHOLE

KIND = """CASE WHEN sender_type = 'user' THEN 'user' WHEN auto_invitation THEN 'invitation'
        WHEN sender_type = 'operator' THEN 'operator' ELSE 'other' END"""


def iso_text(moment: str) -> str:
    """The time as Python's ``isoformat`` writes it."""
    text = f"strftime({moment} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%f+00:00')"
    return f"replace({text}, '.000000', '')"


def unit_start(local: str) -> str:
    """The first day of the unit; a time zone can move a time out of the years that Python has."""
    return (
        f"date_trunc('{{unit}}', greatest(TIMESTAMP '0001-01-01', least(TIMESTAMP '9999-12-31', "
        f"{local})))::DATE"
    )


COVERAGE = f"""
SELECT run_id, mode, state, {iso_text("as_of")} AS as_of,
    date_diff('microsecond', as_of, {{now}}) / 1000000 AS age_seconds,
    certificate AS users_certificate, certificate_reason AS users_reason
FROM (SELECT 1) LEFT JOIN ({LAST_READ}) ON true
"""

UNPROVED = """
SELECT users.id AS user_id,
    CASE WHEN lists.user_id IS NULL THEN 'never read' ELSE lists.reason END AS reason
FROM users LEFT JOIN lists ON lists.user_id = users.id
WHERE users.deleted_at IS NULL AND coalesce(lists.certificate, 'uncertified') = 'uncertified'
ORDER BY 1 LIMIT 20
"""

TALKS = f"""
CREATE OR REPLACE TEMP TABLE talks AS
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
CREATE OR REPLACE TEMP TABLE hourly AS
SELECT date_trunc('hour', created_at AT TIME ZONE {{timezone}}) AS local_hour,
    {KIND} AS kind,
    count(*) AS messages, min(created_at) AS first_at, max(created_at) AS last_at
FROM messages WHERE deleted_at IS NULL AND {{period}} GROUP BY ALL
"""

WRITTEN = """coalesce(sum(messages) FILTER (kind = 'user'), 0)::BIGINT AS user_messages,
    coalesce(sum(messages) FILTER (kind = 'operator'), 0)::BIGINT AS operator_messages,
    coalesce(sum(messages) FILTER (kind = 'invitation'), 0)::BIGINT AS auto_invitations,
    coalesce(sum(messages) FILTER (kind = 'other'), 0)::BIGINT AS other_messages"""

TOTALS = f"""
SELECT (SELECT count(*) FROM users WHERE deleted_at IS NULL) AS users,
    (SELECT count(*) FROM talks WHERE in_period > 0) AS conversations,
    coalesce(sum(messages), 0)::BIGINT AS messages, {WRITTEN},
    coalesce(sum(messages) FILTER (local_hour IS NULL), 0)::BIGINT AS undated_messages,
    {iso_text("min(first_at)")} AS first_message_at, {iso_text("max(last_at)")} AS last_message_at
FROM hourly
"""

UNIT = """
SELECT CASE WHEN days <= 92 THEN 'day' WHEN days <= 750 THEN 'week'
    WHEN days <= 5500 THEN 'month' ELSE 'year' END
FROM (SELECT coalesce(max(local_hour)::DATE - min(local_hour)::DATE, 0) AS days FROM hourly)
"""

VOLUME = f"""
WITH written AS (
    SELECT {unit_start("local_hour")} AS start, kind, messages
    FROM hourly WHERE local_hour IS NOT NULL
), units AS (
    SELECT unnest(generate_series(min(start), max(start), to_{{unit}}s(1)))::DATE AS start
    FROM written
), begun AS (
    SELECT {unit_start("first_message_at AT TIME ZONE {timezone}")} AS start,
        count(*) AS conversations
    FROM talks WHERE {{first_period}} AND first_message_at IS NOT NULL GROUP BY start
), waited AS (
    SELECT {unit_start("asked_at AT TIME ZONE {timezone}")} AS start, median(seconds) AS p50
    FROM waits GROUP BY start
)
SELECT units.start::VARCHAR AS start,
    ((units.start + to_{{unit}}s(1))::DATE - 1)::VARCHAR AS last_day,
    units.start::TIMESTAMP AT TIME ZONE {{timezone}} >= {{since}}
        AND (units.start + to_{{unit}}s(1)) AT TIME ZONE {{timezone}} <= {{until}} AS whole,
    coalesce(sum(messages), 0)::BIGINT AS messages, {WRITTEN},
    coalesce(any_value(conversations), 0) AS conversations, any_value(p50) AS p50_seconds
FROM units LEFT JOIN written USING (start) LEFT JOIN begun USING (start)
LEFT JOIN waited USING (start) GROUP BY units.start ORDER BY units.start
"""

HOURS = """
SELECT isodow(local_hour) AS weekday, hour(local_hour) AS hour,
    coalesce(sum(messages) FILTER (kind = 'user'), 0)::BIGINT AS user_messages,
    coalesce(sum(messages) FILTER (kind = 'operator'), 0)::BIGINT AS operator_messages
FROM hourly WHERE local_hour IS NOT NULL AND kind IN ('user', 'operator') GROUP BY ALL ORDER BY ALL
"""

WAITS = """
CREATE OR REPLACE TEMP TABLE waits AS
SELECT user_id, asked_at, answered_by,
    date_diff('millisecond', asked_at, answered_at) / 1000 AS seconds, false AS outside
FROM talks WHERE answered_at IS NOT NULL AND complete AND {asked_period}
"""

OPEN_INTERVALS = """
CREATE OR REPLACE TEMP TABLE open_intervals AS
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
CREATE OR REPLACE TEMP TABLE waits AS
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
SELECT count(*) AS asked, count(outside) AS answered,
    count(*) FILTER (complete AND outside IS NULL) AS unanswered,
    count(*) FILTER (NOT complete) AS unknown,
    CASE WHEN {has_hours} THEN count(*) FILTER (outside) END AS asked_outside_hours,
    CASE WHEN {has_hours} THEN count(outside) - count(seconds) END AS answered_outside_hours,
    median(seconds) AS p50_seconds, quantile_cont(seconds, 0.9) AS p90_seconds,
    avg(seconds) AS mean_seconds, max(seconds)::DOUBLE AS longest_seconds
FROM talks LEFT JOIN waits USING (user_id, asked_at)
WHERE asked_at IS NOT NULL AND {asked_period}
"""

BUCKETS = """
SELECT low AS from_seconds, high AS to_seconds, count(seconds) AS conversations
FROM (VALUES (0, 60), (60, 300), (300, 900), (900, 3600), (3600, 14400), (14400, 86400),
    (86400, 604800), (604800, NULL)) AS ranges(low, high)
LEFT JOIN waits ON seconds >= low AND (high IS NULL OR seconds < high)
GROUP BY ALL ORDER BY low
"""

STATES = """
SELECT count(*) FILTER (last_kind = 'user') AS user_wrote_last,
    count(*) FILTER (last_kind = 'operator') AS operator_wrote_last,
    count(*) FILTER (last_kind = 'invitation') AS invitation_last,
    count(*) FILTER (last_kind = 'other') AS other_last,
    coalesce(sum(unread_by_operator), 0)::BIGINT AS unread_by_operator_messages,
    count(*) FILTER (unread_by_operator > 0) AS unread_by_operator_conversations,
    coalesce(sum(unread_by_user), 0)::BIGINT AS unread_by_user_messages,
    count(*) FILTER (unread_by_user > 0) AS unread_by_user_conversations
FROM talks WHERE in_period > 0
"""

INVITED = """
    SELECT messages.user_id, CASE WHEN created_at < last_asked_at THEN 'followed'
        WHEN read_by_user THEN 'read' ELSE 'unread' END AS outcome
    FROM messages LEFT JOIN talks USING (user_id)
    WHERE deleted_at IS NULL AND auto_invitation AND sender_type IS DISTINCT FROM 'user'
        AND {period}
"""

INVITATIONS = f"""
SELECT count(*) AS sent, count(*) FILTER (outcome = 'followed') AS followed,
    count(*) FILTER (outcome = 'read') AS read, count(*) FILTER (outcome = 'unread') AS unread,
    count(DISTINCT user_id) AS users,
    count(DISTINCT user_id) FILTER (outcome = 'followed') AS users_followed
FROM ({INVITED})
"""

ATTACHMENTS = """
SELECT count(*) AS messages, count(*) FILTER (sender_type = 'user') AS by_users,
    count(*) FILTER (sender_type = 'operator') AS by_operators,
    count(DISTINCT user_id) AS conversations
FROM messages WHERE deleted_at IS NULL AND file_url IS NOT NULL AND {period}
"""

FILE_TYPES = """
WITH types AS (
    SELECT regexp_extract(lower(split_part(split_part(file_url, '#', 1), '?', 1)),
            '/[^/]*\\.([a-z0-9]{{1,5}})$', 1) AS type,
        count(*) AS messages,
        row_number() OVER (ORDER BY type = '', count(*) DESC, type) AS place
    FROM messages WHERE deleted_at IS NULL AND file_url IS NOT NULL AND {period} GROUP BY type
)
SELECT CASE WHEN type <> '' AND place <= 8 THEN type ELSE 'other' END AS name,
    sum(messages)::BIGINT
FROM types GROUP BY name ORDER BY min(place)
"""

OPERATORS = """
WITH answers AS (
    SELECT answered_by, count(seconds) AS first_responses, median(seconds) AS p50_seconds,
        quantile_cont(seconds, 0.9) AS p90_seconds
    FROM waits GROUP BY answered_by
), written AS (
    SELECT sender_id AS id, count(*) AS messages, count(DISTINCT user_id) AS conversations,
        -- The newest name; a null would sort after all times.
        arg_max(nullif(trim(concat_ws(' ', sender_forename, sender_surname)), ''),
            (coalesce(created_at, TIMESTAMPTZ 'epoch'), messages.id)) AS name
    FROM messages
    WHERE deleted_at IS NULL AND sender_type = 'operator' AND NOT coalesce(auto_invitation, false)
        AND {period}
    GROUP BY sender_id
)
SELECT coalesce(list(each ORDER BY each.messages DESC, each.id NULLS LAST)[:200], []), count(*)
FROM (
    SELECT id, name, messages, conversations, coalesce(first_responses, 0) AS first_responses,
        p50_seconds, p90_seconds
    FROM written LEFT JOIN answers ON answered_by IS NOT DISTINCT FROM id
) AS each
"""

LONGEST = f"""
SELECT user_id, users.name, messages, user_messages, operator_messages,
    {iso_text("first_message_at")} AS first_message_at,
    {iso_text("last_message_at")} AS last_message_at
FROM talks JOIN users ON users.id = user_id
WHERE in_period > 0 ORDER BY messages DESC, user_id LIMIT 10
"""

WROTE = f"messages WHERE deleted_at IS NULL AND {{{{period}}}} AND {KIND}"

LISTS = {
    "conversations": "talks WHERE in_period > 0",
    "begun": "talks WHERE first_message_at IS NOT NULL AND {{first_period}}",
    "answered": "waits",
    "answered_outside_hours": "waits WHERE seconds IS NULL",
    "unanswered": "talks WHERE complete AND asked_at IS NOT NULL AND answered_at IS NULL AND "
    "{{asked_period}}",
    "unknown": "talks WHERE NOT complete AND asked_at IS NOT NULL AND {{asked_period}}",
    r"waited\.(\d{1,9})\.(\d{0,9})": "waits WHERE seconds >= {0} AND "
    "seconds < coalesce(try_cast('{1}' AS DOUBLE), 'inf')",
    r"(user|operator)_wrote_last": "talks WHERE in_period > 0 AND last_kind = '{0}'",
    r"(invitation|other)_last": "talks WHERE in_period > 0 AND last_kind = '{0}'",
    r"unread_by_(user|operator)": "talks WHERE in_period > 0 AND unread_by_{0} > 0",
    r"operator\.(\d{1,19}|none)": f"{WROTE} = 'operator' AND "
    "sender_id IS NOT DISTINCT FROM try_cast('{0}' AS BIGINT)",
    r"first_response\.(\d{1,19}|none)": "waits WHERE seconds IS NOT NULL AND "
    "answered_by IS NOT DISTINCT FROM try_cast('{0}' AS BIGINT)",
    r"(user|operator|invitation)": f"{WROTE} = '{{0}}'",
    r"(user|operator)\.weekday\.([1-7])": f"{WROTE} = '{{0}}' AND "
    "isodow(created_at AT TIME ZONE {{timezone}}) = {1}",
    r"(user|operator)\.hour\.(\d{1,2})": f"{WROTE} = '{{0}}' AND "
    "hour(created_at AT TIME ZONE {{timezone}}) = {1}",
    r"user\.hour\.([1-7])\.(\d{1,2})": f"{WROTE} = 'user' AND "
    "isodow(created_at AT TIME ZONE {{timezone}}) = {0} AND "
    "hour(created_at AT TIME ZONE {{timezone}}) = {1}",
    r"invitation\.(followed|read|unread)": f"({INVITED.replace('{period}', '{{period}}')}) "
    "WHERE outcome = '{0}'",
    "files": "messages WHERE deleted_at IS NULL AND file_url IS NOT NULL AND {{period}}",
    r"files\.([a-z0-9]{1,5})": "messages WHERE deleted_at IS NULL AND {{period}} AND "
    "regexp_matches(lower(split_part(split_part(file_url, '#', 1), '?', 1)), '/[^/]*\\.{0}$')",
}
"""The conversations that a figure counts, by the name of their list: a pattern."""


def source_of(name: str) -> str:
    """The rows of the conversations that a figure counts, after FROM; ValueError if unknown."""
    for known, source in LISTS.items():
        if found := re.fullmatch(known, name):
            return source.format(*found.groups())
    raise ValueError(f"figure: there is no list {name[:60]!r}")
