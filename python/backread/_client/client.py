"""The synchronous `Client` and the `AsyncClient`, both thin layers over the native module."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, Self

from backread._backread import NativeClient, __version__
from backread._client.arguments import (
    ChangedOptions,
    ClientOptions,
    SharedOptions,
    known_options,
    refuse_options,
    seconds,
)
from backread._client.messages import AsyncMessages, Messages
from backread._client.probe import MOST_REQUESTS, SAMPLE, probe_arguments
from backread._client.secret import SECRET_VARIABLE, without_secret
from backread._client.users import AsyncUsers, Users

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Unpack

    from backread._backread import ArrowStream, Clock, SyncKnown, SyncRun
    from backread._client.arguments import Duration
    from backread.profile import ServiceProfile

__all__ = ["AsyncClient", "Client", "__version__"]

WITHHELD = "withheld: it holds a password"


class _BaseClient:
    """What the sync and async clients share: construction, options, copies."""

    __slots__ = ("__weakref__", "_native", "_options", "_traceparent")

    _native: NativeClient
    _options: dict[str, Any]
    _traceparent: bool

    @known_options
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
        max_response_bytes: int = 64 * 1024 * 1024,
        outage_patience: Duration = 60.0,
        proxy: str | None = None,
        ca_bundle: str | os.PathLike[str] | None = None,
        allow_http: bool = False,
        user_agent: str | None = None,
    ) -> None:
        self._traceparent = False
        try:
            self._options = {
                "timeout": seconds("timeout", timeout),
                "deadline": seconds("deadline", deadline),
                "max_retries": max_retries,
                "max_concurrency": max_concurrency,
                "rate_limit": rate_limit,
                "on_rate_limit": on_rate_limit,
                "max_response_bytes": max_response_bytes,
                "outage_patience": seconds("outage_patience", outage_patience),
                "proxy": WITHHELD if isinstance(proxy, str) and "@" in proxy else proxy,
                "ca_bundle": None if ca_bundle is None else _file("ca_bundle", ca_bundle),
                "allow_http": allow_http,
                "user_agent": user_agent,
            }
            self._native = NativeClient(
                base_url=_given_or_set(base_url, "BACKREAD_BASE_URL"),
                api_secret=_given_or_set(api_secret, SECRET_VARIABLE),
                vendor=_given_or_set(vendor, "BACKREAD_VENDOR"),
                **{**self._options, "proxy": proxy},
            )
        finally:
            # Traceback tools print local variables, and any of these may be a misplaced secret.
            del base_url, api_secret, vendor, timeout, deadline, max_retries, max_concurrency
            del rate_limit, on_rate_limit, max_response_bytes, outage_patience, proxy, ca_bundle
            del allow_http, user_agent

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
            # As in `__init__`.
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
        starts without what this client has learned and ignores its waits.

        Takes timeout, deadline, max_retries, max_concurrency, rate_limit, on_rate_limit,
        max_response_bytes and outage_patience. ``traceparent=True`` propagates the OpenTelemetry
        trace to the service (W3C Trace Context); off by default.

        Raises TypeError for any other option, since connection settings need a new client, and
        ConfigurationError for an invalid value or for traceparent without the package
        opentelemetry-api. Closing either client, or leaving its ``with`` block, closes both.
        """
        changeable = ChangedOptions.__optional_keys__
        options: dict[str, Any] = {}
        try:
            refused = sorted(changes.keys() & (ClientOptions.__optional_keys__ - changeable))
            if refused:
                raise TypeError(
                    f"with_options() cannot change {', '.join(refused)}: the new client shares the "
                    f"connections of this one; make a new {type(self).__name__}"
                )
            if not changes.keys() <= changeable:
                given = [self._native.redacted(without_secret(each)) for each in changes]
                refuse_options("with_options", given, changeable)
            options.update(self._options, **changes)
            traceparent = bool(options.pop("traceparent", self._traceparent))
            if traceparent:
                _need_opentelemetry()
            for name in ("timeout", "deadline", "outage_patience"):
                options[name] = seconds(name, options[name])
            client = object.__new__(type(self))
            client._options = options
            client._traceparent = traceparent
            client._native = self._native.with_options(
                traceparent=traceparent,
                **{name: options[name] for name in SharedOptions.__optional_keys__},
            )
            return client
        finally:
            # As in `__init__`.
            del changes, options

    def _close(self) -> None:
        self._native.close()

    def __repr__(self) -> str:
        # A debugger may show a client whose construction failed.
        if not hasattr(self, "_native"):
            return f"<{type(self).__name__}, not made>"
        return f"{type(self).__name__}(base_url={self.base_url!r}, vendor={self.vendor!r})"

    def __copy__(self) -> Self:
        return self.with_options()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.with_options()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._options["proxy"] is WITHHELD:
            from backread.errors import ConfigurationError

            raise ConfigurationError(
                f"a {type(self).__name__} whose proxy holds a password is not pickled; leave proxy "
                "out and set HTTPS_PROXY in the environment"
            )
        arguments = type(self), self.base_url, self.vendor, self._options, self._traceparent
        return _load, arguments


class Client(_BaseClient):
    """Synchronous client for users and messages; thread-safe.

    - ``base_url``, ``api_secret``, ``vendor``: the service's URL, the API Secret Key and the vendor
      word. ``None`` reads ``BACKREAD_BASE_URL``, ``BACKREAD_API_SECRET``, ``BACKREAD_VENDOR``.
    - ``timeout``: for one attempt; ``deadline``: for a whole call with its retries, waits and
      pages. Seconds or a timedelta; ``None`` for no limit.
    - ``max_retries``: the maximum number of retries of a request after transient failures.
    - ``max_concurrency``: requests in flight; ``rate_limit``: requests per second, ``None`` to
      adapt to what the service can take.
    - ``on_rate_limit``: ``"wait"`` obeys Retry-After up to the deadline; ``"raise"`` raises
      `RateLimitError` at the first 429.
    - ``max_response_bytes``: the largest decoded body, in bytes.
    - ``outage_patience``: how long a call waits while the whole service is down (connection errors,
      502, 503, 504). Meanwhile one request at a time probes the service, without using up retries.
      Seconds or a timedelta; 0 disables it. A sync waits for 600 seconds unless this is changed
      from 60; a mock's client does not wait unless it is changed or the clock is virtual.
    - ``proxy``: the URL of an http or https proxy; ``None`` uses the environment's proxies.
      ``ca_bundle``: a PEM file of CA certificates to trust in addition to the system's and those of
      ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``. ``user_agent``: replaces the default User-Agent.
    - ``allow_http``: allows plain http to other machines and through a proxy on another machine,
      which would see the secret. Loopback is always allowed.

    Raises `ConfigurationError` for a missing or malformed argument; nothing is sent. Pickles
    without the secret, which is read from ``BACKREAD_API_SECRET`` on unpickling. Use it in a
    ``with`` block, or call `close`.
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

    def probe(self, *, max_requests: int = MOST_REQUESTS, sample: int = SAMPLE) -> ServiceProfile:
        """Measures service behaviour that the API does not specify, as a `ServiceProfile`.

        Sends at most ``max_requests`` GETs including retries, one at a time; 30 to 50 are usual.
        Some are unlike those of any other call: a list without ``limit``, and with 0 and 100; one
        with a made-up secret, to the same address; one with another ``Accept``; ids of users and
        messages that do not exist. ``sample`` is the number of users whose messages are examined.
        A 429 is obeyed; rate limit, timeout and deadline apply as to all reads.

        Raises the errors of `backread.errors` if the service cannot be read at all (such as with a
        wrong secret); a single failed measurement is ``None`` in the profile, with the reason in
        its notes. Raises ValueError for a number out of bounds.
        """
        from backread.profile import ServiceProfile

        arguments = probe_arguments(max_requests, sample)
        return ServiceProfile.from_json(self._native.probe(*arguments, True))

    def close(self) -> None:
        """Closes this client and all that share its connections (from `with_options`, ``copy``).

        Leaving a ``with`` block of any of them does the same. Later calls raise `BackreadError`.
        """
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _sync_run(
        self,
        known: SyncKnown,
        *,
        mode: Literal["incremental", "full"],
        max_staleness: float | None,
    ) -> SyncRun:
        return self._native.sync_run(known, mode, max_staleness)

    def _ask_rows(self, candidates: ArrowStream) -> SyncRun:
        return self._native.ask_rows(candidates)


class AsyncClient(_BaseClient):
    """Async client for users and messages; may be used in several event loops, one after another.

    Takes the arguments of `Client`, raises the same errors and behaves the same. Cancelling a task
    ends its request. Use it in an ``async with`` block, or await `aclose`.
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
        self, *, max_requests: int = MOST_REQUESTS, sample: int = SAMPLE
    ) -> ServiceProfile:
        """The async version of `Client.probe`."""
        from backread.profile import ServiceProfile

        arguments = probe_arguments(max_requests, sample)
        return ServiceProfile.from_json(await self._native.probe(*arguments, False))

    async def aclose(self) -> None:
        """Closes this client and all that share its connections (from `with_options`, ``copy``).

        Leaving an ``async with`` block of any of them does the same. Later calls raise
        `BackreadError`.
        """
        self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _file(name: str, path: str | os.PathLike[str]) -> str:
    from backread._files.paths import local_path
    from backread.errors import ConfigurationError

    try:
        return str(local_path(path, "copy it to this machine"))
    except ValueError as error:
        raise ConfigurationError(f"{name}: {error}") from None


def _given_or_set(argument: str | None, variable: str) -> str | None:
    return os.environ.get(variable) if argument is None else argument


def _need_opentelemetry() -> None:
    try:
        import opentelemetry.trace  # noqa: F401
    except ImportError:
        from backread.errors import ConfigurationError

        raise ConfigurationError(
            "traceparent=True needs OpenTelemetry; run: pip install opentelemetry-api"
        ) from None


def _load(
    kind: type[_BaseClient],
    base_url: str,
    vendor: str,
    options: dict[str, Any],
    traceparent: bool = False,
) -> _BaseClient:
    if not os.environ.get(SECRET_VARIABLE):
        from backread.errors import ConfigurationError

        raise ConfigurationError(
            f"a {kind.__name__} was unpickled, and it travels without its secret: "
            f"set {SECRET_VARIABLE} in the environment of this process"
        )
    client = kind(base_url, None, vendor, **options)
    return client.with_options(traceparent=True) if traceparent else client
