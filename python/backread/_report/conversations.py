"""The sections on response times, operators, invitations, attachments and long conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from backread._display.html import Html, safe
from backread._report.charts import FULL_WIDTH, Columns, Series, bar
from backread._report.elements import (
    MOST_UNITS,
    Cell,
    Listed,
    cut,
    figure,
    operator_names,
    section,
    shares,
    table,
)
from backread._report.figures import Figures, local, percent, seconds, unit_label

DURATION_STEPS = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200,
    86_400, 172_800, 432_000, 864_000, 1_728_000, 4_320_000, 8_640_000,
)  # fmt: skip

TIMES = ("Median", "90% within")

STATES = {
    "User wrote last": "user_wrote_last",
    "Operator wrote last": "operator_wrote_last",
    "Invitation was last": "invitation_last",
    "Other sender wrote last": "other_last",
    "With messages no operator has read": "unread_by_operator_conversations",
    "With messages the user has not read": "unread_by_user_conversations",
}
"""The rows on how conversations are now, and the figures in them."""


def responses(figures: Figures) -> Html:
    found = figures["responses"]
    answered, outside = found["answered"], found["answered_outside_hours"] or 0
    note = (
        "From a user's first message to the first later message of an operator; automatic "
        "invitations are no responses."
    )
    if figures["opening_hours"] is not None:
        note += f" Only time within the opening hours counts ({figures['opening_hours']})."
        asked = (found["asked_outside_hours"] or 0) - outside
        note += (
            f" {asked:,} of {answered:,} were asked outside of them, and wait from "
            f"the next opening on; {outside:,} more were answered before it, and are in no "
            "response time."
        )
    if found["unknown"]:
        note += f" Of {found['unknown']:,} conversations nothing is known: not read to the end."
    heading = "First response time"
    if answered == outside:
        when = " within opening hours" if outside else ""
        words = f"<p>No operator has answered a user{when} in this period.</p>"
        return section(heading, note, words)
    names = ("< 1 min", "1–5 min", "5–15 min", "15–60 min", "1–4 h", "4–24 h", "1–7 d", "> 7 d")
    counts = [
        (
            name,
            each["conversations"],
            answered,
            f"waited.{each['from_seconds']}.{each['to_seconds'] or ''}",
        )
        for name, each in zip(names, found["buckets"], strict=True)
    ]
    more: list[tuple[Cell, ...]] = [
        ("median", seconds(found["p50_seconds"]), ""),
        ("90% within", seconds(found["p90_seconds"]), ""),
        ("mean", seconds(found["mean_seconds"]), ""),
        ("longest", seconds(found["longest_seconds"]), ""),
    ]
    if outside:
        listed = Listed(outside, "figure=answered_outside_hours")
        more.insert(0, ("answered outside opening hours", listed, percent(outside, answered)))
    drawn = shares(heading, ("Time", "Conversations", "Share"), counts, 0, more)
    return section(heading, note, drawn)


def trend(figures: Figures) -> Html:
    """The median first response time by day, week, month or year."""
    unit = figures["unit"]
    shown = figures["volume"][-MOST_UNITS:]
    medians = [each["p50_seconds"] for each in shown]
    if sum(each is not None for each in medians) < 2:
        return Html("")
    heading = f"Median first response time by {unit}"
    note = (
        f"Of the conversations whose user first wrote in the {unit}: half took at most this long."
    )
    labels = [unit_label(each, unit) for each in shown]
    columns = Columns(
        heading,
        note,
        labels,
        [Series("Median", medians, 0)],
        words=seconds,
        steps=DURATION_STEPS,
        width=FULL_WIDTH,
    )
    rows = [(label, seconds(value)) for label, value in zip(labels, medians, strict=True)]
    details = table(heading, (unit.title(), "Median"), rows)
    return figure(heading, note, columns, "trend", details, "full")


def states(figures: Figures) -> Html:
    found, asked = figures["states"], figures["responses"]["asked"]
    conversations = figures["totals"]["conversations"]
    counts = [
        ("Answered", figures["responses"]["answered"], asked, "answered"),
        ("Never answered", figures["responses"]["unanswered"], asked, "unanswered"),
    ]
    for name, key in STATES.items():
        # Kinds of senders that were never last are left out.
        if found[key] or not name.endswith("last"):
            listed = key.removesuffix("_conversations")
            counts.append((name, found[key], conversations, listed))
    heading = "Where conversations stand"
    note = (
        "Answered counts conversations in which a user wrote; who wrote last and unread count all "
        "conversations of the period as they are now."
    )
    return section(heading, note, shares(heading, ("State", "Conversations", "Share"), counts, 0))


def _times(figures: Mapping[str, Any]) -> tuple[str, str]:
    """The response times of an operator, or of all, under the heads `TIMES`."""
    return seconds(figures["p50_seconds"]), seconds(figures["p90_seconds"])


def operators(figures: Figures) -> Html:
    operators = figures["operators"]
    heading = "Operators' workload"
    if not operators:
        return section(heading, "", "<p>No operator wrote in this period.</p>")
    names = operator_names(figures)
    most = operators[0]["messages"]
    rows, bars = [], []
    for each in operators:
        number = "none" if each["id"] is None else each["id"]
        listed = f"figure=operator.{number}"
        share = percent(each["messages"], figures["totals"]["operator_messages"])
        answered = Listed(each["first_responses"], f"figure=first_response.{number}")
        rows.append(
            (
                safe(names[each["id"]]),
                Listed(each["messages"], listed),
                share,
                Listed(each["conversations"], listed),
                answered,
                *_times(each),
            )
        )
        bars.append(bar(each["messages"], most, 1))
    note = (
        "Messages without automatic invitations, the conversations in which they are, and how many "
        "conversations the operator answered first and how fast: half took at most the median, "
        "nine in ten at most the 90% time."
    )
    if figures["operators_total"] > len(operators):
        note += f" The first {len(operators)} of {figures['operators_total']:,}, by messages."
    columns = ("Operator", "Messages", "Share", "Conversations", "First responses", *TIMES)
    return section(heading, note, table(heading, columns, rows, bars), "full long")


def invitations(figures: Figures) -> Html:
    found = figures["invitations"]
    sent = found["sent"]
    heading = "Automatic invitations"
    if not sent:
        return section(heading, "", "<p>There were none in this period.</p>")
    note = (
        "What came of each: the user wrote at any later time, else read it, or did not. "
        f"{found['users_followed']:,} of {found['users']:,} invited users wrote afterwards."
    )
    counts = [
        ("User wrote later", found["followed"], sent, "invitation.followed"),
        ("Only read", found["read"], sent, "invitation.read"),
        ("Not read", found["unread"], sent, "invitation.unread"),
    ]
    caption = f"Outcome of {sent:,} invitations"
    drawn = shares(caption, ("Outcome", "Invitations", "Share"), counts, 2)
    return section(f"{heading}: {sent:,}", note, drawn)


def attachments(figures: Figures) -> Html:
    found = figures["attachments"]
    heading = "Attachments"
    if not found["messages"]:
        return section(heading, "", "<p>No message of this period has a file.</p>")
    note = (
        f"Messages with a file: {found['by_users']:,} of users, {found['by_operators']:,} of "
        f"operators, in {found['conversations']:,} conversations; by the suffix of the file's "
        "address."
    )
    counts = [
        (name, count, found["messages"], f"files.{name}")
        for name, count in found["by_type"].items()
    ]
    drawn = shares("Attachments by type", ("Type", "Messages", "Share"), counts, 0)
    return section(f"{heading}: {found['messages']:,}", note, drawn)


def longest(figures: Figures) -> Html:
    rows = [
        (
            safe(cut(each["name"]) or f"user {each['user_id']}"),
            str(each["user_id"]),
            Listed(each["messages"], f"user={each['user_id']}"),
            each["user_messages"],
            each["operator_messages"],
            local(each["first_message_at"], figures["timezone"]),
            local(each["last_message_at"], figures["timezone"]),
        )
        for each in figures["longest"]
    ]
    columns = (
        "Name",
        "User",
        "Messages",
        "By user",
        "By operators",
        "First message",
        "Last message",
    )
    heading = "Longest conversations"
    note = "Those with the most messages; counts and times are of the whole conversation."
    return section(heading, note, table(heading, columns, rows), "full long")
