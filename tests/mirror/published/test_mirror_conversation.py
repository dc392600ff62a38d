"""A conversation as text: nothing in it steers the terminal, and long ones are cut."""

import base64
import hashlib
import re
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace

import pytest

from backread import MirrorError
from backread.mirror import Conversation
from backread.models import Message
from helpers.hostile_text import HOSTILE, stranger, written
from helpers.mirrors import BatchSource, batch


def pretty(conversation: Conversation) -> str:
    """What IPython shows."""
    texts: list[str] = []
    conversation._repr_pretty_(SimpleNamespace(text=texts.append), False)
    return "".join(texts)


def talk(*bodies: str) -> Conversation:
    """Messages by one who is called Ada."""
    ada = stranger("Ada")
    return Conversation(ada, tuple(said(number, body) for number, body in enumerate(bodies)))


def said(number: int, body: str) -> Message:
    message = written(0, "Ada", None, created_at=datetime(2024, 3, 1, 9, number % 60, tzinfo=UTC))
    return Message(**{name: getattr(message, name) for name in message.__slots__} | {"body": body})


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_it_steers_a_terminal_or_is_a_strangers_markup(text):
    conversation = Conversation(
        stranger(text), tuple(written(each, text, text) for each in range(8))
    )
    for shown in (str(conversation), repr(conversation), pretty(conversation)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", shown)
    html = conversation.to_html()
    assert {*re.findall(r"<([a-zA-Z][\w-]*)", html)} <= {
        "html", "head", "meta", "title", "style", "body", "main", "div", "h1", "bdi", "span",
        "time", "a",
    }  # fmt: skip
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", html)


def test_what_stood_there_is_shown():
    assert str(talk("\x1b[31mred\r\nnext\ttab")).splitlines() == [
        "Ada (user 42), 1 message",
        "2024-03-01 09:00  Ada: ␛[31mred",
        "                  next\ttab",
    ]


def test_nobody_writes_a_line_of_somebody_else():
    forged = "2024-03-01 09:59  Support: send me your password"
    name = f"Ada\n{forged}"
    for conversation in (
        talk(f"hello\n{forged}"),
        talk(f"hello\u2028{forged}"),
        Conversation(stranger(name), (written(0, name, name),)),
    ):
        assert forged not in str(conversation).splitlines()


def test_a_long_one_is_cut_where_it_is_only_looked_at():
    long = talk(*(f"number {number}" for number in range(10_000)))
    assert repr(long) == "<Conversation of user 42, 10,000 messages>"
    lines = pretty(long).splitlines()
    assert len(lines) == 42
    assert lines[0] == "Ada (user 42), 10,000 messages"
    assert "9,960 earlier messages" in lines[1]
    assert lines[-1].endswith("number 9999")
    assert len(str(long).splitlines()) == 10_001
    assert len(pretty(talk("x" * 10**6))) < 10_000


def test_a_slice_is_a_conversation():
    whole = talk("one", "two", "three")
    assert whole[1:] == Conversation(whole.user, whole.messages[1:])
    assert [message.body for message in whole[-1:]] == ["three"]
    assert whole[0].body == "one"
    assert str(whole[:1]).splitlines()[0] == "Ada (user 42), 1 message"


def test_a_saved_document_holds_all_messages_whole_and_allows_only_its_own_styles():
    html = talk(*(f"number {number}" for number in range(300)), "y" * 10_000).to_html()
    assert html.count('class="br-bubble"') == 301
    assert "y" * 10_000 in html
    assert "<title>Ada (user 42)</title>" in html
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    styles = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    for style in styles:
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy[1]
    assert (len(styles), " style=" in html) == (2, False)


def test_save_writes_html_and_text(tmp_path):
    conversation = talk("one", "two")
    page, text = tmp_path / "ada.html", tmp_path / "ada.TXT"
    assert conversation.save(page) == page
    assert page.read_text(encoding="utf-8") == conversation.to_html()
    conversation.save(text)
    assert text.read_text(encoding="utf-8") == f"{conversation}\n"


def test_save_refuses_what_it_cannot_write(tmp_path):
    conversation = talk("one")
    with pytest.raises(ValueError, match=r"must end in \.html or \.txt"):
        conversation.save(tmp_path / "ada.pdf")
    with pytest.raises(ValueError, match=r"s3://chats/ada\.html is not a local path"):
        conversation.save("s3://chats/ada.html")
    with pytest.raises(MirrorError, match="cannot be written: No such file or directory; choose"):
        conversation.save(tmp_path / "missing" / "ada.html")
    assert list(tmp_path.iterdir()) == []


def test_a_number_of_more_digits_than_python_takes_is_a_decimal(mirror):
    digits = "9" * 5_000
    message = {"user_id": 1, "id": 5, "extra": f'{{"n":{digits},"m":7}}'}
    BatchSource(batch([{"id": 1}], [message], swept="snapshot")).sync_into(mirror.folder)
    [read] = mirror.conversation(1)
    assert read.extra == {"n": Decimal(digits), "m": 7}
