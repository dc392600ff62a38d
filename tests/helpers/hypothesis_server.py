"""A server for tests of many answers by hypothesis, and the settings of those tests."""

from hypothesis import settings

from backread import Client
from helpers.scripted_server import Request, ScriptedServer

settings.register_profile("backread", deadline=None, derandomize=True, database=None)
settings.load_profile("backread")


class RepeatingServer:
    """A server that answers what it is told to, and a client of it."""

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.sent = 0
        self.server = ScriptedServer(self._next)
        self.client = Client(
            self.server.url, self.server.secret, self.server.vendor, max_retries=0, timeout=20
        )

    def play(self, *answers: bytes) -> Client:
        """The last one is repeated for ever."""
        self.answers, self.sent = list(answers), 0
        return self.client

    def close(self) -> None:
        self.client.close()
        self.server.close()

    def _next(self, request: Request) -> bytes:
        self.sent += 1
        return self.answers[min(self.sent, len(self.answers)) - 1]
