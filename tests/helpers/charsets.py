"""A service whose text may not be UTF-8."""

import json
from collections.abc import Callable

from helpers.api_rows import envelope, message, user
from helpers.scripted_server import Request, answer

NAME = "Zo\xeb M\xfcller"
LOST = "Zo\ufffd M\ufffdller"


def service(content_type: str, encoding: str = "iso-8859-1") -> Callable[[Request], bytes]:
    """Answers with a user of that name, and a message with it as its body."""

    def respond(request: Request) -> bytes:
        row = message(10, body=NAME) if "messages" in request.path else user(1, name=NAME)
        *_, last = request.path.split("/")
        body = envelope([row], key=last) if last in ("users", "messages") else row
        text = json.dumps(body, ensure_ascii=False)
        return answer(200, text.encode(encoding), content_type=content_type)

    return respond
