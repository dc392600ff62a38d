"""What strangers may write into names and messages, and the users and messages of `browse`."""

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from typing import Any

from backread.models import Message, OperatorSender, OtherSender, User, UserAttribute, UserSender

HOSTILE = (
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    '"><svg onload="window.hit = 1">',
    "</style><style>*{display:none}</style><iframe srcdoc='<script>parent.hit=1</script>'>",
    "<!--", "-->", "<![CDATA[", "&lt;b&gt;", "{{7*7}}", "${7*7}", "javascript:window.hit=1",
    "\x1b[2J\x1b]0;title\x07", "\x9b31m", "\r\x08\x00\x7f", "one\ntwo\u2028three",
    "\u202eright to left\u2066", "مرحبا", "שלום", "日本語", "👩🏽‍🚀", "w" * 700, "z\u0335" * 40,
)  # fmt: skip

ADDRESSES = (
    "https://files.example.com/a%20b.pdf?x=1&y=2#z",
    "HTTP://files.example.com:8080/",
    "javascript:window.hit=1", "JaVaScRiPt:window.hit=1", " javascript:window.hit=1",
    "java\tscript:window.hit=1", "data:text/html,<script>window.hit=1</script>", "vbscript:x",
    "file:///etc/passwd", "//files.example.com/x", "\\\\files.example.com\\x", "https:///x",
    "https://good.example.com@files.example.com/", "https://user:word@files.example.com/",
    "https://files.example.com\\@good.example.com/", "https://[::1/", "https://files.example.com/\n",
    'https://files.example.com/" onmouseover="window.hit=1', "https://files.example.com/\u202egpj.exe",
    "https://xn--files\u2044.example.com/", "ftp://files.example.com/", "https:files.example.com",
    "https://files.example.com/%E2%80%AEgpj.exe", "https://files.example.com/<b>", "", "x" * 9000,
)  # fmt: skip

TAGS = {
    "a", "b", "bdi", "caption", "code", "details", "div", "progress", "span", "style", "summary",
    "table", "tbody", "td", "th", "thead", "time", "tr",
}  # fmt: skip
ATTRIBUTES = {
    "aria-label", "class", "datetime", "dir", "href", "max", "rel", "role", "scope", "tabindex",
    "target", "title", "value",
}  # fmt: skip


class ParsedHtml(HTMLParser):
    """The elements, links and text of what was drawn."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str | None]] = {}
        self.other: list[str] = []
        self.depth = 0
        self.text = ""
        self._style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.depth += 1
        self._style = tag == "style"
        for name, value in attributes:
            self.attributes.setdefault(name, set()).add(value)

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1
        self._style = False

    def handle_data(self, data: str) -> None:
        if not self._style:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.other.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment

    @property
    def links(self) -> set[str | None]:
        """Where its links lead."""
        return self.attributes.get("href", set())


def check(html: str) -> ParsedHtml:
    """Fails where anything but the house's own elements and attributes was drawn."""
    drawn = ParsedHtml(html)
    assert drawn.tags <= TAGS
    assert set(drawn.attributes) <= ATTRIBUTES
    assert drawn.other == []
    assert drawn.depth == 0
    assert all(link and link.lower().startswith(("http://", "https://")) for link in drawn.links)
    return drawn


def stranger(text: str, address: str | None = None) -> User:
    """A user all of whose fields say the same."""
    return User(
        42, text, text, text, None, None, None, address or text,
        (UserAttribute(text, text, {text: [text]}),), {text: {text: text}},
    )  # fmt: skip


def written(number: int, text: str, address: str | None = None, **changes: Any) -> Message:
    """A message all of whose texts say the same; the number says who wrote it."""
    sender, kind = (
        (UserSender(42, text, text, {text: text}), "user"),
        (OperatorSender(7, text, text, text, address or text, {text: text}), "operator"),
        (OtherSender(text, None, {"name": text, text: text}), text),
        (None, None),
    )[number % 4]
    fields: dict[str, Any] = {
        "read_by_user": number % 3 == 0,
        "read_by_operator": number % 3 == 1,
        "created_at": datetime(2024, 3, 1 + number // 20 % 28, 9, number % 60, tzinfo=UTC),
        "file_url": address,
        "auto_invitation": number % 5 == 4,
        **changes,
    }
    return Message(
        id=number, body=text, sender_type=kind, sender=sender, user_id=42,
        extra={text: text}, **fields,
    )  # fmt: skip


START = datetime(2024, 3, 1, 12, tzinfo=UTC)


def message(user_id: int, number: int, body: str, **fields: Any) -> dict[str, Any]:
    return {
        "user_id": user_id,
        "id": number,
        "body": body,
        "created_at": START + timedelta(hours=number),
        "sender_type": "user",
        "sender_id": user_id,
        "sender_name": "Ada",
        "read_by_operator": True,
        "read_by_user": True,
    } | fields
