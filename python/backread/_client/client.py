"""The synchronous `Client` and the `AsyncClient`, both thin layers over the native module."""

from __future__ import annotations

import os
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast

from backread._backread import NativeClient, __version__
from backread._client.arguments import (
    PROBE_REQUESTS,
    PROBE_SAMPLE,
    known_options,
    probe_arguments,
    refuse_options,
)
from backread._client.options import (
    ARGUMENTS,
    ChangedOptions,
    ClientOptions,
    Files,
    Service,
    SharedOptions,
)
from backread._client.resources import AsyncMessages, AsyncUsers, Messages, Users
from backread._client.secret import (
    HEADERS_VARIABLE,
    SECRET_VARIABLE,
    headers_for,
    read_secret_file,
    redact_secret,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

    from backread._backread import (
        ArrowStream,
        Clock,
        Downloads,
        SyncKnown,
        SyncLimits,
        SyncOptions,
        SyncRun,
    )
    from backread._client.option_kinds import Duration
    from backread._client.services import NamedService
    from backread.profile import ServiceProfile

__all__ = ["AsyncClient", "Client", "__version__"]

__tracebackhide__ = True

WITHHELD = "withheld: it holds a password"

DEFAULTS = {name: option.default for name, option in ARGUMENTS.items()}

F = TypeVar("F", bound="Callable[..., None]")


def _sets_up(declaration: F) -> F:
    """Turns an ``__init__`` that only declares its arguments into one that calls ``_set_up``.

    It passes them as one dict, which is deleted if the call fails: traceback tools print local
    variables, and one of these is the secret.
    """
    check = known_options(declaration)
    names = tuple(Service.__annotations__)

    @wraps(declaration)
    def init(self: _BaseClient, *args: Any, **options: Any) -> None:
        try:
            check(self, *args, **options)
            self._set_up({**dict(zip(names, args, strict=False)), **options})
        finally:
            del args, options

    return cast("F", init)


class _BaseClient:
    """What the sync and async clients share: construction, options, copies."""

    __slots__ = ("__weakref__", "_native", "_options", "_secret_source", "_traceparent")

    _native: NativeClient
    _options: dict[str, Any]
    _secret_source: Files
    """Where an unpickled client finds its secret; empty for the environment."""
    _traceparent: bool

    @_sets_up
    def __init__(
        self,
        base_url: str | None = None,
        api_secret: str | None = None,
        vendor: str | None = None,
        *,
        timeout: Duration | None = 30.0,
        deadline: Duration | None = None,
        max_retries: int = 5,
        max_concurrency: int = 16,
        rate_limit: float | None = None,
        on_rate_limit: Literal["wait", "raise"] = "wait",
        max_response_bytes: int = 67_108_864,
        outage_patience: Duration = 60.0,
        proxy: str | None = None,
        ca_bundle: str | os.PathLike[str] | None = None,
        allow_http: bool = False,
        user_agent: str | None = None,
        headers: Mapping[str, str] | None = None,
        service: str | None = None,
        api_secret_file: str | os.PathLike[str] | None = None,
    ) -> None: ...

    def _set_up(self, arguments: dict[str, Any]) -> None:
        try:
            for name in arguments:
                arguments[name] = ARGUMENTS[name].kind.check(name, arguments[name])
            named = self._add_from_files(arguments)
            arguments = {**DEFAULTS, **arguments}
            self._traceparent = False
            self._options = {name: arguments[name] for name in ClientOptions.__annotations__}
            if "@" in (arguments["proxy"] or ""):
                self._options["proxy"] = WITHHELD
            for name in Service.__annotations__:
                if arguments[name] is None:
                    arguments[name] = os.environ.get(f"BACKREAD_{name.upper()}")
            given = arguments["headers"] is not None
            if not given:
                arguments["headers"] = headers_for(arguments["base_url"])
            if arguments["ca_bundle"] is not None:
                # A file's name may be bytes that are no text.
                arguments["ca_bundle"] = os.fsencode(arguments["ca_bundle"])
            try:
                self._native = NativeClient(arguments)
            except ValueError as error:
                if not given and str(error).startswith("headers:"):
                    text = str(error).replace("headers", HEADERS_VARIABLE, 1)
                    raise type(error)(text) from None
                if named is None:
                    raise
                raise type(error)(f"{named}: {error}") from None
        finally:
            # Traceback tools print local variables, and any of these may be a misplaced secret.
            del arguments

    def _add_from_files(self, given: dict[str, Any]) -> NamedService | None:
        """Adds the secret of ``api_secret_file`` and what the named service sets."""
        try:
            for name in Service.__annotations__:
                if given.get(name, name) is None:
                    del given[name]
            service, file = given.pop("service", None), given.pop("api_secret_file", None)
            self._secret_source = {}
            if file is not None:
                if "api_secret" in given:
                    from backread.errors import ConfigurationError

                    raise ConfigurationError(
                        "api_secret and api_secret_file are both given; leave one out"
                    )
                self._secret_source = {"api_secret_file": os.path.abspath(file)}  # noqa: PTH100
                given["api_secret"] = read_secret_file(file, "api_secret_file")
            if service is None:
                return None
            from backread._client.services import find_service

            named = find_service(service)
            for name, value in named.options.items():
                given.setdefault(name, value)
            if "api_secret" not in given:
                given["api_secret"] = named.secret_for(given["base_url"])
            self._secret_source = self._secret_source or {"service": service}
            return named
        finally:
            # As in `_set_up`.
            del given

    @classmethod
    def _on_clock(
        cls,
        clock: Clock,
        base_url: str,
        api_secret: str,
        vendor: str,
        **options: Unpack[ClientOptions],
    ) -> Self:
        """A client whose waits, timeouts and reports use ``clock``; mock lanes create these.

        Copies and `with_options` keep the clock. Unpickled clients and those in a forked child use
        the system clock, because a clock cannot leave its process.
        """
        try:
            client = cls(base_url, api_secret, vendor, **options)
        finally:
            # As in `_set_up`.
            del api_secret, base_url, options
        client._native = client._native.on_clock(clock)
        return client

    @property
    def base_url(self) -> str:
        """The service's URL, to which all API paths are relative."""
        return self._native.base_url

    @property
    def vendor(self) -> str:
        """The vendor word in the media type of requests."""
        return self._native.vendor

    def with_options(self, **changes: Unpack[ChangedOptions]) -> Self:
        """A client with these options changed, sharing connections and rate control with this one.

        Changing max_concurrency or rate_limit gives the new client separate rate control, which
        starts without what this client has learned and ignores its waits. Closing either client, or
        leaving its ``with`` block, closes both.

        Args:
            changes: Any of the options of `Client` from timeout to outage_patience; those of the
                connections need a new client. ``traceparent=True`` propagates the OpenTelemetry
                trace to the service (W3C Trace Context); off by default.

        Raises:
            TypeError: For any other option.
            ConfigurationError: If a value is invalid, or for traceparent if the package
                opentelemetry-api is not installed.

        Example:
            >>> patient = client.with_options(timeout=120, deadline=timedelta(hours=1))
        """
        changeable = ChangedOptions.__optional_keys__
        options: dict[str, Any] = {}
        try:
            refused = sorted(changes.keys() & (ARGUMENTS.keys() - changeable))
            if refused:
                raise TypeError(
                    f"with_options() cannot change {', '.join(refused)}: the new client shares the "
                    f"connections of this one; make a new {type(self).__name__}"
                )
            if not changes.keys() <= changeable:
                given = [self._native.redacted(redact_secret(each)) for each in changes]
                refuse_options("with_options", given, changeable)
            options.update(self._options, **changes)
            traceparent = bool(options.pop("traceparent", self._traceparent))
            if traceparent:
                _need_opentelemetry()
            for name in SharedOptions.__annotations__:
                options[name] = ARGUMENTS[name].kind.check(name, options[name])
            client = object.__new__(type(self))
            if hasattr(self, "__dict__"):
                client.__dict__.update(self.__dict__)
            client._options = options
            client._secret_source = self._secret_source
            client._traceparent = traceparent
            client._native = self._native.with_options(options, traceparent)
            return client
        finally:
            # As in `_set_up`.
            del changes, options

    def __repr__(self) -> str:
        # A debugger may show a client whose construction failed.
        if not hasattr(self, "_native"):
            return f"<{type(self).__name__}, not made>"
        return f"{type(self).__name__}(base_url={self.base_url!r}, vendor={self.vendor!r})"

    def __copy__(self) -> Self:
        return self.with_options()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        from copy import deepcopy

        client = memo[id(self)] = self.with_options()
        if (attributes := self.__getstate__()) is not None:
            client.__dict__.update(deepcopy(attributes, memo))
        return client

    def __getstate__(self) -> Any:
        # What a subclass has added. `_load` makes the rest anew.
        return getattr(self, "__dict__", None) or None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._options["proxy"] is WITHHELD:
            from backread.errors import ConfigurationError

            raise ConfigurationError(
                f"a {type(self).__name__} whose proxy holds a password is not pickled; leave proxy "
                "out and set HTTPS_PROXY in the environment"
            )
        options = {**self._options, **self._secret_source}
        arguments = type(self), self.base_url, self.vendor, options, self._traceparent
        return _load, arguments, self.__getstate__()


class Client(_BaseClient):
    """Synchronous client for users and messages; thread-safe.

    Durations are seconds or a ``timedelta``.

    Args:
        base_url: The service's URL; ``None`` means the value of ``BACKREAD_BASE_URL``.
        api_secret: The API Secret Key; ``None`` means the value of ``BACKREAD_API_SECRET``.
        vendor: The vendor word in the service's media type, ``application/vnd.VENDOR.v1+json``;
            ``None`` means the value of ``BACKREAD_VENDOR``.
        timeout: Seconds that one attempt may take; ``None`` means no limit.
        deadline: Seconds that a whole call may take, with its retries, waits and pages; ``None``
            means no limit.
        max_retries: The most retries of a request after transient failures.
        max_concurrency: The most requests in flight.
        rate_limit: The most requests per second; ``None`` means as many as the service can take.
        on_rate_limit: What to do on a 429: ``wait`` obeys Retry-After up to the deadline, ``raise``
            raises ``RateLimitError`` at once.
        max_response_bytes: The largest response in bytes, decompressed.
        outage_patience: Seconds to wait while the whole service is down, once it answered (0: do
            not wait); a sync waits 600 unless this is changed.
        proxy: The URL of an http or https proxy, with its user name and password if it needs them;
            ``None`` means the environment's: ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY``,
            ``NO_PROXY``.
        ca_bundle: A PEM file of CA certificates to trust in addition to the system's.
        allow_http: Allows plain http to other machines and to proxies on other machines, which
            shows the secret on the way; loopback is always allowed.
        user_agent: The User-Agent header; ``None`` means ``backread/VERSION``.
        headers: More headers for each request, such as a gateway's key; their values are secrets,
            which are not pickled, and stay out of reprs, logs and errors; ``None`` means the JSON
            object in ``BACKREAD_HEADERS``, for the service of ``BACKREAD_BASE_URL``.
        service: The name of a service in the config file: its settings apply where no argument is
            given, and no ``BACKREAD_`` setting of the environment does.
        api_secret_file: A file that holds the API Secret Key and nothing else, instead of
            ``api_secret``.

    Raises:
        ConfigurationError: If an argument is missing or malformed, or a file cannot be used, before
            anything is sent.
        TypeError: If an argument has another type, or there is no such argument.

    Arguments win over the settings of ``service``. The secret of a service goes to the origin of
    its own ``base_url`` only: with another one, pass ``api_secret`` or ``api_secret_file`` too.

    Use it in a ``with`` block, or call `close`. It pickles without the secret, which is read again
    on unpickling: from ``api_secret_file``, else from the file of ``service``, else from
    ``BACKREAD_API_SECRET``. The attributes that a subclass has added are pickled too; a subclass
    whose attributes do not pickle, such as a lock, defines ``__getstate__``.

    Example:
        >>> with Client() as client:  # BACKREAD_BASE_URL, BACKREAD_API_SECRET, BACKREAD_VENDOR
        ...     for user in client.users.list():
        ...         print(user.name)
    """

    __slots__ = ()

    @property
    def users(self) -> Users:
        """The users: ``list``, ``page``, ``get``."""
        return Users(self)

    @property
    def messages(self) -> Messages:
        """The messages: ``list``, ``all``, ``page``, ``get``."""
        return Messages(self)

    def probe(
        self, *, max_requests: int = PROBE_REQUESTS, sample: int = PROBE_SAMPLE
    ) -> ServiceProfile:
        """Measures service behaviour that the API does not specify, as a `ServiceProfile`.

        Sends one GET at a time, usually 30 to 50. Some are unlike those of any other call: a list
        without ``limit``, and with 0 and 100; one with a made-up secret, to the same address; one
        with another ``Accept``; ids of users and messages that do not exist. A 429 is obeyed; rate
        limit, timeout and deadline apply as to all reads.

        A single failed measurement is ``None`` in the profile, with the reason in its notes.

        Args:
            max_requests: The most requests, including retries.
            sample: The number of users whose messages are examined.

        Raises:
            BackreadError: If the service cannot be read at all, such as with a wrong secret.
            ValueError: If a number is out of bounds.
        """
        from backread.profile import ServiceProfile

        arguments = probe_arguments(max_requests, sample)
        return ServiceProfile.from_dict(self._native.probe(*arguments, True))

    def close(self) -> None:
        """Closes this client and all that share its connections (from `with_options`, ``copy``).

        Leaving a ``with`` block of any of them does the same. Later calls raise `BackreadError`.
        """
        self._native.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _secret_mark(self, key: bytes) -> str:
        return self._native.secret_mark(key)

    def _sync_run(self, known: SyncKnown, **options: Unpack[SyncOptions]) -> SyncRun:
        return self._native.sync_run(known, options, options)

    def _ask_rows(self, candidates: ArrowStream, **limits: Unpack[SyncLimits]) -> SyncRun:
        limits.setdefault("max_requests", None)
        return self._native.ask_rows(candidates, limits)

    def _downloads(
        self, links: list[tuple[str, str]], max_file_bytes: int, max_bytes: int | None
    ) -> Downloads:
        return self._native.downloads(links, max_file_bytes, max_bytes)


class AsyncClient(_BaseClient):
    """Async client for users and messages; may be used in several event loops, one after another.

    Takes the arguments of `Client`, raises the same errors and behaves the same. Cancelling a task
    ends its request. Use it in an ``async with`` block, or await `aclose`.

    Example:
        >>> async with AsyncClient() as client:
        ...     user = await client.users.get(42)
    """

    __slots__ = ()

    @property
    def users(self) -> AsyncUsers:
        """The users: ``list``, ``page``, ``get``."""
        return AsyncUsers(self)

    @property
    def messages(self) -> AsyncMessages:
        """The messages: ``list``, ``all``, ``page``, ``get``."""
        return AsyncMessages(self)

    async def probe(
        self, *, max_requests: int = PROBE_REQUESTS, sample: int = PROBE_SAMPLE
    ) -> ServiceProfile:
        """The async version of `Client.probe`."""
        from backread.profile import ServiceProfile

        arguments = probe_arguments(max_requests, sample)
        return ServiceProfile.from_dict(await self._native.probe(*arguments, False))

    async def aclose(self) -> None:
        """Closes this client and all that share its connections (from `with_options`, ``copy``).

        Leaving an ``async with`` block of any of them does the same. Later calls raise
        `BackreadError`.
        """
        self._native.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _need_opentelemetry() -> None:
    try:
        import opentelemetry.trace  # noqa: F401
    except ImportError:
        from backread.errors import ConfigurationError

        raise ConfigurationError(
            "traceparent=True needs OpenTelemetry; run: pip install opentelemetry-api"
        ) from None
    # The native module imports this by name; PyInstaller finds only what Python code imports.
    import backread._client.telemetry  # noqa: F401


def _load(
    kind: type[_BaseClient],
    base_url: str,
    vendor: str,
    options: dict[str, Any],
    traceparent: bool = False,
) -> _BaseClient:
    if not (options.keys() & Files.__annotations__ or os.environ.get(SECRET_VARIABLE)):
        from backread.errors import ConfigurationError

        raise ConfigurationError(
            f"a {kind.__name__} was unpickled, and it travels without its secret: "
            f"set {SECRET_VARIABLE} in the environment of this process"
        )
    client = object.__new__(kind)
    # A subclass's __init__ may take other arguments; its attributes are in the pickle.
    _BaseClient.__init__(client, base_url, None, vendor, **options)
    return client.with_options(traceparent=True) if traceparent else client
