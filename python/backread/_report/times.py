"""The sections on when messages were written."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from backread._display.markup import Html
from backread._report.charts import FULL_WIDTH, Bars, Series
from backread._report.elements import MOST_UNITS, figure, table
from backread._report.words import WEEKDAYS, seconds, unit_label
from backread.mirror.figures import Figures

__all__ = ["heat", "hours", "volume", "weekdays"]

HEAT_LEVELS = 6

WROTE = ("Users", "Operators", "Automatic invitations", "Other senders")


def volume(figures: Figures) -> Html:
    unit = figures.unit
    shown = figures.volume[-MOST_UNITS:]
    columns = [
        [each.user_messages for each in shown],
        [each.operator_messages for each in shown],
        [each.auto_invitations for each in shown],
        [each.other_messages for each in shown],
    ]
    series = [
        Series(name, values, place)
        for place, (name, values) in enumerate(zip(WROTE, columns, strict=True))
        if any(values)
    ]
    labels = [unit_label(each.start, unit) for each in shown]
    most = max(shown, key=lambda each: each.messages, default=None)
    peak = (
        "" if most is None else f" The most were {most.messages:,}: {unit_label(most.start, unit)}."
    )
    note = f"Messages by the {unit} in which they were written and by who wrote them."
    totals = figures.totals
    counts = (
        (totals.user_messages, "of users"),
        (totals.operator_messages, "of operators"),
        (totals.auto_invitations, "automatic invitations"),
        (totals.other_messages, "of other senders"),
    )
    note += f" {', '.join(f'{count:,} {whose}' for count, whose in counts if count)}."
    if unit == "week":
        note += " A week begins on Monday."
    if len(figures.volume) > MOST_UNITS:
        note += f" The last {MOST_UNITS} of {len(figures.volume):,}."
    if totals.undated_messages:
        note += f" {totals.undated_messages:,} messages without a time are not here."
    rows = [
        (
            unit_label(each.start, unit),
            each.messages,
            each.user_messages,
            each.operator_messages,
            each.auto_invitations,
            each.conversations,
            seconds(each.p50_seconds),
        )
        for each in shown
    ]
    details = table(
        f"Volume by {unit}",
        (unit.title(), "Messages", *WROTE[:3], "New conversations", "Median first response"),
        rows,
    )
    return figure(
        f"Messages by {unit}",
        note,
        Bars(f"Messages by {unit}", f"{note}{peak}", labels, series, "stacked", width=FULL_WIDTH),
        "volume",
        details,
        "full",
    )


def weekdays(figures: Figures) -> Html:
    users, operators = [0] * 7, [0] * 7
    for each in figures.hours:
        users[each.weekday - 1] += each.user_messages
        operators[each.weekday - 1] += each.operator_messages
    labels = [name[:3] for name in WEEKDAYS]
    return _two_sides(figures, "weekday", WEEKDAYS, labels, users, operators)


def hours(figures: Figures) -> Html:
    users, operators = [0] * 24, [0] * 24
    for each in figures.hours:
        users[each.hour] += each.user_messages
        operators[each.hour] += each.operator_messages
    names = [f"{hour:02}:00" for hour in range(24)]
    return _two_sides(
        figures, "hour of the day", names, [name[:2] for name in names], users, operators
    )


def _two_sides(
    figures: Figures,
    what: str,
    names: Sequence[str],
    labels: Sequence[str],
    users: Sequence[int],
    operators: Sequence[int],
) -> Html:
    note = (
        f"Messages of users and operators by {what} ({figures.timezone}), without automatic "
        "invitations."
    )
    busiest = names[max(range(len(names)), key=lambda place: users[place])]
    series = [Series("Users", users, 0), Series("Operators", operators, 1)]
    rows = list(zip(names, users, operators, strict=True))
    return figure(
        f"By {what}",
        note,
        Bars(f"Messages by {what}", f"{note} Users write most: {busiest}.", labels, series),
        what.split()[0],
        table(f"Messages by {what}", (what.capitalize(), "Users", "Operators"), rows),
        "half",
    )


def heat(figures: Figures) -> Html:
    counts = {(each.weekday, each.hour): each.user_messages for each in figures.hours}
    most = max(counts.values(), default=0)
    head = "".join(f'<th scope="col">{hour:02}</th>' for hour in range(24))
    rows = []
    for weekday, name in enumerate(WEEKDAYS, 1):
        cells = []
        for hour in range(24):
            count = counts.get((weekday, hour), 0)
            level = -(-count * HEAT_LEVELS // most) if most else 0
            cells.append(f'<td class="h{level}">{_short(count)}</td>')
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    return Html(
        '<section class="full"><h2>When users write</h2>'
        f'<p class="note">Messages of users by weekday and hour ({escape(figures.timezone)}); the '
        "darker or brighter, the more. 09 is from 09:00 to 09:59, and k means thousand.</p>"
        '<div class="scroll heat" tabindex="0" role="region" aria-label="Messages of users by '
        f'weekday and hour"><table><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _short(count: int) -> str:
    if count < 1_000:
        return str(count) if count else "·"
    thousands = count / 1_000
    if thousands < 999.5:
        return f"{thousands:.{1 if thousands < 9.95 else 0}f}k"
    return f"{thousands / 1_000:,.1f}M"
