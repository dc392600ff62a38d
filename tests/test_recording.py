"""`record`: a service in fakes, that the mock serves as the service served what was real."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backread import (
    AsyncClient,
    AuthenticationError,
    Client,
    ConnectError,
    ServiceProfile,
    StatusError,
)
from backread.testing import MockServer, Record, World, record
from canned import message, user
from modes import largest_file, posix_only

WORLD = {"seed": 5, "users": 25, "messages_per_user": (0, 130)}
KEY = b"sixteen bytes or more of a key"


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(**WORLD)) as running:
        yield running


def recorded(server: Any, folder: Path, **options: Any) -> Record:
    options = {"probe": False, "key": KEY, **options}
    with server.client() as client:
        return record(client, folder, **options)


def rows_of(recorded: Record) -> list[dict[str, Any]]:
    text = (recorded.folder / "world.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def of_rows(*users: Any, **options: Any) -> MockServer:
    return MockServer(World.from_jsonl(list(users)), **options)


def one(folder: Path, **changes: Any) -> dict[str, Any]:
    """The record of one user with these fields."""
    with of_rows(user(7, **changes)) as server:
        [row] = rows_of(recorded(server, folder))
    return row


# --- nothing real ---------------------------------------------------------------------------------

# Names of fields, and the values that stay: docs/reference/recording.md.
NAMES = {"user", "operator", "bot", "system", "api", "plan", "note", "newsletter", "city"} | {
    *("cart_value", "last_order", "language", "segment", "referrer", "company", "vip"),
}
"""The types of senders, and the names of attributes, in the mock's world."""
STAYING = {"example", "https", "docx"}
"""Parts of addresses."""
WORD = re.compile(r"[^\W\d_]{4,}")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for held in value.values():
            yield from strings(held)
    elif isinstance(value, list):
        for held in value:
            yield from strings(held)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("dialect", ["documented", "hostile order=id"])
def test_no_word_of_the_service_is_in_the_record(tmp_path, dialect):
    world = World(**WORLD)
    with MockServer(world, dialect=dialect, vendor="vendorword") as server:
        made = recorded(server, tmp_path / "record", probe=True)
        with server.client() as client:
            real = [*client.users.list(as_dict=True), *client.messages.all(as_dict=True)]
        secrets = (server.secret, server.url, f":{server.port}", server.vendor, KEY.decode())
    texts = {text for text in strings(real) if len(text) >= 4}
    words = {word.casefold() for text in texts for word in WORD.findall(text)}
    assert len(words) > 400
    held = list(strings(rows_of(made)))
    kept = {text.casefold() for text in held if re.fullmatch("[a-z_]+", text)} & NAMES
    assert set(held) & texts <= kept
    found = {word.casefold() for text in held for word in WORD.findall(text)}
    assert words & found <= {word for name in NAMES for word in name.split("_")} | STAYING
    for file in made.folder.iterdir():
        text = file.read_text(encoding="utf-8")
        for private in secrets:
            assert private not in text


def test_words_of_any_kind_are_replaced_at_every_depth(tmp_path):
    sentinel = "Xq7Sentinel"
    odd: dict[str, Any] = {
        "deep": [{"er": {"and": [sentinel, {"deeper": f"{sentinel}@{sentinel}.com"}]}}],
        f"{sentinel} as a name": 1,
        f"{sentinel}@example.com": {"inner": f"https://{sentinel}.com/{sentinel}?q={sentinel}"},
        "phone": "+49 30 901820",
        "pin": 90182044,
        "at": [52.520008, 13.404954],
    }
    row = user(
        7,
        name=sentinel,
        email=f"{sentinel}@example.com",
        last_url=f"https://user:{sentinel}@{sentinel}.org:8443/{sentinel}/a.pdf#{sentinel}",
        reference=f"{sentinel}-90182044",
        user_attributes=[{"name": f"{sentinel} attribute", "value": sentinel, **odd}, sentinel],
        **odd,
        messages=[
            message(1, body=f"I am {sentinel}.", sender_type=f"{sentinel} type", **odd),
            message(2, sender={"id": 1, "who": sentinel, **odd}, file_url=sentinel),
            message(3, sender=sentinel, created_at=sentinel, read_by_user=sentinel),
        ],
    )
    with of_rows(row) as server:
        made = recorded(server, tmp_path / "record", probe=True)
    for file in made.folder.iterdir():
        text = file.read_text(encoding="utf-8")
        for real in ("Sentinel", "sentinel", "901820", "520008", "404954"):
            assert real not in text, (file, real)
    # The moved times of the other files may fall into any month.
    assert "2024-03" not in world_text(made)


def test_the_vendor_word_is_in_no_file(tmp_path, scripted):
    from probing import branded

    service = scripted(branded("AcmeChat"))
    with Client(service.url, service.secret, "acmechat") as client:
        made = record(client, tmp_path / "record")
    for file in made.folder.iterdir():
        text = file.read_text(encoding="utf-8").lower()
        for private in ("acmechat", f"127.0.0.1:{service.port}", service.secret):
            assert private not in text, file
    assert made.profile is not None
    assert made.profile.http.rate_limit_headers == ("ratelimit", "x-ratelimit-remaining")
    assert made.profile.refusals.unknown_user is not None
    assert made.profile.refusals.unknown_user.content_type == "application/vnd.vendor.v1+json"


def test_names_that_stay_are_listed(tmp_path):
    row = user(
        7,
        user_attributes=[{"name": "Anna_Schmidt", "value": "x"}, {"name": "Anna Schmidt"}],
        contacts={"anna.schmidt": 1},
        **{"Anna Schmidt": 1},
        messages=[message(1, sender_type="annabot", sender=None)],
    )
    with of_rows(row) as server:
        made = recorded(server, tmp_path / "record")
        probed = recorded(server, tmp_path / "probed", probe=True)
    names = ("Anna_Schmidt", "anna.schmidt", "annabot", "contacts")
    assert made.about.kept_names == probed.about.kept_names == names
    about = json.loads((made.folder / "about.json").read_text(encoding="utf-8"))
    assert about["kept_names"] == list(names)
    for file in probed.folder.iterdir():
        assert "Anna Schmidt" not in file.read_text(encoding="utf-8")


# --- shapes ---------------------------------------------------------------------------------------


def test_types_nulls_gaps_and_order_of_keys_stay(tmp_path):
    changes: dict[str, Any] = {
        "reference": None,
        "online_at": 1_700_000_000,
        "plan": {"seats": 25, "trial": False, "since": None, "tags": [], "none": {}},
        "score": -2.5,
        "user_attributes": [{"value": "pro", "name": "plan"}, {}, None, "text", {"name": 3}],
        "messages": [message(4, sender_type="bot", sender=None, body="")],
    }
    real = user(7, **changes)
    del real["email"]
    with of_rows(real) as server:
        [fake] = rows_of(recorded(server, tmp_path / "record"))

    def shape(value: Any) -> Any:
        if isinstance(value, dict):
            return [(name, shape(held)) for name, held in value.items()]
        return [shape(each) for each in value] if isinstance(value, list) else type(value)

    assert shape(fake) == shape(real)
    assert fake["plan"] | {"seats": 25} == changes["plan"]
    assert fake["messages"][0]["sender_type"] == "bot"
    assert fake["user_attributes"][0]["name"] == "plan"
    assert 10 <= fake["plan"]["seats"] <= 99
    assert fake["score"] < 0


@pytest.mark.parametrize(
    ("real", "pattern"),
    [
        ("ada.lovelace+x@mail.acme.co.uk", r"[a-z.]+\+[a-z]@[a-z.]+\.example"),
        ("Ada@acme.com", r"[A-Z][a-z]+@[a-z]+\.example"),
        (
            "https://www.acme.com:8443/shoes/12-red.JPG?ref=mail&n=5#top",
            r"https://[a-z.]+\.example:8443/[a-z]+/\d\d-[a-z]+\.jpg\?[a-z]+=[a-z]+&[a-z]=\d#[a-z]+",
        ),
        ("550e8400-e29b-41d4-a716-446655440000", r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
        ("192.168.1.77", r"10\.\d+\.\d+\.\d+"),
        ("2024-02-29T12:34:56.789012Z", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(?!789|\d{3}012)\d{6}Z"),
        ("2024-02-29 12:34+02:00", r"\d{4}-\d\d-\d\d \d\d:\d\d\+02:00"),
        ("2024-02-29", r"\d{4}-\d\d-\d\d"),
        ("ORD-2231/b", r"[A-Z]{3}-\d{4}/[a-z]"),
        ("Привет, Аня!\n\nКак дела?", r"[А-Я][а-я]+, [А-Я][а-я]+!\n\n[А-Я][а-я]+ [а-я]+\?"),
        ("价格是多少", r"[\u4e00-\u9fff]{4,6}"),
        ("Done 👍🏽!", r"[A-Z][a-z]+ \W🏽!"),
        ("", r""),
        (" \n", r" \n"),
    ],
)
def test_a_text_keeps_its_form(tmp_path, real, pattern):
    fake = one(tmp_path / "record", reference=real)["reference"]
    assert re.fullmatch(pattern, fake), fake
    assert fake != real or not real.strip()


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "x@" * 150_000, "a." * 150_000], ids=["word", "at signs", "dots"]
)
def test_a_long_text_takes_time_in_proportion(tmp_path, text):
    """Such as an image in base64; in quadratic time it would not end within an hour."""
    assert len(one(tmp_path / "record", reference=text)["reference"]) > 0


def test_an_id_of_more_digits_than_python_reads_is_text(tmp_path):
    fake = one(tmp_path / "record", order_id="7" * 5_000)["order_id"]
    assert len(fake) == 5_000
    assert fake != "7" * 5_000


def test_what_was_equal_is_equal(tmp_path):
    ada = {"id": 7, "name": "Ada Lovelace", "email": "ada@acme.com"}
    mine = message(5, sender_type="user", sender=dict(ada), user_id=7, body="To ada@acme.com")
    rows = [
        {**user(7), **ada, "ref": {"user_id": "7"}, "messages": [mine, message(6)]},
        user(8, email="bob@acme.com", name="Bob", messages=[message(9)]),
    ]
    with of_rows(*rows) as server:
        first, second = rows_of(recorded(server, tmp_path / "record"))
    sent, by_operator = first["messages"]
    assert sent["sender"] == {name: first[name] for name in ada}
    assert sent["user_id"] == first["id"] == int(first["ref"]["user_id"])
    assert sent["body"].endswith(f" {first['email']}")
    assert by_operator["sender"] == second["messages"][0]["sender"]
    assert first["email"].split("@")[1] == second["email"].split("@")[1]
    assert first["name"] != second["name"]


def test_ids_keep_their_order_and_times_their_distances(server, tmp_path):
    from datetime import datetime

    def instants(rows: list[dict[str, Any]]) -> list[datetime]:
        return [datetime.fromisoformat(each["created_at"]) for each in rows]

    world = server.world
    real = [world.user(user_id) for user_id in world.user_ids()]
    fakes = rows_of(recorded(server, tmp_path / "record"))
    ids = [each["id"] for each in fakes]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(real)
    gaps = {now - then for now, then in zip(instants(real), instants(fakes), strict=True)}
    [gap] = gaps
    assert gap.days > 180
    assert gap.total_seconds() % (7 * 86400) != 0
    for row, user_id in zip(fakes, world.user_ids(), strict=True):
        messages = [each["id"] for each in row["messages"]]
        assert messages == sorted(messages)
        assert len(messages) == len(world.message_ids(user_id))


def test_no_time_beside_the_rows_tells_by_how_much_theirs_were_moved(server, tmp_path):
    from datetime import UTC, datetime, timedelta

    before = datetime.now(UTC)
    made = recorded(server, tmp_path / "record", probe=True)
    for file in ("about.json", "profile.json"):
        text = (made.folder / file).read_text(encoding="utf-8")
        times = [datetime.fromisoformat(each) for each in re.findall(r'"(20\d\d-[^"]+)"', text)]
        assert len(times) == 1
        assert before - times[0] > timedelta(days=180)
    # By one span: the row's own, which the times of the world show.
    world = server.world
    real = datetime.fromisoformat(world.user(world.user_ids()[0])["created_at"])
    span = real - datetime.fromisoformat(rows_of(made)[0]["created_at"])
    assert made.profile is not None
    for time in (made.about.recorded_at, made.profile.measured_at):
        assert timedelta(seconds=-1) <= time + span - before < timedelta(minutes=5)


# --- the key --------------------------------------------------------------------------------------


def world_text(made: Record) -> str:
    return (made.folder / "world.jsonl").read_text(encoding="utf-8")


def test_records_of_one_key_are_alike_and_others_are_not(server, tmp_path):
    texts = [
        world_text(recorded(server, tmp_path / str(number), key=key))
        for number, key in enumerate([KEY, KEY.decode(), b"another key of many bytes", None, None])
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 4


@pytest.mark.parametrize("key", [b"", b"short", "fifteen letters"])
def test_a_key_that_could_be_guessed_is_refused(server, tmp_path, key):
    with pytest.raises(ValueError, match="too few") as caught:
        recorded(server, tmp_path / "record", key=key)
    assert not key or str(key) not in str(caught.value)


# --- replay ---------------------------------------------------------------------------------------

DIALECTS = [
    "documented",
    "lenient",
    "order=newest",
    "order=shuffled",
    "max_limit=20 over_limit=clamp default_limit=5",
    "total=null past_end=not_found",
    "total=capped total_cap=25",
    "total=high past_end=last_page",
    "nulls=both sender_type=others",
    "ids=text",
    "ids=large",
]


def lists(client: Client) -> tuple[list[Any], list[Any], list[Any]]:
    """The rows of all lists by their shapes, the certificates, and the ids by their rank."""
    listing = client.users.list(as_dict=True)
    users = listing.to_list()
    certificates: list[Any] = [listing.report.certificate]
    shapes: list[Any] = []
    ranks = [rank([each["id"] for each in users])]
    for each in users:
        messages = client.messages.list(int(each["id"]), as_dict=True)
        rows = messages.to_list()
        certificates.append(messages.report.certificate)
        ranks.append(rank([row["id"] for row in rows]))
        shapes.append((list(each), [(list(row), type(row.get("sender"))) for row in rows]))
    return shapes, certificates, ranks


def rank(ids: list[Any]) -> list[int]:
    order = {each: place for place, each in enumerate(sorted(map(int, ids)))}
    return [order[int(each)] for each in ids]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_mock_serves_a_record_as_the_service_did(tmp_path, dialect):
    with MockServer(World(**WORLD), dialect=dialect) as real:
        made = recorded(real, tmp_path / "record", probe=True)
        with real.client() as client:
            before = lists(client)
        with (
            MockServer(made.world(), dialect=made.dialect) as replayed,
            replayed.client() as client,
        ):
            after = lists(client)
            moved = made.profile.differences(client.probe()) if made.profile else None
    if "shuffled" in dialect:
        # Which list is shown whole by how many requests is chance.
        before, after = (([], each[1][:1], []) for each in (before, after))
    assert after == before
    # An envelope's unknown fields are the service's, and no row's.
    assert [each.path for each in moved or [] if each.path != "fields.page.has_more"] == []


def test_rows_that_are_added_come_at_the_end_that_grows(tmp_path):
    with MockServer(World(**WORLD), dialect="order=newest") as server:
        made = recorded(server, tmp_path / "record", probe=True)
    world = made.world()
    with MockServer(world, dialect=made.dialect) as server, server.client() as client:
        [new] = world.add_users()
        assert client.users.page(limit=1).items[0].id == new


# --- what is kept ---------------------------------------------------------------------------------


def test_only_gets_are_sent_and_the_profile_is_one(server, tmp_path):
    with server.lane() as lane:
        made = recorded(lane, tmp_path / "record", probe=True)
        assert {entry.method for entry in lane.journal} == {"GET"}
    assert isinstance(made.profile, ServiceProfile)
    about = json.loads((made.folder / "about.json").read_text(encoding="utf-8"))
    assert about["users"] == about["total_users"] == WORLD["users"]
    assert about["messages"] == server.world.total_messages
    assert sum(about["certificates"].values()) == WORLD["users"]
    assert sorted(file.name for file in made.folder.iterdir()) == [
        "about.json",
        "profile.json",
        "world.jsonl",
    ]
    assert repr(made).startswith("<Record ")


def test_users_stand_all_over_the_list_or_at_its_start(server, tmp_path):
    everyone = [row["id"] for row in rows_of(recorded(server, tmp_path / "all", users=None))]
    spread = recorded(server, tmp_path / "spread", users=7)
    ids = [row["id"] for row in rows_of(spread)]
    assert len(ids) == 7
    places = [everyone.index(each) for each in ids]
    assert places[0] == 0
    assert places[-1] > 18
    assert spread.about.total_users == WORLD["users"]
    first = recorded(server, tmp_path / "first", users=7, spread=False)
    assert [row["id"] for row in rows_of(first)] == everyone[:7]
    assert (first.about.total_users, first.about.users_certificate) == (None, "uncertified")


def test_the_first_messages_of_each_user(server, tmp_path):
    made = recorded(server, tmp_path / "record", messages_per_user=3)
    counts = [len(row["messages"]) for row in rows_of(made)]
    world = server.world
    assert counts == [min(3, len(world.message_ids(each))) for each in world.user_ids()]


def test_a_user_who_goes_meanwhile_is_left_out_and_counted(tmp_path):
    with MockServer(World(users=30, messages_per_user=(1, 2))) as server:
        server.fault(f"messages user={server.world.user_ids()[4]}: status(404)")
        made = recorded(server, tmp_path / "record")
    assert (made.about.users, list(made.about.left_out.values())) == (29, [1])


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("status(400)", "BadRequestError"),
        ("status(403)", "PermissionDeniedError"),
        ("status(422)", "BadRequestError"),
        ("status(500)", "ServerError"),
        ("truncate(at=9)", "TruncatedBodyError"),
        ("garbage()", "DecodeError"),
    ],
)
def test_a_list_that_cannot_be_read_is_left_out_and_counted(tmp_path, fault, error):
    with MockServer(World(users=30, messages_per_user=(1, 2))) as server:
        server.clock.virtual()
        server.fault(f"messages user={server.world.user_ids()[4]}: {fault}")
        made = recorded(server, tmp_path / "record")
    assert made.about.users == 29
    assert made.about.left_out == {f"the messages of the user could not be read ({error})": 1}


@pytest.mark.parametrize(
    ("faults", "status"),
    [
        # No list can be read.
        ("messages: status(500)", 500),
        ("messages user={first}: status(401)", 401),
    ],
)
def test_a_service_that_fails_ends_the_recording(tmp_path, faults, status):
    with MockServer(World(users=3, messages_per_user=(1, 2))) as server:
        server.fault(faults.format(first=server.world.user_ids()[0]))
        with server.client(max_retries=0) as client, pytest.raises(StatusError) as caught:
            record(client, tmp_path / "record", probe=False)
    assert caught.value.status_code == status
    assert list(tmp_path.iterdir()) == []


def test_a_list_is_not_to_blame_if_nothing_else_is_answered(tmp_path, monkeypatch):
    def page(*_: Any, **__: Any) -> None:
        raise ConnectError("the service is down")

    with MockServer(World(users=3, messages_per_user=(1, 2))) as server:
        server.fault(f"messages user={server.world.user_ids()[0]}: status(500)")
        with server.client(max_retries=0) as client:
            monkeypatch.setattr(type(client.users), "page", page)
            with pytest.raises(ConnectError):
                record(client, tmp_path / "record", probe=False)


def test_ids_that_are_no_numbers_are_left_out_and_counted(tmp_path, scripted):
    from probing import Rows

    users = [user("a-1"), user(2), user(None), user(-4), user("5")]
    messages = [message(1), message("b"), message(2.5)]
    service = scripted(Rows(users, {2: messages, 5: []}))
    with Client(service.url, service.secret, service.vendor) as client:
        made = record(client, tmp_path / "record", probe=False)
    assert (made.about.users, made.about.messages) == (2, 1)
    assert sum(made.about.left_out.values()) == 5
    assert made.world().total_users == 2


# --- the folder -----------------------------------------------------------------------------------


def test_a_failure_leaves_nothing_behind(server, tmp_path):
    with Client(server.url, "mock_wrong", server.vendor) as client:
        for probe in (True, False):
            with pytest.raises(AuthenticationError):
                record(client, tmp_path / "record", probe=probe)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_costs_no_request(server, tmp_path):
    before = sum(server.counts().values())
    # Too long for the folder beside it that is written in.
    with pytest.raises(OSError, match=r"n cannot be created: .*; name another folder"):
        recorded(server, tmp_path / ("n" * 240), probe=True)
    assert sum(server.counts().values()) == before
    assert list(tmp_path.iterdir()) == []


def test_a_failure_in_the_middle_keeps_the_record_of_before(tmp_path):
    with MockServer(World(users=30, messages_per_user=(1, 2))) as server:
        made = recorded(server, tmp_path / "record")
        before = world_text(made)
        server.fault(f"messages user={server.world.user_ids()[20]}: status(418)")
        with pytest.raises(StatusError, match="418"):
            recorded(server, tmp_path / "record", replace=True)
    assert world_text(made) == before
    assert [each.name for each in tmp_path.iterdir()] == ["record"]


@posix_only
def test_a_full_disk_is_told_with_the_folder(server, tmp_path):
    folder = tmp_path / "record"
    with largest_file(1_000), pytest.raises(OSError, match=r"too large") as raised:
        recorded(server, folder)
    assert raised.value.filename == str(folder)
    assert str(folder) in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def refuse_renames(patch: pytest.MonkeyPatch, *endings: str) -> None:
    rename = Path.rename

    def refusing(self: Path, target: Path) -> Path:
        if self.name.endswith(endings):
            raise PermissionError(f"{self.name} is held")
        return rename(self, target)

    patch.setattr(Path, "rename", refusing)


def test_a_record_that_cannot_take_its_place_leaves_the_one_before(server, tmp_path, monkeypatch):
    made = recorded(server, tmp_path / "record", users=2)
    before = world_text(made)
    with monkeypatch.context() as patch:
        refuse_renames(patch, ".unfinished")
        with pytest.raises(PermissionError, match="is held"):
            recorded(server, made.folder, users=3, replace=True)
    assert world_text(made) == before
    assert [each.name for each in tmp_path.iterdir()] == ["record"]
    with monkeypatch.context() as patch:
        refuse_renames(patch, ".unfinished", ".former")
        with pytest.raises(OSError, match=r"the previous one is now in .*; move it back to"):
            recorded(server, made.folder, users=3, replace=True)
    [former] = tmp_path.iterdir()
    former.rename(made.folder)
    assert world_text(made) == before


def test_what_a_killed_recording_left_is_in_nobodys_way(server, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        # A kill, after which nothing is tidied up.
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        server.fault("messages: status(418)")
        try:
            with pytest.raises(StatusError):
                recorded(server, tmp_path / "record", users=2)
        finally:
            server.clear_faults()
    [left] = tmp_path.iterdir()
    assert left.name.endswith(".unfinished")
    assert recorded(server, tmp_path / "record", users=2).about.users == 2
    assert recorded(server, tmp_path / "record", users=3, replace=True).about.users == 3


def test_a_failure_ends_the_long_lists_that_are_being_read(tmp_path):
    with MockServer(World(users=8, messages_per_user=(6_000, 6_000))) as server:
        first = server.world.user_ids()[0]
        server.fault("messages: latency(20)")
        server.fault(f"messages user={first}: status(418)")
        with pytest.raises(StatusError):
            recorded(server, tmp_path / "record")
        # Seven lists would be 430 pages.
        assert server.calls("messages").count < 200


def test_only_a_record_gives_way_and_only_when_asked(server, tmp_path):
    folder = tmp_path / "record"
    folder.mkdir()
    recorded(server, folder, users=2)
    with pytest.raises(FileExistsError, match="--replace"):
        recorded(server, folder)
    assert recorded(server, folder, users=3, replace=True).about.users == 3
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine", encoding="utf-8")
    for place, says in ((other, "other files"), (other / "thesis.txt", "is a file")):
        with pytest.raises(FileExistsError, match=says):
            recorded(server, place, replace=True)
    assert (other / "thesis.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "is not a record"),
        ({"about.json": "no"}, "not JSON"),
        ({"about.json": "[]"}, "no record_version"),
        ({"about.json": '{"record_version": 99}'}, "install a newer backread"),
        ({"about.json": '{"record_version": 1}'}, "is damaged"),
    ],
)
def test_what_is_no_record_says_why(tmp_path, files, says):
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=says):
        Record(tmp_path)


@pytest.mark.parametrize("wrong", [{"users": 0}, {"messages_per_user": -1}, {"users": True}])
def test_wrong_arguments_send_nothing(server, tmp_path, wrong):
    with server.lane() as lane:
        with pytest.raises(ValueError, match=next(iter(wrong))):
            recorded(lane, tmp_path / "record", **wrong)
        assert list(lane.journal) == []


def test_another_client_is_refused(server, tmp_path):
    client: Any = AsyncClient(server.url, server.secret, server.vendor)
    with pytest.raises(TypeError, match="AsyncClient"):
        record(client, tmp_path / "record")
