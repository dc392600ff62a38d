"""``backread doctor``: what is wrong with the settings and the service."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("duckdb")

from backread import Mirror
from helpers.command_line import Done, settings_of
from helpers.doctor_report import findings, on_one_line
from helpers.file_modes import posix_only
from helpers.scripted_server import Request, ScriptedServer, answer


def test_nothing_is_wrong(doctor, server, tmp_path):
    folder = tmp_path / "chats"
    with server.client() as client:
        Mirror(folder).sync(client)
    done = doctor(folder)
    said = on_one_line(done)
    assert done.code == 0
    assert f"ok base_url {server.url} (BACKREAD_BASE_URL)" in said
    assert "ok the API secret is set (BACKREAD_API_SECRET)" in said
    assert "it has 120 users" in said
    assert "ok the certificate of the list of users is " in said
    assert re.search(r"\n\d+ ok\n$", done.out)
    assert not re.search(r"^  (warning|problem)", done.out, re.MULTILINE)


def test_nothing_is_configured(doctor, settings, monkeypatch):
    for name in settings:
        monkeypatch.delenv(name)
    done = doctor()
    assert done.code == 0
    said = on_one_line(done)
    assert "warning no service is configured -> to read a service, set BACKREAD_BASE_URL" in said
    assert "run: backread demo" in said


def test_a_duckdb_that_is_too_old(doctor, monkeypatch):
    monkeypatch.setattr("duckdb.__version__", "1.4.3")
    done = doctor("--json")
    assert done.code == 1
    [problem] = [text for state, text in findings(done, "installed") if state == "problem"]
    assert re.fullmatch(
        r"a mirror needs DuckDB 2[\d.]* or later, but 1\.4\.3 is installed -> "
        "run: pip install -U duckdb",
        problem,
    )


def test_it_sends_two_requests_and_no_more(doctor, server):
    before = server.counts()
    doctor("--max-retries", "9")
    after = server.counts()
    sent = {name: after[name] - before[name] for name in after if after[name] != before[name]}
    assert sent == {"users": 1, "user": 1}


def test_a_missing_setting_and_a_misspelled_one(doctor, monkeypatch):
    monkeypatch.delenv("BACKREAD_VENDOR")
    monkeypatch.setenv("BACKREAD_VENDER", "x")
    done = doctor("--json")
    assert done.code == 2
    [strange, missing] = findings(done, "configured")
    assert strange[0] == "warning"
    assert "BACKREAD_VENDER" in strange[1]
    assert missing[0] == "problem"
    assert "vendor" in missing[1]
    assert findings(done, "service") == []


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("BACKREAD_API_SECRET", 4, "copy the API Secret Key again"),
        ("BACKREAD_VENDOR", 2, "vendor is the word in the media type"),
        ("BACKREAD_BASE_URL", 2, "check its path"),
    ],
)
def test_a_wrong_setting_is_explained(doctor, settings, monkeypatch, name, code, said):
    wrong = f"{settings[name]}/x" if name == "BACKREAD_BASE_URL" else "mock_wrong"
    monkeypatch.setenv(name, wrong)
    done = doctor("--json")
    assert done.code == code
    [(state, text)] = findings(done, "service")
    assert state == "problem"
    assert said in text


@pytest.mark.parametrize("name", ["BACKREAD_ON_RATE_LIMIT", "BACKREAD_USER_AGENT"])
def test_a_variable_for_an_option_that_only_python_has_is_not_approved(doctor, monkeypatch, name):
    monkeypatch.setenv(name, "raise")
    found = findings(doctor("--json"), "configured")
    assert [text for state, text in found if state == "warning"] == [
        f"no setting of backread: {name} -> correct the name, or leave it out"
    ]


def test_a_secret_file_of_the_environment_is_not_read_by_python(
    doctor, settings, monkeypatch, tmp_path
):
    file = tmp_path / "secret"
    file.write_text(settings["BACKREAD_API_SECRET"], encoding="utf-8")
    file.chmod(0o600)
    said = "only the command reads BACKREAD_SECRET_FILE: Client() in Python needs"
    monkeypatch.setenv("BACKREAD_SECRET_FILE", str(file))
    # It is set here, so Client() works.
    assert said not in on_one_line(doctor())
    monkeypatch.delenv("BACKREAD_API_SECRET")
    done = doctor()
    assert done.code == 0
    assert said in on_one_line(done)
    monkeypatch.delenv("BACKREAD_SECRET_FILE")
    assert said not in on_one_line(doctor("--secret-file", file))


@posix_only
def test_a_secret_file_that_others_may_read_is_a_warning(doctor, settings, monkeypatch, tmp_path):
    file = tmp_path / "secret"
    file.write_text(settings["BACKREAD_API_SECRET"], encoding="utf-8")
    file.chmod(0o644)
    monkeypatch.delenv("BACKREAD_API_SECRET")
    monkeypatch.setenv("BACKREAD_SECRET_FILE", str(file))
    done = doctor("--json")
    assert done.code == 0
    [warning] = [text for state, text in findings(done, "configured") if state == "warning"]
    assert f"{file}, from BACKREAD_SECRET_FILE (mode 0644): other users may read it" in warning
    file.chmod(0o600)
    assert "warning" not in dict(findings(doctor("--json"), "configured"))


def test_a_named_service(doctor, server, monkeypatch, tmp_path):
    config = tmp_path / "config.toml"
    table = f'[services.lab]\nbase_url = "{server.url}"\nvendor = "{server.vendor}"\n'
    config.write_text(f'{table}secret_file = "secret"\ntimeout = 3\n', encoding="utf-8")
    (tmp_path / "secret").write_text(server.secret, encoding="utf-8")
    config.chmod(0o600)
    (tmp_path / "secret").chmod(0o600)
    monkeypatch.setenv("BACKREAD_CONFIG", str(config))
    monkeypatch.setenv("BACKREAD_BASE_URL", "http://127.0.0.1:1")
    done = doctor("--json", "--service", "lab")
    assert done.code == 0
    texts = [text for _, text in findings(done, "configured")]
    assert texts[0].startswith(f"services in {config}: lab")
    assert texts[2].startswith(f"base_url {server.url} (the config file)")
    done = doctor("--json", "--service", "shop")
    assert done.code == 2
    assert "has no service shop; it has: lab" in findings(done, "configured")[-1][1]
    config.write_text("[", encoding="utf-8")
    monkeypatch.setenv("BACKREAD_BASE_URL", server.url)
    done = doctor("--json")
    assert done.code == 0
    assert "is not TOML" in findings(done, "configured")[0][1]


@pytest.fixture
def service_finding(
    doctor: Callable[..., Done], scripted: Any, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[tuple[str, str]]]:
    """What is said of a service that gives these answers."""

    def run(*script: Any) -> list[tuple[str, str]]:
        for name, value in settings_of(scripted(*script)).items():
            monkeypatch.setenv(name, value)
        return findings(doctor("--json"), "service")

    return run


PAGE = "<!DOCTYPE html>\n<html><head><title>\n Access &amp; denied </title></head></html>"


@pytest.mark.parametrize(
    ("status", "also"),
    [
        (401, "copy the API Secret Key again"),
        (403, "ask the service's operators what this API Secret Key may read"),
        (404, "check its path"),
        (502, ""),
        (200, "check base_url"),
    ],
)
def test_a_page_of_something_in_between_is_named(service_finding, status, also):
    def page(text: str) -> list[tuple[str, str]]:
        body = answer(status, text, content_type="text/html")
        return service_finding(body, answer(404))

    [(state, text), *_] = page(PAGE)
    assert state == "problem"
    advice = text.rpartition(" -> ")[2]
    assert advice.startswith("the answer is a web page (Access & denied): something in front of")
    assert "; if it was the service: " in advice if also else "if it was" not in advice
    assert also in advice
    [(_, text), *_] = page("<html><body>no title</body></html>")
    assert " -> the answer is a web page: " in text
    [(_, text), *_] = page('{"error": "<html>"}')
    assert "web page" not in text


def test_a_network_that_wants_a_login(service_finding):
    [(_, text), *_] = service_finding(answer(511, PAGE, content_type="text/html"), answer(404))
    assert " -> this network wants a login (RFC 6585): open any page in a browser" in text
    away = answer(302, headers={"location": "https://login.example.com/"})
    [(_, text)] = service_finding(away)
    assert "if it has moved, set base_url to its new address" in text
    assert " -> or this network wants a login: open any page" in text


def one_user(**fields: Any) -> bytes:
    return answer(200, {"limit": 1, "offset": 0, "total": 1, "users": [{"id": 5} | fields]})


def test_values_of_another_type_are_a_warning(service_finding):
    attributes = [{"name": 17, "value": "x", "more": 1}, {"name": None, "value": False}]
    row = one_user(
        created_at="Sat, 06 Jun 2026 15:06:34 GMT",
        name="Ada",
        email=None,
        last_url=0,
        undocumented="x",
        user_attributes=attributes,
    )
    [_, (state, text)] = service_finding(row, answer(404))
    assert state == "warning"
    assert text.startswith(
        "values of another type or form than documented: created_at, last_url, "
        "user_attributes.name, user_attributes.value -> "
    )
    [(state, _)] = service_finding(one_user(name="Ada", undocumented=1), answer(404))
    assert state == "ok"


@pytest.mark.parametrize(("sent", "kind"), [("5", "texts"), (5.5, "not integers")])
def test_ids_that_are_no_integers(service_finding, sent, kind):
    [(state, text)] = service_finding(one_user(id=sent))
    assert state == "problem"
    assert f" -> the service's ids are {kind}, and backread needs integers" in text
    assert "base_url" not in text


def dated(seconds: float) -> Callable[[Request], bytes]:
    """Answers as a service whose clock is that much ahead of this machine's."""

    def respond(request: Request) -> bytes:
        there = datetime.now(UTC) + timedelta(seconds=seconds)
        headers = {"date": format_datetime(there, usegmt=True)}
        if request.query:
            page = {"limit": 1, "offset": 0, "total": 1, "users": [{"id": 5}]}
            return answer(200, page, headers)
        return answer(404, {}, headers)

    return respond


@pytest.mark.parametrize(
    ("seconds", "state", "said"),
    [
        (0, "ok", "agrees with the service's"),
        (3600, "warning", r"this machine's clock is 3,(59\d|60\d) s behind the service's"),
        (-86_400, "warning", r"this machine's clock is 86,(39\d|4\d\d) s ahead of the service's"),
    ],
)
def test_clocks_are_compared(doctor, monkeypatch, seconds, state, said):
    with ScriptedServer(dated(seconds)) as scripted:
        for name, value in settings_of(scripted).items():
            monkeypatch.setenv(name, value)
        done = doctor("--json")
    assert done.code == 0
    [(found, text)] = findings(done, "clock")
    assert found == state
    assert re.search(said, text)


@pytest.mark.parametrize(
    "date",
    ["soon", "Mon, 23 Nov 99999999999999999999 18:00:00 GMT",
     "Mon, 23 Nov 2026 99999999999999999999:00:00 GMT",
     "Mon, 23 Nov 2026 18:00:00 +99999999999999999999"],
)  # fmt: skip
def test_a_date_that_is_none_is_no_error(doctor, monkeypatch, date):
    def respond(request: Request) -> bytes:
        users = {"limit": 1, "offset": 0, "total": 1, "users": [{"id": 5}]}
        return answer(200 if request.query else 404, users, {"date": date})

    with ScriptedServer(respond) as scripted:
        for name, value in settings_of(scripted).items():
            monkeypatch.setenv(name, value)
        done = doctor("--json")
    assert done.code == 0
    [(state, text)] = findings(done, "clock")
    assert (state, "not compared" in text) == ("ok", True)


def test_a_hostile_service_cannot_draw_on_the_terminal(doctor, monkeypatch):
    with ScriptedServer(lambda request: answer(403, "\x1b[2J\u202e" * 9)) as scripted:
        for name, value in settings_of(scripted).items():
            monkeypatch.setenv(name, value)
        done = doctor()
    assert done.code == 4
    assert not re.search("[\x1b\u202e]", done.out)
