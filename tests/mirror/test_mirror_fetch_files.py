"""`Mirror.fetch_files`: each attachment once, or the reason why not; and none after `forget`."""

import json
import os
import signal
from collections import Counter
from typing import Any

import pytest

from backread.errors import MirrorError
from backread.mirror import Mirror, attachments
from helpers.api_rows import message, paged, user
from helpers.file_traces import files_below
from helpers.mirrors import rows, sync
from helpers.python_process import run
from helpers.scripted_server import Request, ScriptedServer, answer

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 100


class Service(ScriptedServer):
    """Two users whose messages link to files of the same server, and the files."""

    def __init__(self, *links: str) -> None:
        self.links = dict(enumerate(links, 1))
        self.files: dict[str, Any] = {}
        super().__init__(self.reply)

    def reply(self, request: Request) -> Any:
        if request.path in self.files:
            assert "authorization" not in request.headers
            return self.files[request.path]
        if not request.path.startswith("/external/users"):
            return answer(404, "gone", content_type="text/plain")
        if "/messages" not in request.path:
            return paged([user(1), user(2)])(request)
        mine = request.path.split("/")[3] == "1"
        links = self.links.items()
        found = [message(each, file_url=link) for each, link in links if (each < 100) == mine]
        return paged(found, key="messages")(request)

    @property
    def fetched(self) -> Counter[str]:
        return Counter(each.path for each in self.requests if not each.path.startswith("/external"))


def fetch(mirror: Mirror, service: Service, **options: Any) -> Any:
    with service.client(max_retries=0) as client:
        return mirror.fetch_files(client, **options)


TABLE = "SELECT message_id, name, sha256, bytes, media_type, reason FROM files ORDER BY 1"


def test_mirror_fetch_files_stores_equal_files_once_and_only_what_is_new(mirror):
    with Service("/files/a%20cat.png?token=1", "/files/copy.png", "files/b.pdf") as service:
        png = answer(200, PNG, content_type="image/png")
        pdf = answer(200, b"%PDF-1.7", content_type="Application/PDF; v=1")
        service.files = {"/files/a%20cat.png": png, "/files/copy.png": png, "/files/b.pdf": pdf}
        sync(mirror, service)
        assert (mirror.status().files, mirror.status().files_missing) == (3, 3)
        done = fetch(mirror, service)
        assert (done.fetched, done.stored, done.failures, done.missing) == (3, 2, 0, 0)
        table = rows(mirror, TABLE)
        assert [(row[1], *row[3:]) for row in table] == [
            ("a cat.png", len(PNG), "image/png", None),
            ("copy.png", len(PNG), "image/png", None),
            ("b.pdf", 8, "application/pdf", None),
        ]
        for row in table:
            stored = (mirror.folder / "files" / row[2][:2] / row[2]).stat()
            assert (stored.st_size, stored.st_mode & 0o777) == (row[3], 0o600)
        service.links[1] = "/files/a%20cat.png?token=2"
        service.links[3] = "/files/c.pdf"
        service.files["/files/c.pdf"] = pdf
        sync(mirror, service)
        assert mirror.status().files_missing == 1
        assert (fetch(mirror, service).fetched, mirror.status().files_missing) == (1, 0)
        assert service.fetched["/files/a%20cat.png"] == 1


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("/gone.png", "the server answered 404"),
        ("http://127.0.0.1:1/a", "not a public address"),
        ("http://metadata.internal/a", "not a public name"),
        ("/redirected", "not a public address"),
        ("ftp://example.com/a", "scheme is ftp"),
        ("/page.png", "a web page came"),
        ("/huge.bin", "too large"),
        ("/drip.bin", "too slowly"),
        ("http://[", "not a URL"),
    ],
)
def test_mirror_fetch_files_gives_each_bad_link_a_reason(mirror, link, reason):
    with Service(link) as service:
        service.files = {
            "/redirected": answer(302, headers={"location": "http://[::1]:1/a"}),
            "/page.png": answer(200, "<!doctype html>Log in", content_type="image/png"),
            "/huge.bin": b"HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\nx",
            "/drip.bin": service.stall(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"),
        }
        sync(mirror, service)
        with service.client(timeout=0.5 if "slowly" in reason else 30) as client:
            done = mirror.fetch_files(client)
        assert (done.failures, done.missing) == (1, 1)
        assert reason in done.failed[0].reason
        [(_, _, sha256, size, _, stored)] = rows(mirror, TABLE)
        assert (sha256, size, stored) == (None, None, done.failed[0].reason)
        assert not [each for each in files_below(mirror.folder / "files") if each.is_file()]


def test_mirror_fetch_files_asks_a_proxy_for_public_names_only(mirror):
    links = [f"http://{host}/a.png" for host in ("files.example.com", "10.0.0.1", "intranet")]
    with Service(*links) as service:
        service.files = {"/a.png": answer(200, PNG)}
        sync(mirror, service)
        with service.client(proxy=service.url) as client:
            done = mirror.fetch_files(client)
        assert (done.fetched, done.failures) == (1, 2)
        assert [each.target for each in service.requests if "a.png" in each.target] == links[:1]


def test_mirror_fetch_files_gives_a_name_that_is_safe(mirror):
    with Service("/f/..%2F..%2Fetc%2Fpasswd\u202egnp.sh", "/f/%00") as service:
        sync(mirror, service)
        fetch(mirror, service)
        names = rows(mirror, "SELECT name FROM files ORDER BY message_id")
        assert names == [("_.._etc_passwd_gnp.sh",), ("_",)]


def test_mirror_fetch_files_gives_a_dead_link_up_until_it_changes(mirror, monkeypatch):
    monkeypatch.setattr(attachments, "ATTEMPTS", 2)
    with Service("/gone.png") as service:
        sync(mirror, service)
        assert [fetch(mirror, service).failures for _ in range(3)] == [1, 1, 0]
        service.links[1] = "/gone.png?token=2"
        sync(mirror, service)
        assert fetch(mirror, service).failures == 1


def test_mirror_fetch_files_limits_and_patterns(mirror):
    with of_pictures(20) as service:
        service.links[21] = "/a.PDF"
        service.files["/a.PDF"] = answer(200, b"%PDF-1.7")
        sync(mirror, service)
        assert fetch(mirror, service, only="*.pdf").fetched == 1
        done = fetch(mirror, service, only=["image/*"], max_bytes=1)
        assert 1 <= done.fetched <= 8
        assert done.left == 20 - done.fetched
        with pytest.raises(ValueError, match="only must be a pattern"):
            fetch(mirror, service, only=[])


def test_mirror_forget_removes_attachments_that_nobody_else_sent(mirror):
    with Service("/own.bin?secret-link", "/shared.bin") as service:
        service.links[100] = "/other/shared.bin"
        shared = answer(200, b"of both users")
        service.files = {"/shared.bin": shared, "/other/shared.bin": shared}
        service.files["/own.bin"] = answer(200, b"only of the first user")
        sync(mirror, service)
        assert fetch(mirror, service).stored == 2
        assert mirror.forget(1).files == 2
        kept = b"".join(each.read_bytes() for each in files_below(mirror.folder))
        assert b"of both users" in kept
        assert b"only of the first user" not in kept
        assert b"own.bin" not in kept


def test_mirror_export_everything_has_the_attachments(mirror, tmp_path):
    with Service("/a cat.png", "/gone.png") as service:
        service.files = {"/a%20cat.png": answer(200, PNG)}
        sync(mirror, service)
        fetch(mirror, service)
        mirror.export(tmp_path / "person", users=1, everything=True)
        mirror.export(tmp_path / "person", users=1, everything=True, replace=True)
        assert (tmp_path / "person" / "attachment-1-a cat.png").read_bytes() == PNG
        document = json.loads((tmp_path / "person" / "everything.json").read_bytes())
        assert [each["message_id"] for each in document["files"]] == [1, 2]


def test_mirror_fetch_files_refuses_mirrors_that_keep_personal_data_out(tmp_path):
    private = Mirror(tmp_path / "chats", redact=True)
    with Service("/a.png") as service:
        sync(private, service)
        with pytest.raises(MirrorError, match="keeps personal data out"):
            fetch(private, service)


KILLED = """
import os, signal
from backread import Client
from backread.mirror import Mirror

def kill(now):
    if now.files >= 5:
        os.kill(os.getpid(), signal.SIGKILL)

with Client() as client:
    Mirror(os.environ["CHATS"]).fetch_files(client, on_progress=kill)
"""


@pytest.mark.skipif(os.name == "nt", reason="has no SIGKILL")
def test_mirror_fetch_files_goes_on_after_a_kill(mirror):
    with of_pictures(50) as service:
        sync(mirror, service)
        ended = run(KILLED, service, CHATS=str(mirror.folder))
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        done = fetch(mirror, service)
        assert (done.fetched < 50, done.missing) == (True, 0)
        assert sum(service.fetched.values()) == 50 + (done.fetched - done.stored)
        assert not list((mirror.folder / "files").glob(".*"))


def of_pictures(count: int) -> Service:
    service = Service(*(f"/{each}.png" for each in range(count)))
    service.files = {f"/{each}.png": answer(200, PNG + bytes([each])) for each in range(count)}
    return service
