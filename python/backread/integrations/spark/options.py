"""Parses the options of the data source, which Spark passes as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from backread.errors import ConfigurationError
from backread.sharding.planning import MOST_SHARDS

if TYPE_CHECKING:
    from backread import Client

__all__ = ["LandedOptions", "ServiceOptions", "parse_options", "parse_registered"]

Resource: TypeAlias = Literal["users", "messages"]

TRUE, FALSE = ("true", "1", "yes"), ("false", "0", "no")
SECRETS = ("api_secret", "secret", "secret_key", "api_key", "token", "password", "authorization")


def _text(given: str) -> str:
    if not given.strip():
        raise ValueError("some text")
    return given


def _whole(given: str) -> int:
    try:
        return int(given)
    except ValueError:
        raise ValueError("a whole number") from None


def _number(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise ValueError("a number") from None


def _seconds(given: str) -> float | None:
    if given.strip().lower() == "none":
        return None
    try:
        return float(given)
    except ValueError:
        raise ValueError("seconds, or none for no bound") from None


def _at_least_one(given: str) -> int:
    if (number := _whole(given)) < 1:
        raise ValueError("1 or more")
    return number


def _shards(given: str) -> int:
    if not 1 <= (number := _whole(given)) <= MOST_SHARDS:
        raise ValueError(f"1 to {MOST_SHARDS}")
    return number


def _boolean(given: str) -> bool:
    lowered = given.strip().lower()
    if lowered not in TRUE + FALSE:
        raise ValueError("true or false")
    return lowered in TRUE


def _choice(*words: str) -> Callable[[str], str]:
    def choose(given: str) -> str:
        if given.strip().lower() not in words:
            raise ValueError(" or ".join(words))
        return given.strip().lower()

    return choose


# Parsers of the options for the arguments of `Client` with the same names.
CLIENT: dict[str, Callable[[str], Any]] = {
    "base_url": _text,
    "vendor": _text,
    "timeout": _seconds,
    "deadline": _seconds,
    "max_retries": _whole,
    "max_concurrency": _whole,
    "rate_limit": _number,
    "on_rate_limit": _choice("wait", "raise"),
    "max_response_bytes": _whole,
    "outage_patience": _number,
    "proxy": _text,
    "ca_bundle": _text,
    "allow_http": _boolean,
    "user_agent": _text,
}
RESOURCE = {"resource": _choice("users", "messages")}
SERVICE: dict[str, Callable[[str], Any]] = {
    **RESOURCE,
    **CLIENT,
    "shards": _shards,
    "workers": _shards,
    "strict": _boolean,
    "secret_file": _text,
}
IN_CODE = ("base_url", "secret_file", "proxy", "ca_bundle", "allow_http")
"""Options that affect which secret is sent where; only `register` accepts them."""
LANDED: dict[str, Callable[[str], Any]] = {
    **RESOURCE,
    "landing": _text,
    "run": _at_least_one,
    "max_runs_per_trigger": _at_least_one,
}
# Spark passes all keys in lower case, and its own options are camelCase.
NAMES = {name.replace("_", ""): name for name in {**SERVICE, **LANDED}}


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options for reading from the service: resource, client, number of shards."""

    resource: Resource = "messages"
    shards: int | None = None
    workers: int | None = None
    strict: bool = False
    secret_file: str | None = None
    client: Mapping[str, Any] = field(default_factory=dict)

    def make_client(self) -> Client:
        """A client for the plan, with the secret from the file or the environment.

        Raises `ConfigurationError` if there is none, and for invalid options.
        """
        from backread import Client

        secret = None if self.secret_file is None else _secret_in(self.secret_file)
        try:
            return Client(api_secret=secret, **self.client)
        finally:
            # Traceback tools print local variables.
            del secret


@dataclass(frozen=True, slots=True)
class LandedOptions:
    """Options for reading landed rows: folder, run, maximum of runs per trigger."""

    landing: str
    resource: Resource = "messages"
    run: int | None = None
    max_runs_per_trigger: int | None = None


def parse_options(
    given: Mapping[str, str], registered: Mapping[str, str] | None = None
) -> ServiceOptions | LandedOptions:
    """The options of one read; those with ``landing`` are for landed runs.

    ``given`` is untrusted: it may come from a query or a notebook's parameter. So it must not have
    `IN_CODE` options, which only ``registered`` may have: options that code set for all reads of
    the service, and that ``given`` overrides.

    Keys are case-insensitive, with or without underscores. Raises `ConfigurationError` for the
    first that is unknown, does not fit or contains a secret; its text never shows a value that may
    be one.
    """
    landed = any(_plain(key) == "landing" for key in given)
    for key in given:
        if not landed and NAMES.get(_plain(key)) in IN_CODE:
            raise ConfigurationError(
                f"option {key} decides where the secret goes, so a read or a query may not set it; "
                f"give it in code, to register(spark, {NAMES[_plain(key)]}=...)"
            )
    values = _values(given, landed=landed)
    if landed:
        return LandedOptions(**values)
    return _service_options({**_values(registered or {}, landed=False), **values})


def parse_registered(given: Mapping[str, str]) -> ServiceOptions:
    """The options of `register`, which are trusted; otherwise like `parse_options`.

    Also raises `ConfigurationError` for ``landing``, which is for one read.
    """
    if any(_plain(key) == "landing" for key in given):
        raise ConfigurationError("option landing is for one read; give it there")
    return _service_options(_values(given, landed=False))


def _values(given: Mapping[str, str], *, landed: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in given.items():
        name = NAMES.get(_plain(key))
        if name is None:
            raise ConfigurationError(_unknown(key))
        parse = (LANDED if landed else SERVICE).get(name)
        if parse is None:
            other = "reading the service" if landed else "reading landed runs, with option landing"
            raise ConfigurationError(f"option {name} is for {other}; leave it out")
        try:
            values[name] = parse(text)
        except ValueError as error:
            raise ConfigurationError(f"option {name} must be {error}, not {text!r:.80}") from None
    return values


def _service_options(values: dict[str, Any]) -> ServiceOptions:
    if "@" in values.get("proxy", ""):
        raise ConfigurationError(
            "option proxy may hold no password, for Spark shows its options; leave it out and set "
            "HTTPS_PROXY in the environment of the driver and of each executor"
        )
    client = {name: values.pop(name) for name in CLIENT if name in values}
    return ServiceOptions(**values, client=client)


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _unknown(key: str) -> str:
    if _plain(key) in map(_plain, SECRETS):
        return (
            f"option {key} is refused, for Spark shows its options in plans, logs and pages; set "
            "BACKREAD_API_SECRET in the environment of the driver and of each executor, or name a "
            "file that all of them can read by register(spark, secret_file=...)"
        )
    if key.lower() == "path":
        return "load() takes no path; option landing names the folder of landed runs"
    near = get_close_matches(_plain(key), NAMES, n=1, cutoff=0.6)
    if near:
        return f"there is no option {key}; did you mean {NAMES[near[0]]}?"
    return f"there is no option {key}; there are {', '.join(sorted({**SERVICE, **LANDED}))}"


def _secret_in(file: str) -> str:
    try:
        secret = Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigurationError(
            f"secret_file {file} cannot be read on the driver: {reason}; it must be there and on "
            "each executor, and hold the API secret alone"
        ) from None
    if not secret:
        raise ConfigurationError(f"secret_file {file} is empty; put the API secret in it")
    return secret
