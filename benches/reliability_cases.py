"""The cases of `reliability.py`: a fault, a situation, and the words for what is seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import reliability_faults as faults
from reliability_certificates import FORGED, OWN, Certificate
from reliability_runs import Case, Seen
from reliability_servers import Behaviour, once
from reliability_words import (
    away,
    both,
    cancelled,
    distrusted,
    injected,
    interrupted,
    kept,
    log,
    memory,
    odd_more,
    odd_name,
    places,
    plain,
    quiet_end,
    roots,
    second,
    timed,
    waited,
)

Words = Callable[[Seen], str]


def made(*certificates: Certificate) -> None:
    """Makes them."""
    for certificate in certificates:
        certificate.make()


def case(key: str, name: str, fault: Behaviour, words: Words = plain, **more: Any) -> Case:
    """A case; most are one call."""
    return Case(key, name, fault, words, **more)


def again(key: str, name: str, fault: Behaviour, words: Words = plain, **more: Any) -> Case:
    """A fault of the first request alone."""
    return Case(key, name, once(fault), words, **more)


GROUPS: dict[str, tuple[Case, ...]] = {
    "processes": (
        case("fork", "fork after a call", faults.good, both, situation="fork"),
        case(
            "fork-busy",
            "fork while four calls are under way",
            faults.until_released,
            both,
            situation="fork_busy",
            timeout=8,
            limit=20,
        ),
        case(
            "worker",
            "an error in a worker of a process pool",
            faults.status(404),
            situation="worker",
            limit=30,
        ),
        case("loops", "one client, two event loops", faults.good, second, situation="two_loops"),
    ),
    "ends": (
        case(
            "ctrl-c",
            "Ctrl-C in a sync call",
            faults.silence,
            interrupted,
            situation="interrupt",
            timeout=6,
            alone=True,
        ),
        case("exit", "exit after a call, 40 times", faults.good, quiet_end, times=40),
        case(
            "exit-thread",
            "exit with a call in a daemon thread",
            faults.silence,
            quiet_end,
            situation="exit_thread",
            timeout=6,
            times=3,
        ),
        case(
            "exit-task",
            "exit with a call in a task",
            faults.silence,
            quiet_end,
            situation="exit_task",
            timeout=6,
            times=3,
        ),
        case(
            "cancel",
            "2,000 cancelled tasks",
            faults.until_released,
            cancelled,
            situation="cancel",
            limit=60,
            timeout=120,
            alone=True,
        ),
    ),
    "size": (
        again("silence", "no answer, once", faults.silence, timed),
        again("silence-body", "silence in the body, once", faults.silence_in_body, timed),
        again("drip", "a byte each 0.2 s without an end, once", faults.drip, timed),
        case("endless", "a body without an end", faults.endless, memory, limit=4, alone=True),
        case(
            "gzip-bomb",
            "1 GB as gzip",
            faults.bomb("gzip"),
            memory,
            timeout=60,
            limit=120,
            alone=True,
            prepare=partial(faults.packed, "gzip"),
        ),
        case(
            "brotli-bomb",
            "1 GB as brotli",
            faults.bomb("br"),
            memory,
            timeout=60,
            limit=120,
            alone=True,
            prepare=partial(faults.packed, "br"),
        ),
        case(
            "zstd-bomb",
            "1 GB as zstd",
            faults.bomb("zstd"),
            memory,
            timeout=60,
            limit=120,
            alone=True,
            prepare=partial(faults.packed, "zstd"),
        ),
        case("huge-header", "a header of 64 MB", faults.huge_header, memory, alone=True),
        case(
            "endless-headers",
            "header lines without an end",
            faults.endless_headers,
            memory,
            alone=True,
        ),
        case("circle", "a redirect in a circle", faults.circle),
        again(
            "429", "429 with `Retry-After: 2`, once", faults.status(429, Retry_After="2"), waited
        ),
        again("503", "503, once", faults.status(503)),
    ),
    "answers": (
        again("cut-length", "cut, with Content-Length, once", faults.cut_length),
        again("cut-chunks", "cut, chunked, once", faults.cut_chunks),
        again("cut-gzip", "cut gzip, once", faults.cut_gzip(honest=False)),
        again(
            "cut-gzip-honest", "cut gzip of an honest length, once", faults.cut_gzip(honest=True)
        ),
        again("reset-before", "reset before the answer, once", faults.reset_before),
        again("reset-during", "reset in the body, once", faults.reset_during),
        case(
            "stale",
            "an idle connection that ends as it is used",
            faults.stale,
            second,
            situation="twice",
        ),
        again("empty", "200 with an empty body, once", faults.body(b"")),
        again("html", "200 with HTML, once", faults.body(faults.HTML)),
        again("half", "200 with half of the JSON, once", faults.body(faults.HALF)),
        case("nan", "`NaN`", faults.body(faults.user(more=b"NaN")), odd_more),
        case("bom", "a byte order mark", faults.body(faults.BYTE_ORDER_MARK)),
        case("utf8", "bad UTF-8", faults.body(faults.BAD_UTF8), odd_name),
        case("surrogate", "half of a surrogate pair", faults.body(faults.SURROGATE), odd_name),
        case("twice", "a key that comes twice", faults.body(faults.TWICE), odd_name),
        case("deep", "200,000 levels", faults.body(faults.user(more=faults.DEEP)), odd_more),
        case(
            "digits",
            "an integer of 5,000 digits",
            faults.body(faults.user(more=faults.DIGITS)),
            odd_more,
        ),
    ),
    "secrets": (
        case("shown", "where the secret is seen", faults.good, places, situation="shown"),
        case(
            "raised", "where it is seen after a 401", faults.status(401), places, situation="raised"
        ),
        case(
            "raised-timeout",
            "where it is seen after a timeout",
            faults.silence,
            places,
            situation="raised",
            timeout=0.5,
        ),
        case("pickled", "a client that is pickled", faults.good, kept, situation="pickled"),
        case("origin", "a redirect to another origin", faults.good, away, leaves=True),
        case("inject-secret", "a line break in the secret", faults.good, injected, into="secret"),
        case("inject-agent", "a line break in the user agent", faults.good, injected, into="agent"),
        case("inject-url", "a line break in the URL", faults.good, injected, into="url"),
        case(
            "self-signed",
            "a TLS certificate of an unknown authority",
            faults.good,
            distrusted,
            certificate=OWN,
            prepare=OWN.make,
        ),
        case(
            "cert-file",
            "the same in `SSL_CERT_FILE`",
            faults.good,
            distrusted,
            certificate=OWN,
            trusted=OWN,
            prepare=OWN.make,
        ),
        case(
            "cert-roots",
            "the system's roots beside `SSL_CERT_FILE`",
            faults.good,
            roots,
            certificate=FORGED,
            trusted=OWN,
            prepare=partial(made, OWN, FORGED),
        ),
    ),
    "logging": (
        case("logged", "standard logging at DEBUG hears", faults.good, log, situation="logged"),
    ),
}
CASES = tuple(case for cases in GROUPS.values() for case in cases)
