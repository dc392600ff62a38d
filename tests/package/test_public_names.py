"""What an interactive shell offers: the names of the API, and none of what it is made of."""

import subprocess
import sys

import pytest

import backread
from backread import AsyncClient, Client

HERE = {"base_url": "http://127.0.0.1:1", "api_secret": "mock_s3cret", "vendor": "example"}


def test_dir_has_the_public_names_only():
    assert dir(backread) == sorted(backread.__all__)


def test_an_import_of_everything_brings_the_public_names_only():
    program = (
        "before = {*globals(), 'before'}\n"
        "from backread import *\n"
        "import sys\n"
        "print(sorted({*globals()} - before - {'sys'}) == sorted(sys.modules['backread'].__all__))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("True", "")


@pytest.mark.parametrize("make", [Client, AsyncClient])
@pytest.mark.parametrize(
    "expression", ["client.users.list().", "client.messages.list(42).", "client.messages.all()."]
)
def test_a_listing_is_completed_before_it_is_made(make, expression):
    jedi = pytest.importorskip("jedi")
    offered = jedi.Interpreter(expression, [{"client": make(**HERE)}]).complete()
    names = {each.name for each in offered}
    assert {"pages", "report", "to_arrow", "to_list", "to_pandas", "to_polars"} <= names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import backread\nbackread.", {"Client", "Mirror", "errors", "plan"}),
        ("from backread import Client\nClient().", {"close", "messages", "users"}),
        ("from backread import Client\nClient().messages.list(42).", {"report", "to_list"}),
        ("from backread import Mirror\nMirror('chats').", {"search", "sync"}),
        ("from backread.integrations.airflow import BackreadHook\nBackreadHook.", {"get_conn"}),
    ],
)
def test_an_editor_completes_a_file_that_never_runs(text, expected):
    jedi = pytest.importorskip("jedi")
    assert expected <= {each.name for each in jedi.Script(text).complete()}


def test_an_objects_names_are_those_of_the_api():
    with Client(**HERE) as client:
        for thing, expected in (
            (client.users, ["get", "list", "page"]),
            (client.messages, ["all", "get", "list", "page"]),
            (
                client.users.list(),
                [
                    "count",
                    "first",
                    "pages",
                    "report",
                    "to_arrow",
                    "to_list",
                    "to_pandas",
                    "to_polars",
                ],
            ),
        ):
            assert [name for name in dir(thing) if not name.startswith("_")] == expected


def test_importing_a_client_loads_no_models():
    """Schedulers import a file with a client again and again, and read nothing."""
    code = (
        "import sys; from backread import Client; "
        "print({'dataclasses', 'pathlib', 'backread.models'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("set()\n", "")
