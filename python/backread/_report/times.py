"""The sections on when messages were written."""

from __future__ import annotations

from collections.abc import Sequence

from backread._display.html import Html
from backread._report.charts import FULL_WIDTH, Columns, Series
from backread._report.elements import MOST_UNITS, Listed, figure, section, table
from backread._report.figures import WEEKDAYS, Figures, seconds, unit_label

HEAT_LEVELS = 6
NOTHING = "·"

WROTE = {
    "user_messages": ("Users", "of users"),
    "operator_messages": ("Operators", "of operators"),
    "auto_invitations": ("Automatic invitations", "automatic invitations"),
    "other_messages": ("Other senders", "of other senders"),
}
"""Who wrote, by the key of their messages: in a legend, and behind a number."""


LISTS = {
    "messages": "conversations",
    "user_messages": "user",
    "operator_messages": "operator",
    "auto_invitations": "invitation",
    "conversations": "begun",
}
"""The lists of the columns of the volume."""


def volume(figures: Figures) -> Html:
    unit = figures["unit"]
    shown = figures["volume"][-MOST_UNITS:]
    labels = [unit_label(each, unit) for each in shown]
    series, counts = [], []
    for place, (key, (name, whose)) in enumerate(WROTE.items()):
        values = [each[key] for each in shown]
        if any(values):
            series.append(Series(name, values, place))
        if count := dict(figures["totals"])[key]:
            counts.append(f"{count:,} {whose}")
    note = f"Messages by the {unit} in which they were written and by who wrote them."
    note += f" {', '.join(counts)}."
    if unit == "week":
        note += " A week begins on Monday."
    if len(figures["volume"]) > MOST_UNITS:
        note += f" The last {MOST_UNITS} of {len(figures['volume']):,}."
    if any(not each["whole"] for each in shown):
        note += f" * This {unit} is not over, or not whole in this period."
    if undated := figures["totals"]["undated_messages"]:
        note += f" {undated:,} messages without a time are not here."
    most, when = max(
        ((each["messages"], label) for each, label in zip(shown, labels, strict=True)),
        key=lambda each: each[0],
        default=(0, ""),
    )
    peak = f" The most were {most:,}: {when}." if when else ""
    rows = []
    for each, label in zip(shown, labels, strict=True):
        days = f"since={each['start']}&until={each['last_day']}"
        numbers = [Listed(each[key], f"figure={name}&{days}") for key, name in LISTS.items()]
        rows.append((label, *numbers, seconds(each["p50_seconds"])))
    heading = f"Messages by {unit}"
    names = [name for name, _ in WROTE.values()][:3]
    columns = (unit.title(), "Messages", *names, "New conversations", "Median first response")
    chart = Columns(heading, f"{note}{peak}", labels, series, stacked=True, width=FULL_WIDTH)
    details = table(f"Volume by {unit}", columns, rows)
    return figure(heading, note, chart, "volume", details, "full")


def weekdays(figures: Figures) -> Html:
    return _two_sides(figures, "weekday", WEEKDAYS, 3)


def hours(figures: Figures) -> Html:
    return _two_sides(figures, "hour of the day", [f"{hour:02}:00" for hour in range(24)], 2)


def _two_sides(figures: Figures, what: str, names: Sequence[str], shown: int) -> Html:
    """Users and operators side by side; the chart shows the first ``shown`` letters of a name."""
    users, operators = [0] * len(names), [0] * len(names)
    for each in figures["hours"]:
        place = each["weekday"] - 1 if what == "weekday" else each["hour"]
        users[place] += each["user_messages"]
        operators[place] += each["operator_messages"]
    labels = [name[:shown] for name in names]
    note = (
        f"Messages of users and operators by {what} ({figures['timezone']}), without automatic "
        "invitations."
    )
    busiest = names[max(range(len(names)), key=lambda place: users[place])]
    series = [Series("Users", users, 0), Series("Operators", operators, 1)]
    kind = what.split()[0]
    rows = [
        (
            name,
            Listed(users[place], f"figure=user.{kind}.{place + (kind == 'weekday')}"),
            Listed(operators[place], f"figure=operator.{kind}.{place + (kind == 'weekday')}"),
        )
        for place, name in enumerate(names)
    ]
    return figure(
        f"By {what}",
        note,
        Columns(f"Messages by {what}", f"{note} Users write most: {busiest}.", labels, series),
        kind,
        table(f"Messages by {what}", (what.capitalize(), "Users", "Operators"), rows),
        "half",
    )


def heat(figures: Figures) -> Html:
    counts = {(each["weekday"], each["hour"]): each["user_messages"] for each in figures["hours"]}
    most = max(counts.values(), default=0)
    head = "".join(f'<th scope="col">{hour:02}</th>' for hour in range(24))
    rows = []
    for weekday, name in enumerate(WEEKDAYS, 1):
        cells = []
        for hour in range(24):
            count = counts.get((weekday, hour), 0)
            level = -(-count * HEAT_LEVELS // most) if most else 0
            text = Listed(_short(count), f"figure=user.hour.{weekday}.{hour}")
            cells.append(f'<td class="h{level}">{text}</td>')
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>')
    note = (
        f"Messages of users by weekday and hour ({figures['timezone']}); the darker or brighter, "
        "the more. 09 is from 09:00 to 09:59, and k means thousand."
    )
    return section(
        "When users write",
        note,
        '<div class="scroll heat" tabindex="0" role="region" aria-label="Messages of users by '
        f'weekday and hour"><table><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>",
        "full",
    )


def _short(count: int) -> str:
    if count < 1_000:
        return str(count) if count else NOTHING
    thousands = count / 1_000
    if thousands < 999.5:
        return f"{thousands:.{1 if thousands < 9.95 else 0}f}k"
    return f"{thousands / 1_000:,.1f}M"
