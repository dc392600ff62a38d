"""Values of another type than documented: the sync and its report name the columns they are in."""

import pytest

pytest.importorskip("duckdb")

from backread.mirror import Mirror, SyncReport
from helpers.api_rows import message, user
from helpers.mirrors import sync
from helpers.scripted_server import Request, ScriptedServer, answer

FLASK = "Sat, 06 Jun 2026 15:06:34 GMT"


def test_a_sync_and_a_report_name_the_columns_that_are_null(backread, tmp_path, monkeypatch):
    """As from services whose framework or database writes times and booleans in its own way."""
    listed = [user(1, created_at=FLASK), user(2, user_attributes=[{"name": "visits", "value": 3}])]
    talk = [
        message(10, created_at=FLASK, read_by_user=1, sender={"id": "3", "forename": "Grace"}),
        message(11, created_at=FLASK, sender_type="user", sender={"id": 1, "forename": "Grace"}),
        message(12, sender_type="bot", sender={"id": 1, "name": "Bot"}, channel="web"),
        message(13, sender_type="user", sender={"id": 1, "email": 7}),
    ]

    def service(request: Request) -> bytes:
        key = request.path.rsplit("/", 1)[1]
        rows = listed if key == "users" else talk
        return answer(200, {"limit": 99, "offset": 0, "total": len(rows), key: rows})

    names = {
        "messages.created_at": 4,
        "messages.read_by_user": 2,
        "messages.sender_email": 2,
        "messages.sender_id": 2,
        "users.created_at": 1,
        "users.user_attributes.value": 1,
    }
    says = f"12 values of another type, kept in extra: {', '.join(names)}"
    mirror = Mirror(tmp_path / "chats")
    with ScriptedServer(service) as server:
        assert sync(mirror, server).odd_values == names
        monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
        monkeypatch.setenv("BACKREAD_API_SECRET", server.secret)
        monkeypatch.setenv("BACKREAD_VENDOR", server.vendor)
        # Also where the rows are as before.
        assert f"; {says}; " in backread("sync", mirror.folder).out
        assert f"{says}." in " ".join(backread("report", mirror.folder).out.split())
        assert mirror.figures().coverage.odd_values == names
        # Rows that are gone, or as documented now, do not count.
        talk[:] = [message(11)]
        listed[0] = user(1)
        report = sync(mirror, server, mode="full")
    assert report.odd_values == {"users.user_attributes.value": 1}
    assert SyncReport.from_dict(report.to_dict()) == report
