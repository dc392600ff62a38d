"""Text that is not UTF-8, and values of another type: reports and commands say how many."""

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

import json
from collections.abc import Callable

from backread import DecodeError, SyncReport, WalkReport, join_reports, plan
from helpers.api_rows import envelope, message, paged, user
from helpers.mirrors import sync
from helpers.scripted_server import Request, answer

NAME = "Zo\xeb M\xfcller"
LOST = "Zo\ufffd M\ufffdller"


def service(content_type: str, encoding: str = "iso-8859-1") -> Callable[[Request], bytes]:
    """Answers with a user of that name, and a message with it as its body."""

    def respond(request: Request) -> bytes:
        row = message(10, body=NAME) if "messages" in request.path else user(1, name=NAME)
        *_, last = request.path.split("/")
        body = envelope([row], key=last) if last in ("users", "messages") else row
        text = json.dumps(body, ensure_ascii=False)
        return answer(200, text.encode(encoding), content_type=content_type)

    return respond


SAID = "the service sent text that is not valid UTF-8: U+FFFD replaces it in "


@pytest.fixture
def command(backread, monkeypatch):
    """Runs the command for a server."""

    def run(server, *arguments):
        monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
        return backread(*arguments)

    return run


# Many services name a charset that is not theirs.
@pytest.mark.parametrize("encoding", ["iso-8859-1", "utf-8"])
def test_text_is_read_by_the_charset_that_is_named(face, scripted, mirror, encoding):
    server = scripted(service('application/json; a=b; Charset="ISO-8859-1"', encoding))
    client = face.client(server)
    assert face.call(client.users.get, 1).name == NAME
    assert face.call(client.messages.get, 1, 10, as_dict=True)["body"] == NAME
    for listing, column in ((client.users.list(), "name"), (client.messages.all(), "body")):
        assert face.call(listing.to_arrow)[column].to_pylist() == [NAME]
        assert (listing.report.repaired_text, listing.report.certificate) == (0, "snapshot")
    assert sync(mirror, server).repaired_text == 0
    stored = mirror.sql("SELECT name FROM users UNION ALL SELECT body FROM messages")
    assert stored.fetchall() == [(NAME,)] * 2


def test_reports_count_the_text_that_was_repaired(face, scripted, mirror):
    server = scripted(service("application/json"))
    client = face.client(server)
    for resource, listing, places in (
        ("users", client.users.list(), 2),
        ("messages", client.messages.all(), 4),
    ):
        for read in (face.collect, lambda listing: face.call(listing.to_arrow)):
            read(listing)
            assert listing.report.repaired_text == places
        assert WalkReport.from_json(listing.report.to_json()) == listing.report
        shards = plan(client, resource=resource, shards=1)
        [shard] = [shard.read(client) for shard in shards]
        assert len(shard.to_list()) == 1
        assert join_reports(shards, [shard.report]).repaired_text == places
    # Also where the rows are as before.
    for _ in range(2):
        report = sync(mirror, server)
        assert report.repaired_text == 4
        assert SyncReport.from_dict(report.to_dict()) == report
        assert ">in 4 places<" in report._repr_html_()
    assert mirror.sql("SELECT name FROM users").fetchall() == [(LOST,)]


COMMANDS = "users --format csv, message 1 10, messages --all, sync chats --json, probe, doctor"


@pytest.mark.parametrize("line", COMMANDS.split(", "))
def test_commands_say_on_one_line_how_much_text_was_repaired(
    command, scripted, tmp_path, monkeypatch, line
):
    monkeypatch.chdir(tmp_path)
    done = command(scripted(service("application/json")), *line.split())
    [said] = [line for line in done.error.splitlines() if "UTF-8" in line]
    assert said.startswith(f"backread: {SAID}")
    if line not in ("probe", "doctor"):
        places = 4 if line.startswith(("messages", "sync")) else 2
        assert said.endswith(f"in {places} places")


@pytest.mark.parametrize(
    ("charset", "encoding"), [("", "utf-16"), ("; charset=UTF-16BE", "utf-16-be")]
)
def test_a_body_in_utf_16_is_an_error_that_names_it(face, scripted, charset, encoding):
    server = scripted(service(f"application/json{charset}", encoding))
    with pytest.raises(DecodeError, match="it is UTF-16, and JSON must be UTF-8"):
        face.collect(face.client(server, max_retries=0).users.list())


def test_a_sync_and_a_report_name_the_columns_whose_values_are_odd(command, scripted, mirror):
    """As from services whose framework or database writes times and booleans in its own way."""
    flask = {"created_at": "Sat, 06 Jun 2026 15:06:34 GMT"}
    listed = [user(1, **flask), user(2, user_attributes=[{"name": "visits", "value": 3}])]
    talk = [
        message(10, **flask, read_by_user=1, sender={"id": "3", "forename": "Grace"}),
        message(11, **flask, sender_type="user", sender={"id": 1, "forename": "Grace"}),
        message(12, sender_type="bot", sender={"id": 1, "name": "Bot"}, channel="web"),
        message(13, sender_type="user", sender={"id": 1, "email": 7}),
    ]

    def respond(request: Request) -> bytes:
        if "messages" in request.path:
            return paged(talk, key="messages")(request)
        return paged(listed)(request)

    names = {
        "messages.created_at": 4,
        "messages.read_by_user": 2,
        "messages.sender_email": 2,
        "messages.sender_id": 2,
        "users.created_at": 1,
        "users.user_attributes.value": 1,
    }
    says = f"12 values of another type, kept in extra: {', '.join(names)}"
    server = scripted(respond)
    assert sync(mirror, server).odd_values == names
    # Also where the rows are as before.
    assert f"; {says}; " in command(server, "sync", mirror.folder).out
    assert f"{says}." in " ".join(command(server, "report", mirror.folder).out.split())
    assert mirror.figures()["coverage"]["odd_values"] == names
    # Rows that are gone, or as documented now, do not count.
    talk[:] = [message(11)]
    listed[0] = user(1)
    report = sync(mirror, server, mode="full")
    assert report.odd_values == {"users.user_attributes.value": 1}
    assert SyncReport.from_dict(report.to_dict()) == report
