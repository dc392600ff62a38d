"""docs/how-to/configuration.md says what the settings, the config file and the doctor do."""

import re
import tomllib
from pathlib import Path

import pytest

from documents import IN_CHECKOUT, ROOT, Document

if not IN_CHECKOUT:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

pytest.importorskip("typer")
pytest.importorskip("rich")

from backread.cli.services import OPTIONS, REQUIRED, config_file, read_services

PAGE = Document(ROOT / "docs/how-to/configuration.md")


def test_the_example_is_a_config_file(tmp_path, monkeypatch):
    [block] = [each for each in PAGE.blocks if each.language == "toml"]
    file = tmp_path / "config.toml"
    file.write_text(block.code, encoding="utf-8")
    file.chmod(0o600)
    monkeypatch.setenv("BACKREAD_CONFIG", str(file))
    services = read_services()
    assert list(services) == list(tomllib.loads(block.code)["services"]) == ["shop", "lab"]
    assert services["shop"].secret_file == tmp_path / "shop.secret"
    assert services["lab"].secret_file == Path("~/secrets/lab").expanduser()
    assert services["lab"].options["ca_bundle"] == tmp_path / "lab.pem"
    assert f"`--service {next(iter(services))}`" in PAGE.text


def test_every_option_of_a_service_is_named():
    [sentence] = re.findall(r"A service may also set (.*?)\.", PAGE.text, re.DOTALL)
    named = re.findall(r"`(\w+)`", sentence)
    assert named == [each for each in OPTIONS if each not in REQUIRED]


def test_the_place_of_the_file_is_that_of_the_table(monkeypatch):
    import sys

    monkeypatch.delenv("BACKREAD_CONFIG", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    system = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}[sys.platform]
    [place] = PAGE.table("system")[system]
    assert config_file().as_posix().endswith(place.rpartition("~")[2].strip("`").replace("\\", "/"))
