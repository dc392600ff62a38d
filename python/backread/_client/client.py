"""The clients: `Client` waits, `AsyncClient` awaits; the native module does the work of both."""

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
    """Construction, options, copies: what has nothing to do with waiting or awaiting."""

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
            # Tools that print a traceback print the local variables of its frames, and any of these
            # may be the secret in the wrong place.
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
        """A client whose waits, timeouts and reports go by ``clock``: what a mock's lane makes.

        Its copies and `with_options` keep the clock. One that was pickled, and one in a forked
        child, go by the machine's time: a clock does not leave its process.
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
        """Where the service is; the paths of the interface are relative to it."""
        return self._native.base_url

    @property
    def vendor(self) -> str:
        """The vendor word of the media type."""
        return self._native.vendor

    def with_options(self, **changes: Unpack[ChangedOptions]) -> Self:
        """A client with these options changed, which shares connections and pace with this one.

        One with another max_concurrency or rate_limit has a pace of its own, which knows nothing of
        what this one has learned or waits for.

        Takes timeout, deadline, max_retries, max_concurrency, rate_limit, on_rate_limit,
        max_response_bytes and outage_patience. With ``traceparent=True`` requests also tell the
        service which OpenTelemetry trace they belong to (W3C Trace Context); not by default.

        TypeError for any other: what belongs to the connections needs a new client.
        ConfigurationError for a value that makes no sense, and for traceparent without the package
        opentelemetry-api. Closing either client closes both, and so does leaving a ``with`` block
        of either.
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
        # A debugger shows a client whose construction failed, too.
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
    """Reads users and messages, and waits for each answer; safe to use from many threads.

    - ``base_url``, ``api_secret``, ``vendor``: where the service is, the API Secret Key and the
      vendor word. What is ``None`` comes from ``BACKREAD_BASE_URL``,
      ``BACKREAD_API_SECRET``, ``BACKREAD_VENDOR``.
    - ``timeout``: for one attempt; ``deadline``: for a whole call with its retries, waits and
      pages. Seconds or a timedelta; ``None`` for no bound.
    - ``max_retries``: how often a request is sent once more after a failure that may pass.
    - ``max_concurrency``: requests in flight; ``rate_limit``: requests per second, ``None`` for
      what the service bears.
    - ``on_rate_limit``: ``"wait"`` obeys Retry-After up to the deadline; ``"raise"`` raises
      `RateLimitError` at the first 429.
    - ``max_response_bytes``: the largest decoded body, in bytes.
    - ``outage_patience``: how long a call waits while the whole service is down (connection errors,
      502, 503, 504), in which time one request at a time probes and no retries are used up. Seconds
      or a timedelta; 0 disables it. A sync waits for 600 seconds unless this is changed from 60,
      and a client of a mock does not wait at all unless it is changed, or the clock is virtual.
    - ``proxy``: the URL of an http or https proxy; ``None`` takes those of the environment.
      ``ca_bundle``: a PEM file of certificates to trust besides the system's, and besides those of
      ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``. ``user_agent``: replaces ours.
    - ``allow_http``: plain http is refused except to this machine, unless this is true; by a proxy
      on another machine too, which would see the secret.

    Raises `ConfigurationError` where one of them is missing or malformed; nothing is sent. Pickles
    without its secret, which is taken from ``BACKREAD_API_SECRET`` where it is loaded. Use it in a
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
        """Measures what the interface leaves open about the service, as a `ServiceProfile`.

        Sends at most ``max_requests`` GETs (retries among them), one after another; 30 to 50 are
        usual. Some are what no other call sends: a list without ``limit``, and with 0 and
        100; one with a made-up secret, to the same address; one with another ``Accept``; ids that
        no user and no message has. ``sample`` is the number of users whose messages are looked at.
        A 429 is obeyed; pace, timeout and deadline are those of all reads.

        Raises the errors of `backread.errors` where the service cannot be read at all (as with a
        wrong secret); what fails alone is ``None`` in the profile, with the reason in its notes.
        ValueError where a number is out of bounds.
        """
        from backread.profile import ServiceProfile

        arguments = probe_arguments(max_requests, sample)
        return ServiceProfile.from_json(self._native.probe(*arguments, True))

    def close(self) -> None:
        """Closes this client and all that share its connections: `with_options`, ``copy``.

        The end of a ``with`` block does the same, also of one on such a copy. A call after that
        raises a `BackreadError` that says so.
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
    """Reads users and messages, and each answer is awaited; one serves many event loops in turn.

    Takes the arguments of `Client`, and raises the same errors; all that is said there holds.
    A cancelled task ends its request. Use it in an ``async with`` block, or await `aclose`.
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
        """Measures what the interface leaves open, awaited. All else as `Client.probe`."""
        from backread.profile import ServiceProfile

        arguments = probe_arguments(max_requests, sample)
        return ServiceProfile.from_json(await self._native.probe(*arguments, False))

    async def aclose(self) -> None:
        """Closes this client and all that share its connections: `with_options`, ``copy``.

        The end of an ``async with`` block does the same, also of one on such a copy. A
        call after that raises a `BackreadError` that says so.
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
