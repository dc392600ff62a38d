"""``--service NAME``: services of the config file, each with its own address and secret."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from backread.cli.services import complete_service, config_file, find_service, read_services
from backread.testing import MockServer, World
from helpers.file_modes import posix_only, root_only
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
    file = tmp_path / "config.toml"

    def write(text: str, secret: str | None = None) -> Path:
        monkeypatch.setenv("BACKREAD_CONFIG", str(file))
        file.write_text(text, encoding="utf-8")
        file.chmod(0o600)
        if secret is not None:
            (tmp_path / "secret").write_text(f"{secret}\n", encoding="utf-8")
            (tmp_path / "secret").chmod(0o600)
        return file

    return write


def table(url: str, vendor: str = "shop", more: str = "") -> str:
    return (
        f'[services.shop]\nbase_url = "{url}"\nvendor = "{vendor}"\nsecret_file = "secret"\n{more}'
    )


def test_a_named_service_is_read_in_place_of_the_environments(
    backread, configure, other, tmp_path, monkeypatch
):
    configure(table(other.url), other.secret)
    # Files are found from the config file, not from the current folder.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = backread("users", "--service", "shop")
    assert (done.code, done.out.count("\n")) == (0, USERS)
    assert backread("users").out.count("\n") == 120


def test_nothing_of_the_environment_goes_to_a_named_service(backread, configure, monkeypatch):
    monkeypatch.setenv("BACKREAD_DEADLINE", "0.000001")
    monkeypatch.setenv("BACKREAD_MAX_RETRIES", "9")
    with ScriptedServer(answer(503), answer(200, {"id": 7})) as named:
        configure(table(named.url, more="max_retries = 1\n"), named.secret)
        done = backread("user", "7", "--service", "shop")
        assert (done.code, done.out) == (0, '{"id": 7}\n')
        assert [each.headers["authorization"] for each in named.requests] == [
            f"Bearer {named.secret}"
        ] * 2
        assert named.requests[0].headers["accept"] == "application/vnd.shop.v1+json"
    with ScriptedServer(lambda request: answer(503)) as down:
        configure(table(down.url, more="max_retries = 0\noutage_patience = 0\n"), down.secret)
        assert backread("user", "7", "--service", "shop").code == 5
        assert len(down.requests) == 1
        # The command line wins over the file.
        assert backread("user", "7", "--service", "shop", "--max-retries", "1").code == 5
        assert len(down.requests) == 3


def test_a_dot_before_a_tilde_is_the_config_files_folder(
    backread, configure, other, tmp_path, monkeypatch
):
    file = configure(table(other.url).replace('"secret"', '"./~/secret"'))
    (tmp_path / "~").mkdir()
    (tmp_path / "~" / "secret").write_text(other.secret)
    (tmp_path / "~" / "secret").chmod(0o600)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert backread("users", "--service", "shop").code == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKREAD_CONFIG", file.name)
    assert backread("users", "--service", "shop").code == 0


@pytest.mark.parametrize("command", ["users", "doctor"])
def test_settings_of_the_environment_are_not_even_read(
    backread, configure, other, monkeypatch, command
):
    monkeypatch.setenv("BACKREAD_TIMEOUT", "abc")
    monkeypatch.setenv("BACKREAD_SECRET_FILE", "s3://elsewhere/secret")
    monkeypatch.setenv("BACKREAD_CA_BUNDLE", "-")
    configure(table(other.url), other.secret)
    assert backread(command, "--service", "shop").code == 0
    refused = backread(command)
    assert refused.code == 2
    assert "or BACKREAD_SECRET_FILE: s3://elsewhere/secret is not a local path" in refused.line


@pytest.mark.parametrize("given", ["--base-url", "--vendor", "--secret-file"])
def test_another_address_or_secret_beside_it_is_refused(backread, configure, other, given):
    configure(table(other.url), other.secret)
    done = backread("users", "--service", "shop", given, "https://elsewhere.example.com")
    if given == "--secret-file":
        done = backread("users", "--service", "shop", given, "secret")
    assert done.code == 2
    assert done.line.endswith(f"its own address and secret: leave out {given}")
    assert not any(other.counts().values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[services.shop]\nvendor = "x"\n', "lacks base_url, secret_file; add that"),
        (table("https://chat.example.com").replace("secret_file", "api_secret"), "in a file of"),
        (table("https://chat.example.com", more="colour = 1\n"), "unknown settings: colour;"),
        (table("https://chat.example.com", more='timeout = "x"\n'), "timeout must be a number"),
        (table("https://chat.example.com", more="ca_bundle = 5\n"), "ca_bundle must be text"),
        (table("http://chat.example.com"), "plain http"),
        (table("https://chat.example.com").replace('"secret"', '"s3://x"'), "secret_file: s3://x"),
        ("services = 5\n", "settings that are not of a service: services; begin"),
        ("services.shop = 5\n", "is not a table; begin it with [services.shop]"),
        ('[shop]\nbase_url = "x"\n', "settings that are not of a service: shop; begin each"),
        ("[services.lab]\nbase_url = ", "is not TOML: "),
        ("", "has no services; add to it: services.shop = {base_url = "),
    ],
)
def test_a_file_that_is_not_right_is_explained(backread, configure, text, said):
    file = configure(text, "elsewhere-secret")
    done = backread("users", "--service", "shop")
    assert done.code == 2
    assert said in done.line
    assert str(file) in done.line or "s3://" in said
    assert "elsewhere-secret" not in done.line


def test_an_unknown_name_lists_the_known_ones(backread, configure):
    table_of_lab = table("https://lab.example.com").replace("shop", "lab", 1)
    file = configure(table("https://chat.example.com") + table_of_lab)
    done = backread("users", "--service", "shopp")
    assert done.line == f"backread: {file} has no service shopp; it has: shop, lab"


def test_a_missing_file_is_told_what_to_hold(backread, tmp_path, monkeypatch, other):
    file = tmp_path / "none.toml"
    monkeypatch.setenv("BACKREAD_CONFIG", str(file))
    done = backread("users", "--service", "shop")
    assert done.code == 2
    assert f"config file {file}, which does not exist; create it with mode 0600" in done.line
    # What it says is what the file must hold, once it has the service's values.
    text = done.line.rpartition(": ")[2]
    file.write_text(text.replace("https://chat.example.com/api", other.url), encoding="utf-8")
    file.chmod(0o600)
    done = backread("users", "--service", "shop")
    assert f"secret_file {tmp_path / 'shop.secret'} cannot be read" in done.line
    (tmp_path / "shop.secret").write_text("x", encoding="utf-8")
    (tmp_path / "shop.secret").chmod(0o600)
    assert backread("users", "--service", "shop").code == 4


@posix_only
@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o602, 0o660, 0o644])
def test_a_file_that_others_may_read_or_write_is_refused(backread, configure, other, mode):
    file = configure(table(other.url), other.secret)
    file.chmod(mode)
    done = backread("users", "--service", "shop")
    assert done.code == 2
    assert done.line == (
        f"backread: other users may access {file} (mode {mode:04o}); run: chmod 600 {file}"
    )
    assert not any(other.counts().values())


@root_only
def test_a_file_of_another_user_is_refused(backread, configure, other):
    file = configure(table(other.url), other.secret)
    os.chown(file, 12345, -1)
    done = backread("users", "--service", "shop")
    assert done.line.endswith(f"{file} belongs to another user (uid 12345); use a file of your own")


@posix_only
def test_a_secret_that_every_user_may_read_is_refused(backread, configure, other, tmp_path):
    configure(table(other.url), other.secret)
    (tmp_path / "secret").chmod(0o604)
    done = backread("users", "--service", "shop")
    assert done.code == 2
    assert f"every user may access {tmp_path / 'secret'}; run: chmod o= on it" in done.line
    assert not any(other.counts().values())


@posix_only
def test_the_file_is_where_the_platform_has_its_settings(configure, tmp_path, monkeypatch):
    monkeypatch.delenv("BACKREAD_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert config_file().is_relative_to(tmp_path)
    assert config_file().parts[-2:] == ("backread", "config.toml")
    assert read_services() == {}


def test_a_service_shows_no_secret(configure, other):
    configure(table(other.url), other.secret)
    assert find_service("shop").secret() == other.secret
    assert other.secret not in repr(read_services())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 20_000, "nested too deeply"),
        (".".join(["a"] * 300_000) + " = 1", "more than 65,536 bytes"),
    ],
    ids=["brackets", "dots"],
)
def test_a_file_that_takes_forever_is_refused_at_once(backread, configure, text, said):
    configure(text)
    done = backread("users", "--service", "shop")
    assert done.code == 2
    assert said in done.error
    assert "bug" not in done.error


def test_names_are_completed(configure):
    file = configure(table("https://chat.example.com"))
    assert complete_service("s") == ["shop"]
    assert complete_service("x") == []
    file.write_text("[", encoding="utf-8")
    assert complete_service("s") == []
