"""docs/reference/world.md keeps its word: its picture and its table are what is served."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from backread.testing import World

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/reference/world.md"
# The wheel check takes the tests along, and nothing else of the checkout.
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="docs are in the checkout only")


def test_the_picture_is_what_the_script_draws(tmp_path):
    drawn = tmp_path / "world.svg"
    script = ROOT / "tools" / "draw_world.py"
    subprocess.run([sys.executable, str(script), str(drawn)], check=True, timeout=120)
    assert drawn.read_bytes() == (ROOT / "docs" / "images" / "world.svg").read_bytes()


def test_the_languages_have_the_weights_of_the_table():
    table = re.findall(r"\b([a-z]{2}) \| (\d+) \|", PAGE.read_text("utf-8"))
    weights = {language: int(weight) for language, weight in table}
    assert (len(weights), sum(weights.values())) == (16, 100)
    world = World(seed=5, users=20_000, messages_per_user=(0, 0))
    urls = (world.user(user_id)["last_url"] or "" for user_id in world.user_ids())
    found = Counter(url.split("/")[3] for url in urls)
    assert found.keys() == weights.keys()
    for language, count in found.items():
        assert count / 200 == pytest.approx(weights[language], abs=1), language


def test_lengths_operators_and_shares_are_as_described():
    world = World(seed=5, users=3_000, messages_per_user=(0, 100))
    lengths = sorted(len(world.message_ids(user_id)) for user_id in world.user_ids())
    assert lengths.count(0) / 3_000 == pytest.approx(0.3, abs=0.03)
    assert lengths[1_500] == pytest.approx(100 / 16, abs=1.5)
    assert sum(lengths) / 3_000 == pytest.approx(20, abs=1.5)
    operators = {}
    marks: Counter[str] = Counter()
    for user_id in world.user_ids()[:400]:
        for message_id in world.message_ids(user_id):
            message: Any = world.message(user_id, message_id)
            marks["messages"] += 1
            marks["files"] += message["file_url"] is not None
            sender = message["sender"]
            if message["sender_type"] == "operator":
                operators[sender["id"]] = sender["picture_thumb_url"]
    assert (len(operators), sum(one is None for one in operators.values())) == (12, 4)
    assert marks["files"] / marks["messages"] == pytest.approx(0.045, abs=0.01)
