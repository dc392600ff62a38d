"""`Mirror.figures` gives what a plain reading in Python gives, in any time zone."""

import json
import statistics
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from backread import Mirror
from backread.errors import MirrorError
from backread.mirror.figures.compute import Scope, select_figure
from backread.mirror.figures.opening_hours import read_opening_hours, spell_opening_hours
from backread.mirror.published.snapshot_reader import SnapshotReader
from backread.testing import MockServer, World
from helpers.mirrors import BatchSource, Row, batch, sync

BERLIN = "Europe/Berlin"
QUARTER = timedelta(minutes=15)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """A mirror of the mock."""
    mirror = Mirror(tmp_path_factory.mktemp("figures") / "chats")
    with MockServer(World(seed=3, users=150, messages_per_user=(0, 60))) as server:
        sync(mirror, server)
    return mirror


@pytest.fixture(scope="module")
def messages(world: Mirror) -> list[Row]:
    found: list[Row] = world.table("messages").to_arrow().to_pylist()
    return found


def kind(message: Row) -> str:
    if message["sender_type"] == "user":
        return "user"
    return "invitation" if message["auto_invitation"] else "operator"


def by_user(messages: list[Row]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for message in sorted(messages, key=lambda each: (each["created_at"], each["id"])):
        found.setdefault(message["user_id"], []).append(message)
    return found


def message(user_id: int, number: int, moment: datetime | None, who: str, **more: Any) -> Row:
    return {
        "user_id": user_id,
        "id": number,
        "created_at": moment,
        "sender_type": who,
        "sender_id": user_id,
        "read_by_user": True,
        "read_by_operator": True,
        "auto_invitation": False,
    } | more


def made(folder: Any, messages: list[Row], **options: Any) -> Mirror:
    """A mirror of these messages, all of whose lists are read."""
    users = sorted({each["user_id"] for each in messages})
    lists: Any = dict.fromkeys(users, "snapshot")
    given = {"swept": "snapshot", "lists": lists} | options
    source = BatchSource(batch([{"id": each} for each in users], messages, **given))
    source.sync_into(folder)
    return Mirror(folder)


def asked_and_answered(folder: Any, waits: list[tuple[datetime, datetime]]) -> Mirror:
    """A conversation for each pair, of the user and operator of its number."""
    rows = [
        message(number, 2 * number + side, moment, who)
        for number, pair in enumerate(waits)
        for side, (moment, who) in enumerate(zip(pair, ("user", "operator"), strict=True))
    ]
    return made(folder, rows)


# --- each figure, against Python ------------------------------------------------------------------


def test_totals_volume_and_hours_are_those_of_the_messages(world, messages):
    found = world.figures(timezone=BERLIN)
    assert json.loads(json.dumps(found)) == found
    kinds = Counter(map(kind, messages))
    totals = found["totals"]
    assert (totals["messages"], totals["users"]) == (len(messages), 150)
    assert (totals["user_messages"], totals["operator_messages"], totals["auto_invitations"]) == (
        kinds["user"], kinds["operator"], kinds["invitation"],
    )  # fmt: skip
    assert totals["conversations"] == len({each["user_id"] for each in messages})
    assert totals["first_message_at"] == min(each["created_at"] for each in messages).isoformat()

    hours: Counter[tuple[int, int, str]] = Counter()
    weeks: Counter[tuple[str, str]] = Counter()
    for each in messages:
        local = each["created_at"].astimezone(ZoneInfo(BERLIN))
        hours[local.isoweekday(), local.hour, kind(each)] += 1
        weeks[str(local.date() - timedelta(days=local.weekday())), kind(each)] += 1
    for hour in found["hours"]:
        assert hour["user_messages"] == hours[hour["weekday"], hour["hour"], "user"]
        assert hour["operator_messages"] == hours[hour["weekday"], hour["hour"], "operator"]
    assert sum(each["user_messages"] for each in found["hours"]) == kinds["user"]
    assert found["unit"] == "week"
    for week in found["volume"]:
        assert week["user_messages"] == weeks[week["start"], "user"]
        assert week["auto_invitations"] == weeks[week["start"], "invitation"]
    starts = [date.fromisoformat(each["start"]) for each in found["volume"]]
    assert starts == [starts[0] + timedelta(days=7 * place) for place in range(len(starts))]
    for name in ("messages", "conversations"):
        assert sum(each[name] for each in found["volume"]) == totals[name]


def test_first_responses_are_those_of_the_table_conversations(world):
    found = world.figures()["responses"]
    query = "SELECT first_response_seconds FROM conversations WHERE user_messages > 0"
    rows = [each for (each,) in world.sql(query).fetchall()]
    seconds = sorted(each for each in rows if each is not None)
    assert (found["asked"], found["answered"]) == (len(rows), len(seconds))
    assert found["unanswered"] == len(rows) - len(seconds) > 0
    deciles = statistics.quantiles(seconds, n=10, method="inclusive")
    expected = [statistics.median(seconds), statistics.fmean(seconds), seconds[-1], deciles[8]]
    names = ("p50_seconds", "mean_seconds", "longest_seconds", "p90_seconds")
    assert [found[name] for name in names] == pytest.approx(expected)
    for each in found["buckets"]:
        end = each["to_seconds"] or float("inf")
        assert each["conversations"] == sum(each["from_seconds"] <= one < end for one in seconds)
    assert sum(each["conversations"] for each in found["buckets"]) == found["answered"]
    assert found["asked_outside_hours"] is None


def test_operators_have_their_messages_conversations_and_first_responses(world, messages):
    written = [each for each in messages if kind(each) == "operator"]
    found = world.figures()
    assert found["operators_total"] == len(found["operators"])
    by_operator = Counter(each["sender_id"] for each in written)
    assert [each["messages"] for each in found["operators"]] == sorted(
        by_operator.values(), reverse=True
    )
    for operator in found["operators"]:
        users = {each["user_id"] for each in written if each["sender_id"] == operator["id"]}
        assert operator["messages"] == by_operator[operator["id"]]
        assert operator["conversations"] == len(users)
    first = sum(each["first_responses"] for each in found["operators"])
    assert first == found["responses"]["answered"]


def test_states_invitations_attachments_and_the_longest(world, messages):
    found = world.figures()
    talks = by_user(messages)

    def users(chosen: list[Row]) -> int:
        return len({each["user_id"] for each in chosen})

    last = Counter(kind(each[-1]) for each in talks.values())
    states = found["states"]
    assert (
        states["user_wrote_last"], states["operator_wrote_last"], states["invitation_last"],
    ) == (last["user"], last["operator"], last["invitation"])  # fmt: skip
    unread = [each for each in messages if kind(each) == "user" and not each["read_by_operator"]]
    assert states["unread_by_operator_messages"] == len(unread)
    assert states["unread_by_operator_conversations"] == users(unread)

    invitations = [each for each in messages if kind(each) == "invitation"]
    followed = [
        each
        for each in invitations
        if any(
            kind(other) == "user" and other["created_at"] > each["created_at"]
            for other in talks[each["user_id"]]
        )
    ]
    outcome = found["invitations"]
    assert (outcome["sent"], outcome["followed"]) == (len(invitations), len(followed))
    assert outcome["followed"] + outcome["read"] + outcome["unread"] == outcome["sent"] > 0
    assert outcome["users_followed"] == users(followed)

    files = [each for each in messages if each["file_url"]]
    attached = found["attachments"]
    assert (attached["messages"], attached["conversations"]) == (len(files), users(files))
    assert attached["by_type"] == Counter(each["file_url"].rpartition(".")[2] for each in files)

    sizes = sorted((-len(each), user_id) for user_id, each in talks.items())[:10]
    assert [(-each["messages"], each["user_id"]) for each in found["longest"]] == sizes


def test_a_period_is_in_the_time_zone_and_selects_messages_and_questions(world, messages):
    found = world.figures(timezone=BERLIN, since="2019-03-01", until=date(2019, 4, 1))
    start, end = (datetime(2019, month, 1, tzinfo=ZoneInfo(BERLIN)) for month in (3, 4))
    period = [each.astimezone(UTC).isoformat() for each in (start, end)]
    assert [found["since"], found["until"]] == period
    inside = [each for each in messages if start <= each["created_at"] < end]
    assert 0 < found["totals"]["messages"] == len(inside) < len(messages)
    openings = [
        next((each for each in talk if kind(each) == "user"), None)
        for talk in by_user(messages).values()
    ]
    asked = [each for each in openings if each and start <= each["created_at"] < end]
    assert found["responses"]["asked"] == len(asked)
    assert found["unit"] == "day"
    assert found["volume"][0]["start"] >= "2019-03-01"
    assert found["volume"][-1]["start"] <= "2019-03-31"
    # A time that names its zone is not moved.
    assert world.figures(timezone=BERLIN, since=start.isoformat())["since"] == found["since"]


# --- opening hours --------------------------------------------------------------------------------

FRIDAY = datetime(2024, 3, 8, 16, 50, tzinfo=UTC)


def test_figures_leave_answers_outside_opening_hours_out_of_response_times(tmp_path):
    saturday = datetime(2024, 3, 9, 12, tzinfo=UTC)
    before_opening = datetime(2024, 3, 11, 8, 59, tzinfo=UTC)
    within = [(FRIDAY, FRIDAY + timedelta(seconds=each)) for each in (60, 113, 300)]
    outside = [(saturday, saturday + timedelta(minutes=1)), (saturday, before_opening)]
    mirror = asked_and_answered(tmp_path / "chats", within + outside)
    found = mirror.figures(opening_hours="mon-fri 9-17")
    responses = found["responses"]
    assert (responses["answered"], responses["answered_outside_hours"]) == (5, 2)
    assert (responses["p50_seconds"], responses["longest_seconds"]) == (113, 300)
    assert sum(each["conversations"] for each in responses["buckets"]) == 3
    assert [each["first_responses"] for each in found["operators"]] == [1, 1, 1, 0, 0]
    assert [each["p50_seconds"] for each in found["volume"]] == [113, None, None, None]


WEEKS = {
    BERLIN: "mon-fri 9-17",
    "Australia/Lord_Howe": "fri-mon 22-6",
    "Africa/Cairo": "thu-sat 0-24",
}
"""Clock changes by an hour or half of it, in the night or at midnight."""

CHANGES = (
    "2023-10-29", "2024-03-31", "2024-04-07", "2024-10-06", "2024-04-26",
)  # fmt: skip


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mirror, list[Any]]:
    random = Random(20)
    pairs = []
    for number in range(190):
        near = datetime.fromisoformat(f"{CHANGES[number % len(CHANGES)]}T00:00Z")
        asked = near + QUARTER * random.randrange(-400, 300)
        pairs.append((asked, asked + QUARTER * random.randrange(1, 400)))
    return asked_and_answered(tmp_path_factory.mktemp("waits") / "chats", pairs), pairs


@pytest.mark.parametrize("timezone", WEEKS)
def test_opening_hours_follow_the_clock_on_the_wall(waits, timezone):
    mirror, pairs = waits
    zone = ZoneInfo(timezone)
    hours = read_opening_hours(WEEKS[timezone])

    def is_open(moment: datetime) -> bool:
        local = moment.astimezone(zone)
        minute = local.hour * 60 + local.minute
        return any(
            day == local.isoweekday() and first <= minute < last for day, first, last in hours
        )

    found = mirror.figures(timezone=timezone, opening_hours=WEEKS[timezone])
    seconds = {each["id"]: each["p50_seconds"] for each in found["operators"]}
    assert len(seconds) == len(pairs)
    for number, (asked, answered) in enumerate(pairs):
        quarters = range((answered - asked) // QUARTER)
        expected = sum(is_open(asked + QUARTER * each) for each in quarters) * 15 * 60
        unheard = not expected and not is_open(answered)
        assert seconds[number] == (None if unheard else expected), (asked, answered)
    assert (
        0 < (found["responses"]["answered_outside_hours"] or 0) == [*seconds.values()].count(None)
    )
    assert found["responses"]["asked_outside_hours"] == sum(
        not is_open(asked) for asked, _ in pairs
    )


@pytest.mark.parametrize(
    ("text", "uniform"),
    [
        ("Monday – Friday 9:00 - 17.30, sat 10-14", "mon-fri 9:00-17:30, sat 10:00-14:00"),
        ("mon-fri 9-12, 13-17; sun 1-2", "mon-fri 9:00-12:00 13:00-17:00, sun 1:00-2:00"),
        ("sat-mon 0-24", "mon 0:00-24:00, sat-sun 0:00-24:00"),
        ("sun 22-6", "mon 0:00-6:00, sun 22:00-24:00"),
        ("daily 9-12, mon 11-13", "mon 9:00-13:00, tue-sun 9:00-12:00"),
    ],
)
def test_opening_hours_are_read_as_people_write_them(text, uniform):
    assert spell_opening_hours(read_opening_hours(text)) == uniform
    assert read_opening_hours(uniform) == read_opening_hours(text)


@pytest.mark.parametrize(
    "text",
    ["", "mon-fri", "9-17", "nine to five", "mon-fri 9-25", "mon 9:61-10", "mon ٣-٤", "x" * 5000],
)
def test_hours_that_make_no_sense_are_named_with_an_example(world, text):
    with pytest.raises(ValueError, match=r"^opening_hours: .*for example 'mon-fri 9-17'") as failed:
        world.figures(opening_hours=text)
    assert len(str(failed.value)) < 400


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "advice"),
    [("Europe/Berln", "did you mean Europe/Berlin"), ("'; DROP TABLE users", "use an IANA name")],
)
def test_unknown_time_zone_is_named_with_similar_ones(world, name, advice):
    with pytest.raises(ValueError, match=f"timezone: .* is unknown; {advice}"):
        world.figures(timezone=name)


def test_figures_refuses_wrong_arguments(world, tmp_path):
    with pytest.raises(ValueError, match="since must be earlier than until"):
        world.figures(since="2024-01-02", until="2024-01-01")
    with pytest.raises(ValueError, match=r"^since: .* is outside the years"):
        world.figures(since="0001-01-01", timezone="Asia/Tokyo")
    with pytest.raises(TypeError, match="timezone must be a name"):
        world.figures(timezone=2)
    with pytest.raises(TypeError, match="opening_hours must be text"):
        world.figures(opening_hours=9)
    with pytest.raises(MirrorError, match="does not exist"):
        Mirror(tmp_path / "none").figures()


def test_mirror_without_rows_has_figures_of_nothing(tmp_path):
    found = made(tmp_path, []).figures(timezone=BERLIN, opening_hours="mon-fri 9-17")
    assert (found["totals"]["users"], found["totals"]["messages"], found["volume"]) == (0, 0, [])
    assert found["responses"]["p50_seconds"] is None
    assert found["coverage"]["proved"]


def test_figures_name_uncertified_lists(tmp_path):
    lists: Any = {1: "snapshot", 2: "uncertified"}
    rows = [message(each, each, FRIDAY, "user") for each in (1, 2, 3)]
    figures = made(tmp_path, rows, lists=lists, swept="linked").figures()
    found, responses = figures["coverage"], figures["responses"]
    assert (found["users_certificate"], found["proved"]) == ("linked", False)
    assert found["lists_by_certificate"] == {"never read": 1, "snapshot": 1, "uncertified": 1}
    assert found["unproved_lists"] == 2
    unproved = [(each["user_id"], each["reason"]) for each in found["unproved"]]
    assert unproved == [(2, None), (3, "never read")]
    assert [responses[each] for each in ("asked", "unanswered", "unknown")] == [3, 1, 2]
    assert 0 <= found["age_seconds"] < 600


def test_odd_messages_are_counted(tmp_path):
    rows = [
        message(1, 1, None, "user"),
        message(1, 2, FRIDAY, "robot", sender_id=None),
        message(1, 3, FRIDAY, "operator", sender_id=None),
        message(1, 4, FRIDAY, "operator", auto_invitation=None, file_url="https://x.example/a"),
        message(1, 5, FRIDAY, "user", file_url="https://x.example/A.PDF?b=c.png#d.gif"),
        message(1, 6, datetime(1, 1, 1, tzinfo=UTC), "user"),
        message(1, 7, datetime(9999, 12, 31, 23, 59, tzinfo=UTC), "operator"),
    ]
    found = made(tmp_path, rows).figures(timezone=BERLIN)
    totals = found["totals"]
    assert (totals["messages"], totals["undated_messages"], totals["other_messages"]) == (7, 1, 1)
    assert found["attachments"]["by_type"] == {"pdf": 1, "other": 1}
    assert {each["id"] for each in found["operators"]} == {None, 1}
    assert found["unit"] == "year"
    assert sum(each["messages"] for each in found["volume"]) == 6


def test_deleted_rows_are_in_no_figure(tmp_path):
    rows = [message(1, 1, FRIDAY, "user"), message(2, 2, FRIDAY, "user")]
    mirror = made(tmp_path, rows)
    source = BatchSource(batch([{"id": 1}], rows[:1], swept="snapshot", lists={1: "snapshot"}))
    source.sync_into(mirror.folder, "full")
    found = mirror.figures()
    totals = found["totals"]
    assert (totals["users"], totals["messages"], found["responses"]["asked"]) == (1, 1, 1)


# --- use ------------------------------------------------------------------------------------------


def test_progress_names_each_step(world):
    told: list[Any] = []
    world.figures(on_progress=told.append)
    assert [each.done for each in told] == list(range(told[0].total))
    assert told[0].step == "completeness"


def test_an_operator_has_the_newest_name_and_not_that_of_a_message_without_a_time(tmp_path):
    named = [(1, FRIDAY, "New"), (2, None, "Undated"), (3, FRIDAY - QUARTER, "Old")]
    rows = [message(1, id_, at, "operator", sender_forename=name) for id_, at, name in named]
    assert [each["name"] for each in made(tmp_path, rows).figures()["operators"]] == ["New"]


# --- the lists behind the figures, the period before, and units that are not over -----------------


def listed(mirror: Mirror, name: str, **options: Any) -> int:
    """How many conversations the list of a figure has."""
    given = dict.fromkeys(("timezone", "opening_hours", "since", "until")) | options
    snapshot = SnapshotReader(mirror.folder).snapshot()
    condition = select_figure(name, snapshot, Scope(**given))
    return snapshot.rows(f"SELECT count(*) FROM conversations WHERE {condition}")[0][0]


def test_each_figure_has_the_list_of_its_conversations(world):
    options = {"timezone": BERLIN, "opening_hours": "mon-fri 9-17", "since": "2019-03-01"}
    found = world.figures(**options)
    responses, states, attached = found["responses"], found["states"], found["attachments"]
    bucket = responses["buckets"][1]
    operator = found["operators"][0]
    expected = {
        "conversations": found["totals"]["conversations"],
        "answered": responses["answered"],
        "unanswered": responses["unanswered"],
        "unknown": 0,
        "answered_outside_hours": responses["answered_outside_hours"] or 0,
        f"waited.{bucket['from_seconds']}.{bucket['to_seconds']}": bucket["conversations"],
        "user_wrote_last": states["user_wrote_last"],
        "invitation_last": states["invitation_last"],
        "unread_by_user": states["unread_by_user_conversations"],
        f"operator.{operator['id']}": operator["conversations"],
        f"first_response.{operator['id']}": operator["first_responses"],
        "files": attached["conversations"],
    }
    assert {name: listed(world, name, **options) for name in expected} == expected
    followed, outcome = listed(world, "invitation.followed", **options), found["invitations"]
    assert (followed > 0) == (outcome["followed"] > 0)
    assert followed <= outcome["users"]
    hour = max(found["hours"], key=lambda each: each["user_messages"])
    within = listed(world, f"user.hour.{hour['weekday']}.{hour['hour']}", **options)
    for wider in (f"weekday.{hour['weekday']}", f"hour.{hour['hour']}"):
        assert 0 < within <= listed(world, f"user.{wider}", **options)
    by_type = [listed(world, f"files.{name}", **options) for name in attached["by_type"]]
    assert sum(by_type) >= expected["files"]


@pytest.mark.parametrize("name", ["", "x", "waited.1", "operator.1; DROP", "files.a'b"])
def test_an_unknown_list_is_refused(world, name):
    with pytest.raises(ValueError, match="there is no list"):
        listed(world, name)


def test_the_period_before_is_as_long(world):
    assert world.figures()["before"] is None
    found = world.figures(since="2019-03-15", until="2019-03-22")
    before = world.figures(since="2019-03-08", until="2019-03-15")
    assert found["before"] == {name: before[name] for name in ("totals", "responses")}
    # One that has not ended is compared with as much time, and one to come with none.
    started = world.figures(since=datetime.now(UTC) - timedelta(days=3))["before"]
    assert started is not None
    assert world.figures(since="9999-01-01")["before"] is None


def test_a_unit_that_is_not_over_or_cut_by_the_period_is_marked(tmp_path):
    now = datetime.now(UTC)
    days = [message(1, day, now - timedelta(days=day), "user") for day in range(400)]
    mirror = made(tmp_path / "chats", days)
    volume = mirror.figures()["volume"]
    assert [each["whole"] for each in volume] == [True] * (len(volume) - 1) + [False]
    monday = date.fromisoformat(volume[5]["start"])
    assert volume[5]["last_day"] == str(monday + timedelta(days=6))
    cut = mirror.figures(since=monday + timedelta(days=1), until=volume[50]["start"])["volume"]
    assert [each["whole"] for each in cut] == [False] + [True] * (len(cut) - 1)


def test_report_writes_a_page_outside_the_mirror(world, tmp_path):
    path = world.report(tmp_path / "report.html", timezone=BERLIN, since="2019-03-01")
    page = path.read_text(encoding="utf-8")
    assert ("times in Europe/Berlin" in page, "; before: " in page) == (True, True)
    with pytest.raises(MirrorError, match="inside the mirror"):
        world.report(world.folder / "report.html")
    with pytest.raises(ValueError, match="is HTML"):
        world.report(tmp_path / "report.pdf")
