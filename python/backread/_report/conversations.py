"""The sections on response times, operators, invitations, attachments and long conversations."""

from __future__ import annotations

from backread._display.html import Html, safe
from backread._report.charts import FULL_WIDTH, Bars, Series, chart
from backread._report.elements import (
    MOST_UNITS,
    Cell,
    cut,
    figure,
    operator_names,
    table,
    words_only,
)
from backread._report.words import local, percent, seconds, unit_label
from backread.mirror.figures import Figures

__all__ = [
    "attachments",
    "invitations",
    "longest",
    "operators",
    "response_times",
    "responses",
    "states",
    "trend",
    "workload",
]

MOST_OPERATORS = 12

DURATION_STEPS = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200,
    86_400, 172_800, 432_000, 864_000, 1_728_000, 4_320_000, 8_640_000,
)  # fmt: skip

TIMES = ("Median", "90% within")


def responses(figures: Figures) -> Html:
    responses = figures["responses"]
    outside = responses["answered_outside_hours"] or 0
    note = (
        "From a user's first message to the first later message of an operator; automatic "
        "invitations are no responses."
    )
    if figures["opening_hours"] is not None:
        note += f" Only time within the opening hours counts ({figures['opening_hours']})."
        asked = (responses["asked_outside_hours"] or 0) - outside
        note += (
            f" {asked:,} of {responses['answered']:,} were asked outside of them, and wait from "
            f"the next opening on; {outside:,} more were answered before it, and are in no "
            "response time."
        )
    if responses["unknown"]:
        note += f" Of {responses['unknown']:,} conversations nothing is known: not read to the end."
    heading = "First response time"
    if responses["answered"] == outside:
        when = " within opening hours" if outside else ""
        text = f"No operator has answered a user{when} in this period."
        return words_only(heading, note, text, "half")
    names = ("< 1 min", "1–5 min", "5–15 min", "15–60 min", "1–4 h", "4–24 h", "1–7 d", "> 7 d")
    counts = [each["conversations"] for each in responses["buckets"]]
    text = (
        f"{note} Half within {seconds(responses['p50_seconds'])}, nine in ten within "
        f"{seconds(responses['p90_seconds'])}."
    )
    rows: list[tuple[Cell, ...]] = [
        (name, count, percent(count, responses["answered"]))
        for name, count in zip(names, counts, strict=True)
    ]
    if outside:
        share = percent(outside, responses["answered"])
        rows.append(("answered outside opening hours", outside, share))
    rows += [
        ("median", seconds(responses["p50_seconds"]), ""),
        ("90% within", seconds(responses["p90_seconds"]), ""),
        ("mean", seconds(responses["mean_seconds"]), ""),
        ("longest", seconds(responses["longest_seconds"]), ""),
    ]
    bars = Bars(heading, text, names, [Series("Conversations", counts, 0)], "rows")
    details = table(heading, ("Time", "Conversations", "Share"), rows)
    return figure(heading, note, bars, "responses", details, "half")


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
    labels = [unit_label(each["start"], unit) for each in shown]
    series = [Series("Median", medians, 0)]
    bars = Bars(heading, note, labels, series, "columns", seconds, DURATION_STEPS, FULL_WIDTH)
    rows = [(label, seconds(value)) for label, value in zip(labels, medians, strict=True)]
    details = table(heading, (unit.title(), "Median"), rows)
    return figure(heading, note, bars, "trend", details, "full")


def states(figures: Figures) -> Html:
    states, responses, totals = figures["states"], figures["responses"], figures["totals"]
    note = (
        "Answered counts conversations in which a user wrote; who wrote last and unread count all "
        "conversations of the period as they are now."
    )
    last = (
        ("User", states["user_wrote_last"]),
        ("Operator", states["operator_wrote_last"]),
        ("Invitation", states["invitation_last"]),
        ("Other sender", states["other_last"]),
    )
    shown = [(name, count) for name, count in last if count]
    labels, counts = [name for name, _ in shown], [count for _, count in shown]
    rows: list[tuple[Cell, ...]] = [
        ("Answered", responses["answered"], percent(responses["answered"], responses["asked"])),
        (
            "Not answered",
            responses["unanswered"],
            percent(responses["unanswered"], responses["asked"]),
        ),
        *(
            (
                f"{name} {'was' if name == 'Invitation' else 'wrote'} last",
                count,
                percent(count, totals["conversations"]),
            )
            for name, count in shown
        ),
        (
            "With messages no operator has read",
            states["unread_by_operator_conversations"],
            percent(states["unread_by_operator_conversations"], totals["conversations"]),
        ),
        (
            "With messages the user has not read",
            states["unread_by_user_conversations"],
            percent(states["unread_by_user_conversations"], totals["conversations"]),
        ),
    ]
    details = table("Where conversations stand", ("State", "Conversations", "Share"), rows)
    bars = Bars("Who wrote last", note, labels, [Series("Conversations", counts, 0)], "rows")
    return Html(
        f'<section class="half"><h2>Where conversations stand</h2><p class="note">{note}</p>'
        f"{details}<h3>Who wrote last</h3>{chart(bars, 'last')}</section>"
    )


def response_times(figures: Figures) -> Html:
    heading = "First response time by operator"
    chosen = sorted(
        (each for each in figures["operators"] if each["first_responses"]),
        key=lambda each: -each["first_responses"],
    )[:MOST_OPERATORS]
    note = (
        f"The operator who answered first gets the response; the {len(chosen)} with the most. Half "
        "of the responses took at most the median, nine in ten at most the 90% time."
    )
    if not chosen:
        return words_only(heading, note, "No operator has answered a user in this period.", "half")
    names = operator_names(figures)
    series = [
        Series("Median", [each["p50_seconds"] for each in chosen], 0),
        Series("90% within", [each["p90_seconds"] for each in chosen], 1),
    ]
    bars = Bars(
        heading,
        note,
        [names[each["id"]] for each in chosen],
        series,
        "rows",
        seconds,
        DURATION_STEPS,
    )
    rows = [
        (
            safe(names[each["id"]]),
            each["first_responses"],
            seconds(each["p50_seconds"]),
            seconds(each["p90_seconds"]),
        )
        for each in chosen
    ]
    details = table(heading, ("Operator", "First responses", *TIMES), rows)
    return figure(heading, note, bars, "operator-times", details, "half")


def workload(figures: Figures) -> Html:
    heading = "Messages by operator"
    chosen = figures["operators"][:MOST_OPERATORS]
    note = f"Messages without automatic invitations; the {len(chosen)} operators with the most."
    if not chosen:
        return words_only(heading, note, "No operator wrote in this period.", "half")
    names = operator_names(figures)
    bars = Bars(
        heading,
        note,
        [names[each["id"]] for each in chosen],
        [Series("Messages", [each["messages"] for each in chosen], 1)],
        "rows",
    )
    rows = [(safe(names[each["id"]]), each["messages"]) for each in chosen]
    details = table(heading, ("Operator", "Messages"), rows)
    return figure(heading, note, bars, "workload", details, "half")


def operators(figures: Figures) -> Html:
    operators = figures["operators"]
    names = operator_names(figures)
    rows = [
        (
            safe(names[each["id"]]),
            each["messages"],
            percent(each["messages"], figures["totals"]["operator_messages"]),
            each["conversations"],
            each["first_responses"],
            seconds(each["p50_seconds"]),
            seconds(each["p90_seconds"]),
        )
        for each in operators
    ]
    if not rows:
        return Html("")
    note = (
        "Messages without automatic invitations, the conversations in which they are, and how many "
        "conversations the operator answered first and how fast."
    )
    if figures["operators_total"] > len(operators):
        note += f" The first {len(operators)} of {figures['operators_total']:,}, by messages."
    columns = ("Operator", "Messages", "Share", "Conversations", "First responses", *TIMES)
    details = table("Operators' workload", columns, rows)
    return Html(
        '<section class="full long"><h2>Operators\' workload</h2>'
        f'<p class="note">{note}</p>{details}</section>'
    )


def invitations(figures: Figures) -> Html:
    found = figures["invitations"]
    heading = "Automatic invitations"
    note = (
        "What came of each: the user wrote at any later time, else read it, or did not. "
        f"{found['users_followed']:,} of {found['users']:,} invited users wrote afterwards."
    )
    if not found["sent"]:
        return words_only(heading, "", "There were none in this period.", "half")
    outcomes = (
        ("User wrote later", found["followed"]),
        ("Only read", found["read"]),
        ("Not read", found["unread"]),
    )
    bars = Bars(
        heading,
        note,
        [name for name, _ in outcomes],
        [Series("Invitations", [count for _, count in outcomes], 2)],
        "rows",
    )
    rows = [(name, count, percent(count, found["sent"])) for name, count in outcomes]
    details = table(
        f"Outcome of {found['sent']:,} invitations", ("Outcome", "Invitations", "Share"), rows
    )
    return figure(f"{heading}: {found['sent']:,}", note, bars, "invitations", details, "half")


def attachments(figures: Figures) -> Html:
    found = figures["attachments"]
    heading = "Attachments"
    if not found["messages"]:
        return words_only(heading, "", "No message of this period has a file.", "half")
    note = (
        f"Messages with a file: {found['by_users']:,} of users, {found['by_operators']:,} of "
        f"operators, in {found['conversations']:,} conversations; by the suffix of the file's "
        "address."
    )
    names, counts = list(found["by_type"]), list(found["by_type"].values())
    bars = Bars(heading, note, names, [Series("Messages", counts, 0)], "rows")
    rows = [
        (name, count, percent(count, found["messages"])) for name, count in found["by_type"].items()
    ]
    details = table("Attachments by type", ("Type", "Messages", "Share"), rows)
    return figure(f"{heading}: {found['messages']:,}", note, bars, "attachments", details, "half")


def longest(figures: Figures) -> Html:
    rows = [
        (
            safe(cut(each["name"]) or f"user {each['user_id']}"),
            str(each["user_id"]),
            each["messages"],
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
    return Html(
        '<section class="full long"><h2>Longest conversations</h2><p class="note">Those '
        "with the most messages; counts and times are of the whole conversation.</p>"
        f"{table('Longest conversations', columns, rows)}</section>"
    )
