"""What `--help` shows, what wrong command lines get, and what the shell completes."""

import json
import os
import re
import shlex
import subprocess
from typing import Any

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import typer

from backread.cli.app import app
from backread.cli.examples import EXAMPLES
from helpers.command_line import COMMAND, SECONDS, posix_only
from helpers.pseudo_terminal import on_terminal

GROUP = typer.main.get_command(app)


def commands() -> list[tuple[str, ...]]:
    """Every command, by its words."""
    found: list[tuple[str, ...]] = []
    for name, command in GROUP.commands.items():  # type: ignore[attr-defined]
        found.append((name,))
        found += [(name, each) for each in getattr(command, "commands", {})]
    return found


def titles(text: str) -> list[str]:
    return re.findall(r"^([A-Z][\w ,]+):$", text, re.MULTILINE)


def test_the_commands_are_in_groups(backread):
    text = backread("--help").out
    assert backread().out == text
    found = titles(text)
    assert found[:3] == [
        "Read the service", "Keep a mirror of it, and read that", "Try and test"
    ]  # fmt: skip
    assert found[-2:] == ["Options", "Examples"]
    for name, *_ in commands():
        assert re.search(rf"^  {name} +[A-Z]", text, re.MULTILINE)
    # Whole sentences, not cut short.
    assert "..." not in text


@pytest.mark.parametrize("words", commands(), ids=" ".join)
def test_each_command_has_examples_that_can_be_typed(backread, words):
    text = backread(*words, "--help").out
    assert backread(*words, "-h").out == text
    examples = EXAMPLES[" ".join(words)]
    assert 1 <= len(examples) <= 3
    shown = text.partition("Examples:\n")[2]
    for about, line in examples:
        assert line in shown
        assert about.split()[0] in shown
        # As a shell would split it, without what it does itself.
        typed = shlex.split(re.split(r" [|<>] ", line)[0])
        assert typed[0] == "backread"
        parsed(typed[1:])


def parsed(arguments: list[str]) -> None:
    """Parses a command line without running it; an error for one that would be refused."""
    command: Any = GROUP
    name = "backread"
    while True:
        with command.make_context(name, list(arguments)) as context:
            pass
        rest = [*context._protected_args, *context.args]
        if not rest or not hasattr(command, "commands"):
            return
        name, *arguments = rest
        command = command.commands[name]


def test_the_options_of_the_connection_are_in_one_place(backread):
    text = backread("users", "--help").out
    own, _, connection = text.partition("\nConnection:\n")
    assert "--base-url" not in own
    assert "--limit NUMBER" in own
    assert "--base-url, " in connection
    assert "see backread --help-connection" in " ".join(connection.split())
    assert "Seconds that one attempt may take" not in text
    explained = backread("--help-connection").out
    assert "Seconds that one attempt may take" in " ".join(explained.split())
    assert "--secret-file FILE" in explained
    # Commands that read no service have none of them.
    assert "Connection" not in backread("show", "--help").out


@posix_only
@pytest.mark.parametrize("width", [60, 80, 120])
def test_help_fits_the_terminal(width):
    for arguments in (["--help"], ["users", "--help"], ["sync", "--help"]):
        text = on_terminal(*arguments, COLUMNS=str(width), TERM="xterm", NO_COLOR="1").text
        before, _, examples = text.partition("Examples:")
        assert max(map(len, before.splitlines())) <= min(width, 100)
        assert "backread " in examples


@posix_only
def test_colour_is_a_choice():
    def heading(*arguments: str, **more: Any) -> bool:
        settings: dict[str, Any] = {"TERM": "xterm", "NO_COLOR": ""}
        text = on_terminal(*arguments, **(settings | more)).text
        assert "Options:" in text
        return "\x1b[1mOptions:" in text

    assert heading("--help")
    assert not heading("--help", NO_COLOR="1")
    assert not heading("--help", TERM="dumb")
    assert not heading("--color", "never")
    assert heading("--color", "always", NO_COLOR="1")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["usrs"], "there is no command 'usrs'; did you mean users or user?; see backread --help"),
        (["mock", "record", "x"], "no command backread mock record: write rows as JSON lines"),
        (["mock", "learn", "x.json"], "no command backread mock learn: backread probe measures"),
        (["mock", "record", "x", "--key-file", "k"], "no command backread mock record: write rows"),
        (["users", "--format", "Delta"], 'write_deltalake(uri, mirror.table("messages"))'),
        (["users", "--output", "x.delta"], 'write_deltalake(uri, mirror.table("messages"))'),
        (["users", "--fromat", "json"], "there is no option --fromat; did you mean --format?"),
        (["users", "--out", "x"], "there is no option --out; did you mean --output or --outage"),
        (["user", "forty-two"], "USER_ID: it must be a whole number, 0 or more"),
        (["user", "--", "-1"], "USER_ID: it must be a whole number, 0 or more"),
        (["user", "-5"], "-5 is read as an option; ids and numbers are 0 or more"),
        (["user"], "USER_ID is missing (the user's id); see backread user --help"),
        (["user", "1", "2"], "there is an argument too many: 2"),
        (["users", "--limit", "0"], "--limit: it must be a whole number, 1 or more"),
        (["users", "--limit", "9" * 20], "--limit: it must be a whole number from 1 to 9223372036"),
        (["users", "--limit", "9" * 5_000], "--limit: it must be a whole number from 1 to 9223"),
        (["runs", "x", "--limit", "9" * 20], "--limit: it must be a whole number from 1 to 9223"),
        (["show", "x", "1", "--last", "9" * 20], "--last: it must be a whole number from 1 to 9"),
        (["users", "--limit"], "--limit needs a value"),
        (["users", "--format", "xml"], "--format: it must be json, jsonl, table, csv or parquet"),
        (["users", "--timeout", "soon"], "--timeout or BACKREAD_TIMEOUT: it must be a number"),
        (["mock", "--port", "70000"], "--port: it must be a whole number from 0 to 65535"),
        (["sync", "x", "--retention-days", "soon"], "--retention-days: it must be a number, 0 or"),
        (["search", "x", "y", "--since", "soon"], "--since must be a date or time such as"),
        (["search", "x", "y", "--since", "2024-02-01", "--until", "2024-01-01"], "--since must be"),
        (["export", "x", "y.csv", "--excel", "--format", "parquet"], "--"),
        (["users", "--base-url", "http://chat.example.com"], "or set --allow-http"),
        (["users", "--base-url", "not a url"], "--base-url or BACKREAD_BASE_URL has a blank"),
        (["users", "--secret-file", "nowhere"], "nowhere"),
        (["users", "--output", "no/such/folder/users"], "--output"),
        (["messages"], "--all"),
        (["messages", "1", "--all"], "--all"),
        (["mock", "--port-file", "no/such/folder/port"], "--port-file"),
        (["mock", "--messages", "many"], "MIN:MAX"),
        (["mock", "--secret-file", "nowhere"], "--secret-file"),
        (["probe", "--max-requests", "0"], "--max-requests"),
        (["probe", "--sample", "-1"], "--sample"),
    ],
    ids=lambda each: " ".join(each)[:60] if isinstance(each, list) else "",
)
def test_what_is_wrong_is_said_in_the_words_of_the_command_line(
    backread, arguments, says, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = backread(*arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.line
    for internal in ("Invalid value", "Input should", "Value error", "base_url", "allow_http "):
        assert internal not in done.line


# --- completion -------------------------------------------------------------------------------


def completed(line: str, shell: str = "bash", **more: str) -> list[str]:
    """What the shell would offer after this line."""
    words = line.split(" ")
    settings = {
        "_BACKREAD_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        **more,
    }
    done = subprocess.run(
        COMMAND, env=os.environ | settings, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def test_commands_options_and_values_are_completed():
    assert {"users", "user"} <= set(completed("backread us"))
    assert "--limit" in completed("backread users --l")
    assert completed("backread users --format ta")[0] == "table"
    assert completed("backread tables chats mess")[0] == "messages"


def test_folders_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("chats", "charts", ".hidden"):
        (tmp_path / name / "inner").mkdir(parents=True)
    (tmp_path / "chapter").touch()
    assert completed("backread show cha")[:2] == ["charts", "chats"]
    assert completed("backread show chats/")[0] == "chats/inner"
    assert ".hidden" not in completed("backread show ")
    assert "".join(completed("backread show no/such/")) == ""
    assert "".join(completed("backread show ~no-such-user/")) == ""


@posix_only
def test_no_folder_is_completed_whose_name_a_shell_would_evaluate(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (
        "a\\$(touch made)", "b$(touch made)", "c\\`touch made`", "d`touch made`", "e;touch made;",
        'f\\";touch made;"', "g\\';touch made;'", "h\ntouch made", "i&touch made", "j>made", "k*",
    ):  # fmt: skip
        (tmp_path / name).mkdir()
    (tmp_path / "été 2024, käse").mkdir()
    for shell in ("bash", "zsh", "fish"):
        given = completed("backread show ", shell, _TYPER_COMPLETE_FISH_ACTION="get-args")
        assert "été 2024, käse" in "".join(given)
        assert "touch" not in "".join(given)
        assert "made" not in "".join(given)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell", "pwsh"])
def test_the_script_of_each_shell_asks_backread(shell):
    settings = {"_BACKREAD_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        COMMAND, env=os.environ | settings, capture_output=True, text=True, timeout=SECONDS
    )
    assert "_BACKREAD_COMPLETE" in done.stdout
    assert f"complete_{'powershell' if shell == 'pwsh' else shell}" in done.stdout


def test_no_bug_is_reported_where_completion_cannot_be_installed(backread, monkeypatch):
    shellingham = pytest.importorskip("shellingham")
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("dash", "/bin/dash"))
    done = backread("--install-completion")
    assert done.code == 1
    assert "Shell dash" in done.out + done.error
    assert "backread: " not in done.error

    def homeless() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("bash", "/bin/bash"))
    monkeypatch.setattr("pathlib.Path.home", homeless)
    done = backread("--install-completion")
    assert (done.code, done.out) == (1, "")
    assert done.line == "backread: the home folder of this user is unknown; set HOME"


# --- the environment of a report --------------------------------------------------------------


def test_json_output_is_never_coloured(backread, server):
    user_id = server.world.user_ids()[0]
    json.loads(backread("--color", "always", "user", user_id).out)
