"""Parses the options of the data source, which Spark passes as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from backread._client.option_kinds import TEXT, read_switch, read_whole_number
from backread._client.options import ARGUMENTS
from backread._client.privacy import Privacy
from backread._client.secret import read_secret_file
from backread.errors import ConfigurationError
from backread.sharding.planning import MOST_SHARDS

if TYPE_CHECKING:
    from backread import Client

__all__ = ["LandedOptions", "ServiceOptions", "parse_options", "parse_registered"]

Resource: TypeAlias = Literal["users", "messages"]

SECRETS = ("api_secret", "secret", "secret_key", "api_key", "token", "password", "authorization")


def _whole_number_up_to(most: int | None) -> Callable[[str], int]:
    def read(given: str) -> int:
        number = read_whole_number(given)
        if number < 1 or (most is not None and number > most):
            raise ValueError("1 or more" if most is None else f"1 to {most}")
        return number

    return read


def _resource(given: str) -> str:
    if (word := given.strip().lower()) not in get_args(Resource):
        raise ValueError("users or messages")
    return word


_at_least_one = _whole_number_up_to(None)
_shards = _whole_number_up_to(MOST_SHARDS)

# For each option, what reads its text; the text of its ValueError says what it must be.
CLIENT: dict[str, Callable[[str], Any]] = {
    name: option.kind.read for name, option in ARGUMENTS.items() if option.in_spark
}
SERVICE: dict[str, Callable[[str], Any]] = {
    "resource": _resource,
    **CLIENT,
    "shards": _shards,
    "workers": _shards,
    "strict": read_switch,
    "secret_file": TEXT.read,
    "pseudonymise": TEXT.read,
    "drop_bodies": read_switch,
    "redact": read_switch,
}
IN_CODE = (*(name for name in CLIENT if ARGUMENTS[name].guards_secret), "secret_file")
"""Options that affect which secret is sent where; only `register` accepts them."""
PRIVACY = ("pseudonymise", "drop_bodies", "redact")
"""Options that say what rows leave out; only `register` accepts them, so that no read has more."""
LANDED: dict[str, Callable[[str], Any]] = {
    "resource": _resource,
    "landing": TEXT.read,
    "run": _at_least_one,
    "max_runs_per_trigger": _at_least_one,
}
# Spark passes all keys in lower case, and its own options are camelCase.
NAMES = {name.replace("_", ""): name for name in {**SERVICE, **LANDED}}


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Options for reading from the service: resource, client, number of shards, privacy."""

    resource: Resource = "messages"
    shards: int | None = None
    workers: int | None = None
    strict: bool = False
    secret_file: str | None = None
    privacy: Privacy | None = None
    client: Mapping[str, Any] = field(default_factory=dict)

    def make_client(self) -> Client:
        """A client for the plan, with the secret from the file or the environment.

        Raises:
            ConfigurationError: If there is no secret, or an option is invalid.
        """
        from backread import Client

        secret = None if self.secret_file is None else read_secret_file(self.secret_file)
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
    """The options of one read; with ``landing``, of a read of landed runs.

    Keys are case-insensitive, with or without underscores.

    Args:
        given: The options of this read. Untrusted, as they may come from a query or a notebook's
            parameter, so none of `IN_CODE` and `PRIVACY` is allowed.
        registered: The options that code set for all reads of the service; ``given`` overrides
            them.

    Raises:
        ConfigurationError: For the first option that is unknown or invalid, or may be a secret. Its
            text never shows a value that may be a secret.
    """
    landed = any(_plain(key) == "landing" for key in given)
    for key in given:
        name = NAMES.get(_plain(key))
        if not landed and name in PRIVACY:
            raise ConfigurationError(
                f"option {key} decides what rows leave out about people, so a read or a query may "
                f"not set it; pass it in code: register(spark, {name}=...)"
            )
        if not landed and name in IN_CODE:
            raise ConfigurationError(
                f"option {key} decides where the secret goes, so a read or a query may not set it; "
                f"pass it in code: register(spark, {name}=...)"
            )
    values = _values(given, landed=landed)
    if landed:
        return LandedOptions(**values)
    return _service_options({**_values(registered or {}, landed=False), **values})


def parse_registered(given: Mapping[str, str]) -> ServiceOptions:
    """The options of `register`, which are trusted; otherwise like `parse_options`.

    Raises:
        ConfigurationError: Also for ``landing``, which is an option of one read.
    """
    if any(_plain(key) == "landing" for key in given):
        raise ConfigurationError("option landing is for one read; pass it there")
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
            "option proxy may not hold a password, because Spark shows its options; leave it "
            "out and set HTTPS_PROXY in the environment of the driver and of each executor"
        )
    client = {name: values.pop(name) for name in CLIENT if name in values}
    chosen = [values.pop(name, None) for name in PRIVACY]
    privacy = Privacy.of(chosen[0], bool(chosen[1]), bool(chosen[2]))
    return ServiceOptions(**values, privacy=privacy, client=client)


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _unknown(key: str) -> str:
    if _plain(key) in map(_plain, SECRETS):
        return (
            f"option {key} is refused, because Spark shows its options in plans, logs and pages; "
            "set BACKREAD_API_SECRET in the environment of the driver and of each executor, or "
            "name a file that all of them can read: register(spark, secret_file=...)"
        )
    if key.lower() == "path":
        return "load() takes no path; option landing names the folder of landed runs"
    near = get_close_matches(_plain(key), NAMES, n=1, cutoff=0.6)
    if near:
        return f"there is no option {key}; did you mean {NAMES[near[0]]}?"
    return f"there is no option {key}; the options are {', '.join(sorted({**SERVICE, **LANDED}))}"
