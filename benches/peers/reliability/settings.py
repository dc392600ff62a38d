"""What a child of `reliability.py` is told, in the environment: no argument list holds a secret."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, repr=False)
class Settings:
    """Where the service is, and how a client is to be made."""

    base_url: str
    timeout: float
    deadline: float
    path: str = "/external/users/42"
    suffix: str = ""
    """Put behind the secret, the agent or the URL, whichever ``into`` names."""
    into: str = ""

    @classmethod
    def told(cls) -> Self:
        """What the environment says."""
        return cls(**json.loads(os.environ["RELIABILITY_SETTINGS"]))

    @property
    def secret(self) -> str:
        """The secret, which is kept nowhere in this process but by the library."""
        return os.environ["RELIABILITY_SECRET"] + self._more("secret")

    @property
    def agent(self) -> str:
        """What requests call themselves."""
        return "bench" + self._more("agent")

    @property
    def url(self) -> str:
        """The address of the user."""
        return self.base_url + self.path

    @property
    def user(self) -> int:
        """The user that is read."""
        return 42

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a client that has no words of its own for them."""
        return {
            "Authorization": f"Bearer {self.secret}",
            "User-Agent": self.agent,
            "Accept": "application/json",
        }

    def _more(self, what: str) -> str:
        return self.suffix if self.into == what else ""
