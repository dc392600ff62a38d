"""``--service NAME``: the services of `Client(service=...)`, on the command line."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from backread.cli.connection import complete_service
from backread.testing import MockServer, World
from helpers.scripted_server import ScriptedServer, answer

USERS = 3


@pytest.fixture
def other() -> Iterator[MockServer]:
    """A second service, which the environment does not name."""
    with MockServer(World(seed=2, users=USERS), vendor="shop") as running:
        yield running


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the config file with mode 0600, and a secret beside it."""

    def write(url: str, secret: str, more: str = "") -> Path:
        file = tmp_path / "config.toml"
        monkeypatch.setenv("BACKREAD_CONFIG", str(file))
        file.write_text(
            f'[services.shop]\nbase_url = "{url}"\nvendor = "shop"\nsecret_file = "secret"\n{more}'
        )
        (tmp_path / "secret").write_text(f"{secret}\n")
        for each in (file, tmp_path / "secret"):
            each.chmod(0o600)
        return file

    return write


@pytest.mark.parametrize("command", ["users", "doctor"])
def test_a_named_service_is_read_in_place_of_the_environments(
    backread, configure, other, monkeypatch, command
):
    # Not even read.
    monkeypatch.setenv("BACKREAD_TIMEOUT", "abc")
    monkeypatch.setenv("BACKREAD_SECRET_FILE", "s3://elsewhere/secret")
    monkeypatch.setenv("BACKREAD_CA_BUNDLE", "-")
    configure(other.url, other.secret)
    done = backread(command, "--service", "shop")
    assert done.code == 0
    assert command == "doctor" or done.out.count("\n") == USERS
    refused = backread(command)
    assert refused.code == 2
    assert "or BACKREAD_SECRET_FILE: s3://elsewhere/secret is not a local path" in refused.line


def test_options_of_the_command_line_win_over_the_services(backread, configure, monkeypatch):
    monkeypatch.setenv("BACKREAD_MAX_RETRIES", "9")
    with ScriptedServer(lambda request: answer(503)) as down:
        configure(down.url, down.secret, "max_retries = 0\noutage_patience = 0\n")
        assert backread("user", "7", "--service", "shop").code == 5
        assert len(down.requests) == 1
        assert backread("user", "7", "--service", "shop", "--max-retries", "1").code == 5
        assert len(down.requests) == 3


@pytest.mark.parametrize("given", ["--base-url", "--vendor", "--secret-file"])
def test_another_address_or_secret_beside_it_is_refused(backread, configure, other, given):
    configure(other.url, other.secret)
    done = backread("users", "--service", "shop", given, "https://elsewhere.example.com")
    if given == "--secret-file":
        done = backread("users", "--service", "shop", given, "secret")
    assert done.code == 2
    assert done.line.endswith(f"its own address and secret: leave out {given}")
    assert not any(other.counts().values())


def test_an_error_in_the_file_names_its_settings_and_not_options(backread, configure):
    file = configure("https://chat.example.com", "x", "max_retries = -1\n")
    done = backread("users", "--service", "shop")
    assert done.code == 2
    assert done.line.startswith(f"backread: the service shop of {file}: max_retries ")
    assert backread("users", "--service", "lab").line == (
        f"backread: {file} has no service lab; it has: shop"
    )


def test_names_are_completed(configure):
    file = configure("https://chat.example.com", "x")
    assert complete_service("s") == ["shop"]
    assert complete_service("x") == []
    file.write_text("[", encoding="utf-8")
    assert complete_service("s") == []
