"""``Client(service="shop")`` and ``Client(api_secret_file=...)``: settings and secrets of files."""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from backread import Client, ConfigurationError
from backread._client.services import config_file, read_services
from backread.testing import MockServer, World
from helpers.api_rows import user
from helpers.debug_output import everything_public, traceback_with_locals, without_the_callers_frame
from helpers.file_modes import posix_only, root_only
from helpers.scripted_server import answer

SECRET = "5ecretOfTheService"
OTHER = "5ecretOfTheCaller"

pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def shop() -> Iterator[MockServer]:
    with MockServer(World(seed=2, users=3), vendor="shop", secret=SECRET) as running:
        yield running


@pytest.fixture
def configure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the config file, and the secret in a file beside it, both with mode 0600."""
    file = tmp_path / "config.toml"
    monkeypatch.setenv("BACKREAD_CONFIG", str(file))

    def write(text: str) -> Path:
        (tmp_path / "shop.secret").write_text(f"{SECRET}\n", encoding="utf-8")
        file.write_text(text, encoding="utf-8")
        for each in (file, tmp_path / "shop.secret"):
            each.chmod(0o600)
        return file

    return write


def table(url: str, more: str = "") -> str:
    return (
        f'[services.shop]\nbase_url = "{url}"\nvendor = "shop"\nsecret_file = "shop.secret"\n{more}'
    )


def refused(*words: str, **arguments: Any) -> str:
    """The message of the ConfigurationError, which has these words; nothing shows a secret."""
    with pytest.raises(ConfigurationError) as caught:
        Client(**arguments)
    message = str(caught.value)
    for word in words:
        assert word in message
    shown = traceback_with_locals(without_the_callers_frame(caught.value))
    assert not [secret for secret in (SECRET, OTHER) if secret in shown + message]
    return message


def test_client_reads_a_service_of_the_config_file(each_face, configure, shop, monkeypatch):
    configure(table(shop.url, "timeout = 7\n"))
    # Nothing of these is used.
    for name in ("BASE_URL", "API_SECRET", "VENDOR"):
        monkeypatch.setenv(f"BACKREAD_{name}", "http://127.0.0.1:1")
    client = each_face.kind(service="shop")
    assert len(each_face.collect(client.users.list())) == 3
    assert (client.base_url, client.vendor) == (shop.url, "shop")
    assert client._options["timeout"] == 7
    assert SECRET not in everything_public(client)
    each_face.close(client)


def test_arguments_win_over_the_service(face, configure, scripted):
    server = scripted(answer(200, user(42)), answer(200, user(42)))
    configure(table(f"{server.url}/file", "timeout = 7\ndeadline = 9\n"))
    client = Client(
        f"{server.url}/argument", vendor="other", service="shop", timeout=30.0, deadline=None
    )
    assert (client._options["timeout"], client._options["deadline"]) == (30.0, None)
    face.call(client.users.get, 42)
    [request] = server.requests
    assert request.target == "/argument/external/users/42"
    assert request.headers["accept"] == "application/vnd.other.v1+json"
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    with Client(None, OTHER, None, service="shop") as client:
        client.users.get(42)
    assert server.requests[1].target == "/file/external/users/42"
    assert server.requests[1].headers["authorization"] == f"Bearer {OTHER}"


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:{other}",
        "http://localhost:{port}",
        "http://127.0.0.1:{port}@127.0.0.1:{other}",
        "",
    ],
)
def test_the_secret_of_a_service_goes_to_its_own_origin_only(
    configure, scripted, monkeypatch, base_url
):
    server, elsewhere = scripted(answer(200, user(42))), scripted()
    configure(table(server.url))
    port, other = (int(each.url.rpartition(":")[2]) for each in (server, elsewhere))
    monkeypatch.setenv("BACKREAD_API_SECRET", "the-environments-own")
    url = base_url.format(port=port, other=other)
    refused("the service shop of", f"for {server.url} only", base_url=url, service="shop")
    assert elsewhere.requests == []


def test_another_base_url_needs_a_secret_of_its_own(configure, scripted, tmp_path, monkeypatch):
    monkeypatch.setenv("BACKREAD_API_SECRET", "the-environments-own")
    elsewhere = scripted(answer(200, user(42)), answer(200, user(42)))
    configure(table("https://chat.example.com"))
    (tmp_path / "other").write_text(OTHER, encoding="utf-8")
    for secret in ({"api_secret": OTHER}, {"api_secret_file": tmp_path / "other"}):
        with Client(elsewhere.url, service="shop", **secret) as client:
            client.users.get(42)
    sent = [request.headers["authorization"] for request in elsewhere.requests]
    assert sent == [f"Bearer {OTHER}"] * 2


def test_a_secret_file_that_cannot_be_used_is_named(tmp_path):
    file = tmp_path / "secret"
    given = {"base_url": "https://chat.example.com", "vendor": "acme", "api_secret_file": file}
    said = f"api_secret_file {file} cannot be read: No such file"
    refused(said, "name a file that holds only the API secret", **given)
    file.write_text(" \n", encoding="utf-8")
    refused(f"api_secret_file {file} is empty; put the API secret in it", **given)
    refused("both given; leave one out", api_secret=OTHER, **given)
    refused("api_secret_file: s3://x is not a local path", **given | {"api_secret_file": "s3://x"})
    with pytest.raises(TypeError, match="service must be a str, not int"):
        Client(service=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("source", ["service", "api_secret_file"])
def test_an_unpickled_client_reads_its_secret_from_the_file_again(
    face, configure, scripted, tmp_path, monkeypatch, source
):
    server = scripted(answer(200, user(42)))
    configure(table(server.url, "max_retries = 1\n"))
    monkeypatch.chdir(tmp_path)
    if source == "service":
        client = Client(service="shop", timeout=3)
    else:
        client = Client(server.url, None, "shop", api_secret_file="shop.secret", max_retries=1)
    (tmp_path / "shop.secret").write_text(OTHER, encoding="utf-8")
    pickled = pickle.dumps(client.with_options(max_concurrency=2))
    assert SECRET.encode() not in pickled
    monkeypatch.chdir("/")
    loaded = pickle.loads(pickled)
    assert face.call(loaded.users.get, 42).id == 42
    assert (loaded._options["max_retries"], loaded.vendor) == (1, "shop")
    assert server.requests[0].headers["authorization"] == f"Bearer {OTHER}"
    if source == "service":
        configure(table("https://elsewhere.example.com"))
        with pytest.raises(ConfigurationError, match=r"is for https://elsewhere.example.com only"):
            pickle.loads(pickled)


CHAT = table("https://chat.example.com")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[services.shop]\nvendor = "x"\n', "lacks base_url, secret_file; add that"),
        (
            CHAT.replace("secret_file", "api_secret"),
            "unknown settings: api_secret; known are secret_file",
        ),
        (f'{CHAT}timeout = "x"\n', "timeout must be a number"),
        (f"{CHAT}ca_bundle = 5\n", "ca_bundle must be text"),
        (table("http://chat.example.com"), "the service shop of {file}: base_url"),
        (CHAT.replace('"shop.secret"', '"s3://x"'), "secret_file: s3://x is not a local path"),
        (CHAT.replace("shop.secret", "none"), "/none cannot be read: No such file"),
        ("services.shop = 5\n", "is not a table; begin it with [services.shop]"),
        ('[shop]\nbase_url = "x"\n', "settings that are not of a service: shop; begin each"),
        (CHAT.replace("shop]", "lab]"), "{file} has no service shop; it has: lab"),
        ("a = " + "[" * 20_000, "{file} is not TOML: "),
        (".".join(["a"] * 300_000) + " = 1", "more than 65,536 bytes"),
    ],
    ids=lambda value: value[:30],
)
def test_a_config_file_that_is_not_right_is_explained(configure, text, said):
    file = configure(text)
    refused(said.format(file=file), service="shop")


def test_a_missing_config_file_is_told_what_to_hold(configure, tmp_path, shop):
    said = refused(
        f"{tmp_path}/config.toml, the config file, has no services or does not exist",
        service="shop",
    )
    # What it says is what the file must hold, once it has the service's values.
    text = said.rpartition(": ")[2].replace("https://chat.example.com/api", shop.url)
    configure(text.replace('"example"', '"shop"'))
    with Client(service="shop") as client:
        assert client.users.page().total == 3


def test_paths_of_the_config_file_begin_at_its_folder(configure, tmp_path, monkeypatch):
    file = configure(f'{CHAT.replace("shop.secret", "./~/secret")}ca_bundle = "lab.pem"\n')
    monkeypatch.setenv("BACKREAD_CONFIG", file.name)
    monkeypatch.chdir(tmp_path)
    shop = read_services()["shop"]
    assert shop.secret_file == tmp_path / "~" / "secret"
    assert shop.options["ca_bundle"] == str(tmp_path / "lab.pem")
    assert SECRET not in repr(shop)


@posix_only
def test_files_that_other_users_may_access_are_refused(configure, tmp_path):
    file = configure(CHAT)
    for mode in (0o604, 0o640, 0o602, 0o644):
        file.chmod(mode)
        said = f"other users may access {file} (mode {mode:04o}); run: chmod 600 {file}"
        assert refused(service="shop") == said
    configure(CHAT)
    (tmp_path / "shop.secret").chmod(0o604)
    refused(f"every user may access {tmp_path}/shop.secret; run: chmod o= on it", service="shop")


@root_only
def test_a_config_file_of_another_user_is_refused(configure):
    file = configure(CHAT)
    os.chown(file, 12345, -1)
    refused(f"{file} belongs to another user (uid 12345); use a file of your own", service="shop")


@pytest.mark.parametrize(
    ("platform", "folder"), [("linux", ".config"), ("darwin", "Library/Application Support")]
)
def test_the_config_file_is_where_the_platform_has_settings(
    tmp_path, monkeypatch, platform, folder
):
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    assert config_file() == tmp_path / folder / "backread" / "config.toml"
    assert read_services() == {}
    if platform == "linux":
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
        assert config_file() == tmp_path / "settings" / "backread" / "config.toml"
