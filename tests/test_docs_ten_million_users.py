"""docs/explanation/mirror.md has what its script computes from the measured tables."""

import pytest

from documents import Measured

PAGE = Measured("explanation/mirror.md", "ten_million_users")
script = PAGE.fixture()


def test_the_table_is_what_the_script_prints(script, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ten_million_users.py"])
    assert script.main() == 0, "run benches/ten_million_users.py --write"
    [table] = script.tables.between(script.NAME).findall(PAGE.page)
    assert capsys.readouterr().out == table


def test_the_words_are_those_of_the_script(script):
    _, messages = script.USUAL.split(" x ")
    assert f"What {script.USERS:,} users with {messages} messages each mean" in PAGE.text
    assert f"in {script.SWEEPING * 100:g} % of its requests" in PAGE.text
    paces = [f"{allowed:,}" for allowed in script.PACES]
    assert f"{', '.join(paces[:-1])} or {paces[-1]} requests a second" in PAGE.text


def test_the_share_of_sweeps_is_that_of_the_mirror(script):
    from backread.mirror import runs

    assert script.SWEEPING == runs.MOST_SWEEPING


def test_time_is_bound_by_the_service_or_by_cpu(script):
    assert script.bound(7_200, 60) == "2.0 h (the service)"
    assert script.bound(60, 7_200) == "2.0 h (CPU)"
    assert script.nights(100, 100) == "1 night"
    assert script.nights(1_000, 100) == "11 nights"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(90, "2 min"), (7_199, "120 min"), (86_400, "24.0 h"), (1e6, "11.6 days")],
)
def test_durations_have_a_fitting_unit(script, seconds, words):
    assert script.duration(seconds) == words
