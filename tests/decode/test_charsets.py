"""Text that is not UTF-8: read by the charset that the service names, or repaired and counted."""

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")

from backread import DecodeError, SyncReport, WalkReport, join_reports, plan
from helpers.charsets import LOST, NAME, service
from helpers.mirrors import sync

SAID = "the service sent text that is not valid UTF-8: U+FFFD replaces it in {}"


@pytest.fixture
def command(backread, scripted, monkeypatch):
    """Runs the command for a service of `service`."""

    def run(content_type, *arguments):
        monkeypatch.setenv("BACKREAD_BASE_URL", scripted(service(content_type)).url)
        return backread(*arguments)

    return run


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("application/json; charset=ISO-8859-1", "iso-8859-1"),
        ('application/vnd.example.v1+json; a=b; Charset="Windows-1252"', "windows-1252"),
        # As many services send it that have no other encoding than UTF-8.
        ("application/json; charset=ISO-8859-1", "utf-8"),
    ],
)
def test_users_and_messages_are_read_by_the_charset_that_is_named(
    each_face, scripted, mirror, content_type, encoding
):
    server = scripted(service(content_type, encoding))
    client = each_face.client(server)
    assert each_face.call(client.users.get, 1).name == NAME
    assert each_face.call(client.messages.get, 1, 10, as_dict=True)["body"] == NAME
    for listing, column in ((client.users.list(), "name"), (client.messages.all(), "body")):
        assert each_face.call(listing.to_arrow)[column].to_pylist() == [NAME]
        assert (listing.report.repaired_text, listing.report.certificate) == (0, "snapshot")
    assert sync(mirror, server).repaired_text == 0
    assert mirror.sql("SELECT name FROM users UNION ALL SELECT body FROM messages").fetchall() == [
        (NAME,),
        (NAME,),
    ]


def test_reports_count_the_text_that_was_repaired(each_face, scripted, mirror):
    server = scripted(service("application/json"))
    client = each_face.client(server)
    for listing, places in ((client.users.list(), 2), (client.messages.all(), 4)):
        each_face.collect(listing)
        assert listing.report.repaired_text == places
        each_face.call(listing.to_arrow)
        assert listing.report.repaired_text == places
        assert WalkReport.from_json(listing.report.to_json()) == listing.report
    # Also where the rows are as before.
    for _ in range(2):
        report = sync(mirror, server)
        assert report.repaired_text == 4
        assert SyncReport.from_dict(report.to_dict()) == report
        assert ">in 4 places<" in report._repr_html_()
    assert mirror.sql("SELECT name FROM users").fetchall() == [(LOST,)]


@pytest.mark.parametrize(("resource", "places"), [("users", 2), ("messages", 4)])
def test_reports_of_shards_count_the_text_that_was_repaired(scripted, resource, places):
    with scripted(service("application/json")).client() as client:
        shards = plan(client, resource=resource, shards=1)
        [listing] = [shard.read(client) for shard in shards]
        assert len(listing.to_list()) == 1
        assert join_reports(shards, [listing.report]).repaired_text == places


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        (("users",), 2),
        (("users", "--format", "csv"), 2),
        (("user", 1), 2),
        (("messages", 1), 2),
        (("messages", "--all"), 4),
        (("message", 1, 10), 2),
        (("sync", "chats"), 4),
        (("sync", "chats", "--json"), 4),
    ],
)
def test_commands_say_on_one_line_how_much_text_was_repaired(
    command, tmp_path, monkeypatch, arguments, places
):
    monkeypatch.chdir(tmp_path)
    done = command("application/json", *arguments)
    assert done.code == 0
    said = [line for line in done.error.splitlines() if "UTF-8" in line]
    assert said == [f"backread: {SAID.format(f'{places} places')}"]


def test_probe_and_doctor_say_how_much_text_was_repaired(command):
    for name in ("probe", "doctor"):
        assert SAID.format("")[:-1] in command("application/json", name).error


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("application/json", "utf-16"),
        ("application/json; charset=utf-16le", "utf-16-le"),
        ("application/json; charset=UTF-16BE", "utf-16-be"),
    ],
)
def test_a_body_in_utf_16_is_an_error_that_names_it(each_face, scripted, content_type, encoding):
    server = scripted(service(content_type, encoding))
    client = each_face.client(server, max_retries=0)
    with pytest.raises(DecodeError, match="it is UTF-16, and JSON must be UTF-8"):
        each_face.call(client.users.get, 1)
    with pytest.raises(DecodeError, match="it is UTF-16, and JSON must be UTF-8"):
        each_face.collect(client.users.list())
