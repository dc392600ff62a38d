"""A conversation as text: nothing in it steers the terminal, and long ones are cut."""

import re
from datetime import UTC, datetime

import pytest

from backread.mirror import Conversation
from backread.models import Message
from strangers import HOSTILE, stranger, written


class Printer:
    """IPython's, as far as it is used."""

    def __init__(self) -> None:
        self.said = ""

    def text(self, text: str) -> None:
        self.said += text


def pretty(conversation: Conversation) -> str:
    printer = Printer()
    conversation._repr_pretty_(printer, False)
    return printer.said


def talk(*bodies: str) -> Conversation:
    """Messages by one who is called Ada."""
    ada = stranger("Ada")
    return Conversation(ada, tuple(said(number, body) for number, body in enumerate(bodies)))


def said(number: int, body: str) -> Message:
    message = written(0, "Ada", None, created_at=datetime(2024, 3, 1, 9, number % 60, tzinfo=UTC))
    return Message(**{name: getattr(message, name) for name in message.__slots__} | {"body": body})


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_it_steers_a_terminal(text):
    conversation = Conversation(
        stranger(text), tuple(written(number, text, text) for number in range(8))
    )
    for shown in (str(conversation), repr(conversation), pretty(conversation)):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", shown)


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
    assert len(str(talk("x" * 10**6))) > 10**6


def test_a_slice_is_a_conversation():
    whole = talk("one", "two", "three")
    assert whole[1:] == Conversation(whole.user, whole.messages[1:])
    assert [message.body for message in whole[-1:]] == ["three"]
    assert whole[0].body == "one"
    assert str(whole[:1]).splitlines()[0] == "Ada (user 42), 1 message"
