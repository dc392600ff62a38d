"""What `--help` shows, what wrong command lines get, and what the shell completes."""

import json
import os
import re
import shlex
import subprocess
from typing import Any

import pytest
import typer

from backread.cli.app import COMMANDS, app
from helpers.command_line import COMMAND, SECONDS, posix_only
from helpers.pseudo_terminal import on_terminal

GROUP: Any = typer.main.get_command(app)
ROWS = {"users", "user", "messages", "message", "search", "show", "runs", "status", "tables"}
ROWS |= {"sql", "changes"}
READ_THE_SERVICE = {"users", "user", "messages", "message", "sync", "files", "probe", "doctor"}


def test_the_commands_are_in_groups(backread, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = backread("--help").out
    assert backread().out == text
    assert [title for title in COMMANDS if title in text] == list(COMMANDS)
    for name in GROUP.commands:
        assert re.search(rf"^│ {name} +[A-Z]", text, re.MULTILINE), name
    assert "backread demo chats" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", GROUP.commands)
def test_each_command_has_examples_that_can_be_typed(backread, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = backread(name, "--help").out
    assert max(map(len, text.splitlines())) <= 80
    lines = [line.strip() for line in text.partition("Examples:")[2].splitlines() if line.strip()]
    assert 1 <= len(lines) <= 4
    for line in lines:
        # As a shell would split it, without what it does itself.
        typed = shlex.split(re.split(r" [|<>#] ", line)[0])
        assert typed[0] == "backread"
        command = GROUP.commands[typed[1]]
        with command.make_context(typed[1], typed[2:], parent=typer.Context(GROUP)):
            pass


def test_the_same_options_are_everywhere():
    """The options of rows, of the connection, and -q and -v."""
    for name, command in GROUP.commands.items():
        flags = {flag for each in command.params for flag in each.opts}
        assert {"-q", "--quiet", "-v", "--verbose"} <= flags
        options = {"--format", "--json", "-o", "--output", "--raw-csv", "--excel"}
        assert (options <= flags) == (name in ROWS), name
        assert ("--base-url" in flags) == (name in READ_THE_SERVICE), name
        documents = {"sync", "files", "doctor", "report", "probe"}
        assert ({"--format", "--json"} <= flags) == (name in ROWS | documents), name


@posix_only
def test_colour_is_a_choice_and_never_in_json(settings, backread):
    def coloured(*arguments: str, **more: Any) -> bool:
        about: dict[str, Any] = {**settings, "TERM": "xterm", "NO_COLOR": ""}
        text = on_terminal(*arguments, "users", "--limit", "1", **(about | more)).text
        assert "created_at" in text
        return "\x1b[1m" in text

    assert coloured()
    assert not coloured(NO_COLOR="1")
    assert not coloured(TERM="dumb")
    assert not coloured("--color", "never")
    assert coloured("--color", "always", NO_COLOR="1")
    json.loads(backread("--color", "always", "users", "--limit", 1).out)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["usrs"], "No such command 'usrs'. Did you mean 'users', 'user'?; see backread --help"),
        (["users", "--fromat", "json"], "No such option: --fromat (Possible options: --format"),
        (["user", "forty-two"], "Invalid value for 'USER_ID': Input should be a valid integer"),
        (["users", "--limit", "0"], "'--limit': Input should be greater than or equal to 1"),
        (["users", "--format", "xml"], "'xml' is not one of 'table', 'json', 'jsonl', 'csv'"),
        (["users", "--json", "--format", "csv"], "--json and --format csv do not agree"),
        (
            ["users", "--timeout", "soon"],
            "for --timeout or BACKREAD_TIMEOUT: it must be a number, or none",
        ),
        (["users", "--max-retries", "-1"], "--max-retries must be 0 or more, not -1"),
        (["search", "x", "y", "--since", "soon"], "'--since': it must be a date or time such as"),
        (["export", "x", "y", "--excel", "--format", "parquet"], "--excel needs the format"),
        (["users", "--base-url", "http://chat.example.com"], "allow_http"),
        (["users", "--secret-file", "nowhere"], "nowhere"),
        (["users", "--output", "no/such/folder/users"], "--output"),
        (["messages", "1", "--all"], "--all"),
        (["mock", "--messages", "many"], "MIN:MAX"),
    ],
    ids=lambda each: " ".join(each)[:60] if isinstance(each, list) else "",
)
def test_a_wrong_command_line_is_one_line_that_names_the_option(
    backread, arguments, says, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    done = backread(*arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.line


# --- completion -----------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """What bash would offer after this line."""
    settings = {
        "_BACKREAD_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
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
    # The shell completes folders itself.
    assert completed("backread show ") == ["", ""]


def test_no_bug_is_reported_where_completion_cannot_be_installed(backread, monkeypatch):
    shellingham = pytest.importorskip("shellingham")
    monkeypatch.setattr(shellingham, "detect_shell", lambda: ("dash", "/bin/dash"))
    done = backread("--install-completion")
    assert done.code == 1
    assert "Shell dash" in done.out + done.error
    assert "backread: " not in done.error
