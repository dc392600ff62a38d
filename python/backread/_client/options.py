"""The arguments of a client, each defined once: type, default, meaning, and where it can be set.

The command line, the Airflow connection and Spark's options are made from `ARGUMENTS`, and
``tools/options_table.py --write`` writes the signature and docstring of `Client` and the tables of
docs/. The core checks the range of each value: ``src/core/config/options.rs``.
"""

# Without `from __future__ import annotations`: ARGUMENTS is read from the annotations.
import os
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from backread._client.option_kinds import (
    ACTION,
    BYTES,
    COUNT,
    FILE,
    HEADERS,
    NUMBER,
    SECONDS,
    SWITCH,
    TEXT,
    TIME_LIMIT,
    URL,
    URL_WITH_PASSWORD,
    WORD,
    Duration,
    Kind,
)


class Option(NamedTuple):
    """One argument of a client: its meaning, its default, and who may set it."""

    kind: Kind
    help: str
    """What it sets, without a full stop."""
    default: Any = None
    if_none: str = ""
    """What the default None means."""
    guards_secret: bool = False
    """Decides where the secret goes or who can read it: only code may set it, never data."""
    on_command_line: bool = True
    in_airflow: bool = True
    in_spark: bool = True
    airflow_default: Any = None
    """The default in Airflow, where it differs."""
    note: str = ""
    """When another value than the default is used."""

    def default_in_words(self, default: Any = None) -> str:
        """What applies if the option is not given; empty if that is nothing to mention.

        Args:
            default: A default to name instead of the option's.
        """
        if default is None:
            default = self.default
        if default is None or default is False:
            return self.if_none
        return default if isinstance(default, str) else f"{default:,.10g}"


class Service(TypedDict, total=False):
    """Which service to read, and the secret for it."""

    base_url: Annotated[
        str | None,
        Option(
            URL,
            "The service's URL",
            if_none="the value of `BACKREAD_BASE_URL`",
            guards_secret=True,
            in_airflow=False,
        ),
    ]
    api_secret: Annotated[
        str | None,
        Option(
            TEXT,
            "The API Secret Key",
            if_none="the value of `BACKREAD_API_SECRET`",
            guards_secret=True,
            in_airflow=False,
            in_spark=False,
        ),
    ]
    vendor: Annotated[
        str | None,
        Option(
            WORD,
            "The vendor word in the service's media type, `application/vnd.VENDOR.v1+json`",
            if_none="the value of `BACKREAD_VENDOR`",
        ),
    ]


class SharedOptions(TypedDict, total=False):
    """The options that may differ between clients sharing connections; see `Client` for each."""

    timeout: Annotated[
        "Duration | None",
        Option(TIME_LIMIT, "Seconds that one attempt may take", 30.0, "no limit"),
    ]
    deadline: Annotated[
        "Duration | None",
        Option(
            TIME_LIMIT,
            "Seconds that a whole call may take, with its retries, waits and pages",
            if_none="no limit",
        ),
    ]
    max_retries: Annotated[
        int, Option(COUNT, "The most retries of a request after transient failures", 5)
    ]
    max_concurrency: Annotated[int, Option(COUNT, "The most requests in flight", 16)]
    rate_limit: Annotated[
        float | None,
        Option(NUMBER, "The most requests per second", if_none="as many as the service can take"),
    ]
    on_rate_limit: Annotated[
        Literal["wait", "raise"],
        Option(
            ACTION,
            "What to do on a 429: `wait` obeys Retry-After up to the deadline, `raise` raises "
            "`RateLimitError` at once",
            "wait",
            on_command_line=False,
            in_airflow=False,
        ),
    ]
    max_response_bytes: Annotated[
        int, Option(BYTES, "The largest response in bytes, decompressed", 64 * 1024 * 1024)
    ]
    outage_patience: Annotated[
        "Duration",
        Option(
            SECONDS,
            "Seconds to wait while the whole service is down, once it answered (0: do not wait)",
            60.0,
            airflow_default=600.0,
            note="a sync waits 600 unless this is changed",
        ),
    ]


class ChangedOptions(SharedOptions, total=False):
    """The arguments of `Client.with_options`."""

    traceparent: bool


class ClientOptions(SharedOptions, total=False):
    """The keyword options of `Client` and `AsyncClient`; see `Client` for each."""

    proxy: Annotated[
        str | None,
        Option(
            URL_WITH_PASSWORD,
            "The URL of an http or https proxy, with its user name and password if it needs them",
            if_none="the environment's: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`",
            guards_secret=True,
        ),
    ]
    ca_bundle: Annotated[
        str | os.PathLike[str] | None,
        Option(
            FILE,
            "A PEM file of CA certificates to trust in addition to the system's",
            guards_secret=True,
        ),
    ]
    allow_http: Annotated[
        bool,
        Option(
            SWITCH,
            "Allows plain http to other machines and to proxies on other machines, which shows "
            "the secret on the way; loopback is always allowed",
            False,
            guards_secret=True,
        ),
    ]
    user_agent: Annotated[
        str | None,
        Option(
            TEXT,
            "The User-Agent header",
            if_none="`backread/VERSION`",
            on_command_line=False,
        ),
    ]


in_code = partial(
    Option, guards_secret=True, on_command_line=False, in_airflow=False, in_spark=False
)


class Files(TypedDict, total=False):
    """The files that a client's settings and secret come from."""

    service: Annotated[
        str | None,
        in_code(
            WORD,
            "The name of a service in the config file: its settings apply where no argument is "
            "given, and no `BACKREAD_` setting of the environment does",
        ),
    ]
    api_secret_file: Annotated[
        str | os.PathLike[str] | None,
        in_code(
            FILE,
            "A file that holds the API Secret Key and nothing else, instead of `api_secret`",
        ),
    ]


class Gateway(TypedDict, total=False):
    """What a gateway in front of the service needs."""

    headers: Annotated[
        Mapping[str, str] | None,
        in_code(
            HEADERS,
            "More headers for each request, such as a gateway's key; their values are secrets, "
            "which are not pickled, and stay out of reprs, logs and errors",
            if_none="the JSON object in `BACKREAD_HEADERS`, for the service of `BACKREAD_BASE_URL`",
        ),
    ]


class ClientArguments(Service, ClientOptions, Gateway, Files, total=False):
    """Every argument of `Client` and `AsyncClient`."""


ARGUMENTS: dict[str, Option] = {
    name: hint.__metadata__[0] for name, hint in ClientArguments.__annotations__.items()
}
"""Every argument of a client by name, in the order of its signature."""
