"""Reads all users and messages of a chat widget service; never writes to it.

`Client` and `AsyncClient` read the API, `Mirror` keeps a local copy, `backread.errors` has the
exceptions and `backread.testing` a fake of the service. Names are imported on first use, which
keeps ``import backread`` cheap.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers treat this name as true; importing typing would dominate the import time. False, but
# not as a literal: jedi, which completes names in many editors, would skip the block below.
TYPE_CHECKING = bool()  # noqa: UP018
if TYPE_CHECKING:
    from typing import Any

    from backread import errors, landing, mirror, models, profile, sharding, testing, typed_dicts
    from backread._client.client import AsyncClient, Client, __version__
    from backread._client.listing import AsyncListing, Listing
    from backread._progress.bar import progress
    from backread.errors import (
        Attempt,
        AuthenticationError,
        BackreadError,
        BadRequestError,
        ConfigurationError,
        ConnectError,
        DeadlineExceededError,
        DecodeError,
        IncompleteError,
        IncompleteWarning,
        LandingError,
        MirrorBusyError,
        MirrorError,
        NotFoundError,
        PermissionDeniedError,
        RateLimitError,
        RequestTimeoutError,
        ResponseTooLargeError,
        ServerError,
        StatusError,
        TransportError,
        TruncatedBodyError,
    )
    from backread.mirror import Mirror, SyncReport
    from backread.models import (
        Message,
        OperatorSender,
        OtherSender,
        Page,
        User,
        UserAttribute,
        UserSender,
        WalkReport,
    )
    from backread.profile import ServiceProfile
    from backread.sharding import Plan, Shard, join_reports, plan
    from backread.typed_dicts import MessageDict, PageDict, UserDict

__all__ = [
    "AsyncClient",
    "AsyncListing",
    "Attempt",
    "AuthenticationError",
    "BackreadError",
    "BadRequestError",
    "Client",
    "ConfigurationError",
    "ConnectError",
    "DeadlineExceededError",
    "DecodeError",
    "IncompleteError",
    "IncompleteWarning",
    "LandingError",
    "Listing",
    "Message",
    "MessageDict",
    "Mirror",
    "MirrorBusyError",
    "MirrorError",
    "NotFoundError",
    "OperatorSender",
    "OtherSender",
    "Page",
    "PageDict",
    "PermissionDeniedError",
    "Plan",
    "RateLimitError",
    "RequestTimeoutError",
    "ResponseTooLargeError",
    "ServerError",
    "ServiceProfile",
    "Shard",
    "StatusError",
    "SyncReport",
    "TransportError",
    "TruncatedBodyError",
    "User",
    "UserAttribute",
    "UserDict",
    "UserSender",
    "WalkReport",
    "__version__",
    "errors",
    "join_reports",
    "landing",
    "mirror",
    "models",
    "plan",
    "profile",
    "progress",
    "sharding",
    "testing",
    "typed_dicts",
]

_MODULES = {
    "errors",
    "landing",
    "mirror",
    "models",
    "profile",
    "sharding",
    "testing",
    "typed_dicts",
}
_NAMES = {
    "_client.client": "AsyncClient Client __version__",
    "_client.listing": "AsyncListing Listing",
    "_progress.bar": "progress",
    "mirror": "Mirror SyncReport",
    "models": "Message OperatorSender OtherSender Page User UserAttribute UserSender WalkReport",
    "profile": "ServiceProfile",
    "sharding": "Plan Shard join_reports plan",
    "typed_dicts": "MessageDict PageDict UserDict",
}
"""The names of each module; all others are in ``errors``."""
_ELSEWHERE = {name: module for module, names in _NAMES.items() for name in names.split()}


# Not for type checkers, which would take it that any name is there.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _MODULES:
            return import_module(f"{__name__}.{name}")
        value = getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'errors')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
