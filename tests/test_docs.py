"""The pages in docs/ keep their word: each fenced block runs, and each table agrees with the code.

A ``text`` block is what the block before it prints, or what its tests print; how its lines are
broken, and what else is printed, is left out of account.
"""

import http.client
import inspect
import re
import shutil
from collections.abc import Iterator
from dataclasses import fields
from typing import get_args

import pytest

import backread
from backread import Client, pytest_plugin
from backread.models import Certificate, WalkReport
from backread.testing import Dialect, JournalEntry, MockServer, World
from documents import (
    ELSEWHERE,
    ROOT,
    Block,
    Document,
    Outcome,
    enter,
    of_kind,
    run_shell,
    run_tests,
)

PAGES = [Document(page) for page in sorted((ROOT / "docs").glob("**/*.md"))]
# tests/test_docs_tutorial.py runs the tutorial: its blocks build on each other.
BLOCKS = [block for page in PAGES if page.page.stem != "tutorial" for block in page.blocks]

if not PAGES:
    pytest.skip("the wheel check takes no pages along", allow_module_level=True)

pytest_plugins = ["pytester"]

CERTIFICATES = Document(ROOT / "docs/explanation/certificates.md")
TESTING, MOCK = Document(ROOT / "docs/how-to/testing.md"), Document(ROOT / "docs/reference/mock.md")
TEST_FAILURES = Document(ROOT / "docs/how-to/test-failures.md")
TEST_DATA = Document(ROOT / "docs/how-to/test-data.md")
SHARDING = Document(ROOT / "docs/how-to/many-workers.md")
PROBE = Document(ROOT / "docs/how-to/probe.md")
PROFILE = Document(ROOT / "docs/reference/service-profile.md")


def ticked(text: str) -> list[str]:
    """What stands between ticks, in a cell that has lost its outer ones."""
    return re.findall(r"`([^`]+)`", f"`{text}`")


def test_pages_that_say_how_to_install_say_that_it_is_not_on_pypi_yet():
    pages = [*(ROOT / "docs").glob("**/*.md"), *(ROOT / "examples").glob("**/*.md")]
    named = re.compile(r"pip install \"?backread")
    silent = [
        str(page.relative_to(ROOT))
        for page in [*pages, ROOT / "README.md", *(ROOT / "examples").glob("*.py")]
        if named.search(text := page.read_text(encoding="utf-8")) and "not on PyPI yet" not in text
    ]
    assert silent == []


@pytest.fixture(scope="module")
def server() -> Iterator[MockServer]:
    with MockServer(World(seed=7, users=60, messages_per_user=(1, 30))) as running:
        yield running


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_block_has_a_runner(page):
    # tests/test_docs_report.py runs the queries of that page.
    queries = {"sql"} if page.page.stem == "report" else set[str]()
    kinds = {"shell", "mock", "pytest", "python", "output", "json", "toml"}
    page.check(kinds | ELSEWHERE | queries)


@pytest.mark.parametrize("page", [*PAGES, Document(ROOT / "README.md")], ids=str)
def test_links_lead_somewhere(page):
    for target, place in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.text):
        if target.startswith("https://"):
            continue
        other = page.page.parent / target if target else page.page
        assert other.exists(), target
        if place:
            headings = re.findall(r"^#+ (.*)$", other.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^a-z0-9 -]", "", each.lower()) for each in headings]
            assert place in [each.replace(" ", "-") for each in anchors], place


# --- blocks ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """The outcomes of all blocks with tests, by module: one run of pytest for all."""
    folder = tmp_path_factory.mktemp("blocks")
    with pytest.MonkeyPatch.context() as monkeypatch:
        environment = enter(folder, monkeypatch)
        return run_tests(folder, environment, [each for each in BLOCKS if each.kind == "pytest"])


@of_kind(BLOCKS, "pytest")
def test_tests_pass(block, outcomes):
    outcome = outcomes[block.module]
    assert not outcome.problems, "\n".join(outcome.problems)
    assert set(outcome.passed) == set(block.tests)


def after(block: Block) -> Block | None:
    """The output that stands below a block, if any does."""
    following = [each for each in BLOCKS if each.page == block.page and each.line > block.line][:1]
    return next((each for each in following if each.kind == "output"), None)


def agrees(output: Block | None, printed: str) -> bool:
    return output is None or " ".join(output.code.split()) in " ".join(printed.split())


@of_kind(BLOCKS, "pytest")
def test_output_is_what_is_printed(block, outcomes):
    assert agrees(after(block), outcomes[block.module].printed)


@of_kind(BLOCKS, "output")
def test_output_follows_what_prints(block):
    [before] = [each for each in BLOCKS if after(each) == block]
    assert before.kind in ("pytest", "python")


@of_kind(BLOCKS, "python")
def test_python_runs(block, server, tmp_path, monkeypatch, capsys):
    block.require_imports()
    enter(tmp_path, monkeypatch, server)
    block.execute(block.code)
    assert agrees(after(block), capsys.readouterr().out)


@of_kind(BLOCKS, "shell")
def test_shell_runs(block, tmp_path, monkeypatch):
    if "curl" in block.code and shutil.which("curl") is None:
        pytest.skip("not installed: curl")
    written = run_shell(block.code, tmp_path, enter(tmp_path, monkeypatch))
    # Those that read the mock show three rows; the demo has its own output.
    rows = 0 if "backread demo" in block.code else 3
    assert len(re.findall(r'(?:^|})\{"id": \d', written, re.MULTILINE)) == rows


@of_kind(BLOCKS, "json")
def test_json_is_a_profile(block):
    """Of a service with the habits of the mock; its fields are some of those there are."""
    profile = backread.ServiceProfile.from_json(block.code)
    world = World(seed=7, users=200, messages_per_user=(0, 300))
    with MockServer(world) as server, server.client() as client:
        measured = client.probe()
    differing = profile.differs(measured)
    assert [path for path in differing if not path.startswith("fields.")] == []
    for kind, found in profile.fields.items():
        assert found.items() <= measured.fields[kind].items()


def test_exported_rows_are_a_world(server, tmp_path, monkeypatch):
    [block] = [each for each in TEST_DATA.blocks if '"world.jsonl"' in each.code]
    enter(tmp_path, monkeypatch, server)
    block.execute(block.code)
    world = World.from_jsonl("world.jsonl")
    ids = server.world.user_ids()[:50]
    assert world.user_ids() == ids
    assert world.user(ids[0])["name"] == f"User {ids[0]}"
    for user_id in ids:
        for message_id in world.message_ids(user_id):
            served = world.message(user_id, message_id)
            real = server.world.message(user_id, message_id)
            sender = {"id": real["sender"]["id"]}
            assert served == {**real, "body": f"Message {message_id}", "sender": sender}


# --- tables and lists -----------------------------------------------------------------------------


def test_the_certificates_and_their_evidence_are_those_of_a_report():
    assert tuple(CERTIFICATES.table("certificate")) == get_args(Certificate)
    names = [each.name for each in fields(WalkReport)]
    evidence = names[names.index("uncertified_users") + 1 :]
    assert list(CERTIFICATES.table("field")) == evidence


def test_the_fixtures_are_those_of_the_plugin():
    assert sorted(TESTING.table("fixture")) == sorted(pytest_plugin.__all__)


def test_an_async_test_of_anyio_runs_as_the_page_sets_it_up(pytester, monkeypatch):
    for package in ("anyio", "trio"):
        pytest.importorskip(package)
    [fixture] = [each.code for each in TESTING.blocks if "anyio_backend" in each.code]
    pytester.makeconftest(fixture)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.anyio
        async def test_a_user(backread_async_client):
            assert (await backread_async_client.users.get(42)).id == 42
        """
    )
    # conftest.py leaves the plugin out.
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:schemathesis -p no:hypothesispytest")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_fields_of_an_entry_are_named():
    [sentence] = re.findall(r"An entry has (.*?)\.", TESTING.text, re.DOTALL)
    assert re.findall(r"`(\w+)`", sentence) == [each.name for each in fields(JournalEntry)]


RETRIES = 2


@pytest.mark.parametrize("fault", MOCK.table("fault"))
def test_each_fault_is_what_its_row_says(backread_mock, fault):
    outcome, again, _ = MOCK.table("fault")[fault]
    backread_mock.clock.virtual()
    backread_mock.on("users").fail(fault)
    client = backread_mock.client(max_retries=RETRIES)
    if outcome == "the page":
        assert len(client.users.page(limit=99)) == 99
    else:
        with pytest.raises(getattr(backread, outcome)) as caught:
            client.users.page(limit=99)
        assert type(caught.value).__name__ == outcome
    assert backread_mock.calls("users").count == (1 + RETRIES if again == "yes" else 1)


def test_every_argument_of_plan_has_a_row():
    arguments = inspect.signature(backread.plan).parameters.values()
    defaults = {each.name: repr(each.default).replace("'", '"') for each in arguments}
    rows = SHARDING.table("argument of `plan`")
    assert {name: default.strip("`") for name, (default, *_) in rows.items()} == {
        name: default for name, default in defaults.items() if name != "client"
    }


def test_every_finding_has_a_row():
    findings = {each.name for each in fields(backread.ServiceProfile)}
    assert set(PROFILE.table("finding")) == findings - {"backread", "measured_at", "requests"}


def test_what_a_probe_costs_is_what_it_may_send():
    defaults = inspect.signature(Client.probe).parameters
    assert f"at most {defaults['max_requests'].default} of them" in PROBE.text
    assert f"are read, {defaults['sample'].default} by default" in PROBE.text


def test_every_fault_has_a_row():
    from backread.testing import Fault

    makers = [
        name
        for name, value in inspect.getmembers(Fault, inspect.ismethod)
        if not name.startswith("_") and name != "latency_lognormal"
    ]
    assert {fault.partition("(")[0] for fault in MOCK.table("fault")} == set(makers)


def test_the_rules_of_the_table_do_what_they_say(backread_mock):
    conditions = TEST_FAILURES.table("in the text")
    for text, (python, _) in conditions.items():
        backread_mock.clear_faults()
        if text.startswith("x"):
            backread_mock.fault(f"users: status(503) {text}")
        elif "offset" in text:
            backread_mock.fault(f"{text}: status(503)")
        else:
            backread_mock.fault(f"users {text}: status(503)")
        [expected] = backread_mock.faults
        backread_mock.clear_faults()
        call = python if python.startswith("on(") else f'on("users").{python}'
        call = call.replace("fail(...", 'fail("status(503)"')
        if ".fail" not in call:
            call += '.fail("status(503)")'
        eval(f"m.{call}", {"m": backread_mock})
        assert backread_mock.faults == (expected,)


def test_the_switches_are_those_there_are():
    table = MOCK.table("switch")
    assert list(table) == [each.name for each in fields(Dialect)]
    for switch, (values, *bundles) in table.items():
        for bundle, value in zip(("documented", "lenient", "hostile"), bundles, strict=True):
            word = value.strip("`| ")
            assert Dialect(f"{bundle} {switch}={word}") == Dialect(bundle), (bundle, switch)
        with pytest.raises(ValueError, match=switch) as caught:
            Dialect(f"{switch}=?")
        if "," in values:
            assert str(caught.value).endswith("not one of " + ", ".join(ticked(values)))
        else:
            assert f"from {values.split()[0]} to " in str(caught.value)
            assert f"to {values.split()[-1]}," in str(caught.value) or values == "1 or more"


ADMIN = [
    (method, path)
    for first in MOCK.table("request")
    for method, path in (each.split() for each in ticked(first))
]


@pytest.mark.parametrize(("method", "path"), ADMIN)
def test_the_admin_requests_are_there(server, method, path):
    with server.lane(name="NAME"):
        connection = http.client.HTTPConnection("127.0.0.1", server.port)
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        body = None if method in ("GET", "DELETE") else "[]"
        connection.request(method, path, body, headers)
        status = connection.getresponse().status
        connection.close()
    # An empty list is no body that any of them takes.
    assert status == (200 if body is None else 400)


def test_a_mocks_secret_is_for_loopback(server):
    with pytest.raises(backread.ConfigurationError, match="mock"):
        Client("https://chat.example.com", server.secret, server.vendor)


def test_the_arguments_of_the_marker_are_those_it_takes():
    assert set(TESTING.table("`@pytest.mark.backread(...)`")) == set(pytest_plugin.DEFAULTS)
