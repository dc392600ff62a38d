"""Words for what is seen in the cases of `reliability.py`."""

from __future__ import annotations

import re

from reliability_runs import SECRET, Seen

REQUESTS_THAT_ARE_MANY = 2


def after(seconds: float) -> str:
    """How long something took, where it took long."""
    return f" after {seconds:.0f} s" if seconds >= 1.5 else ""


def size(megabytes: float) -> str:
    """An amount of memory, coarse enough to be the same in the next run."""
    if megabytes >= 1_000:
        return f"{megabytes / 1_000:.0f} GB"
    return f"{max(10, float(f'{megabytes:.1g}')):.0f} MB"


def error(seen: Seen) -> str:
    """An error by its name, and what it took."""
    count = len(seen.requests)
    tried = f" after {count} requests" if count >= REQUESTS_THAT_ARE_MANY else ""
    return f"`{seen.outcome['error']}`{tried or after(seen.outcome['seconds'])}"


def plain(seen: Seen) -> str:
    """What came of it, without the time that it took."""
    return re.sub(" (after|for) [0-9]+ s$", "", timed(seen))


def timed(seen: Seen) -> str:
    """A value or an error, whether it was asked for again, and how long it took."""
    match seen.kind:
        case "value" if seen.outcome["is_user"]:
            again = "retried, " if len(seen.requests) >= REQUESTS_THAT_ARE_MANY else ""
            return f"{again}value{after(seen.outcome['seconds'])}"
        case "value":
            return f"another value: {seen.outcome.get('odd', 'fields are missing')}"
        case "error":
            return error(seen)
        case "hangs":
            return f"hangs for {seen.outcome['seconds']:.0f} s"
    return ended(seen)


def ended(seen: Seen) -> str:
    """The end of a child that said nothing."""
    if seen.exit_code < 0:
        return f"the process dies: signal {-seen.exit_code}"
    return f"the process ends: exit code {seen.exit_code}"


def second(seen: Seen) -> str:
    """The same where two requests are asked for, so that only a third is a retry."""
    count = len(seen.requests) - 1
    text = plain(Seen(**{**vars(seen), "requests": seen.requests[:count]}))
    return text.replace(f" after {count} requests", "") if count < 2 else text


def odd_name(seen: Seen) -> str:
    """What became of a name that is odd."""
    name = seen.outcome.get("name")
    return f"{plain(seen)}: {name}" if seen.kind == "value" else plain(seen)


def odd_more(seen: Seen) -> str:
    """What became of an unknown field that is odd."""
    more = seen.outcome.get("more")
    return f"{plain(seen)}: {more}" if seen.kind == "value" else plain(seen)


def memory(seen: Seen) -> str:
    """How it ended, and the memory that it took at most."""
    mb = seen.outcome.get("mb")
    return plain(seen) if mb is None else f"{plain(seen)}, {size(mb)}"


def waited(seen: Seen) -> str:
    """Whether the wait that was asked for was kept."""
    if seen.kind == "value" and len(seen.requests) == REQUESTS_THAT_ARE_MANY:
        gap = seen.requests[1].at - seen.requests[0].at
        return f"waits {gap:.0f} s, value" if gap >= 1.9 else "retried too early, value"
    return plain(seen)


def away(seen: Seen) -> str:
    """Whether the other origin was asked, and with the secret."""
    if seen.elsewhere:
        secret = any(SECRET in request.head for request in seen.elsewhere)
        return f"followed, the secret is {'sent along' if secret else 'held back'}"
    return f"refused: {plain(seen)}"


def both(seen: Seen) -> str:
    """What came of parent and child."""
    if seen.kind != "both":
        return plain(seen)
    child, parent = (brief(seen.outcome[name]) for name in ("child", "parent"))
    return f"both: {child}" if child == parent else f"child: {child}; parent: {parent}"


def brief(outcome: dict[str, object]) -> str:
    """An outcome within another."""
    if outcome["kind"] == "value":
        return "value" if outcome["is_user"] else "another value"
    return f"`{outcome['error']}`" if outcome["kind"] == "error" else str(outcome["kind"])


def interrupted(seen: Seen) -> str:
    """How soon Ctrl-C was heard."""
    if seen.kind == "none":
        return "has no sync call"
    if "at" not in seen.outcome or seen.interrupted_at is None:
        return plain(seen)
    took = seen.outcome["at"] - seen.interrupted_at
    what = "KeyboardInterrupt" if seen.kind == "interrupted" else seen.outcome["error"]
    return f"`{what}` " + ("within 0.2 s" if took <= 0.2 else f"after {took:.1f} s")


def quiet_end(seen: Seen) -> str:
    """How the interpreter ended."""
    if seen.kind == "hangs":
        return plain(seen)
    lines = [line for line in seen.stderr.splitlines() if line.strip()]
    worst = next((line for line in lines if line.startswith("Fatal")), "".join(lines[-1:]))
    said = re.sub(r"0x\w+|[`|]", "", worst)[:40].strip()
    code = f"signal {-seen.exit_code}" if seen.exit_code < 0 else f"exit code {seen.exit_code}"
    late = seen.ended_at - seen.outcome.get("at", seen.ended_at)
    return f"{code}{after(late)}, " + (f"stderr: `{said}`" if said else "silent")


def cancelled(seen: Seen) -> str:
    """What 1,800 cancelled tasks left behind."""
    if seen.kind != "cancelled":
        return plain(seen)
    opened, held = seen.outcome["open"], seen.outcome["held"]
    files = f"{opened:,} files still open" if opened > 5 else "no file left open"
    more = f", {size(held)} more" if held >= 20 else ""
    return f"{files}{more}, next call: {brief(seen.outcome['last'])}"


def places(seen: Seen) -> str:
    """Where the secret was seen."""
    return plain(seen) if seen.kind != "shown" else ", ".join(seen.outcome["places"]) or "nowhere"


def kept(seen: Seen) -> str:
    """What pickling gives."""
    if seen.kind == "pickled":
        return "pickled, the secret inside" if seen.outcome["inside"] else "pickled without it"
    return f"refused: {plain(seen)}"


def injected(seen: Seen) -> str:
    """Whether a header was sent that nobody meant to send."""
    if any(request.header("x-injected") for request in seen.requests):
        return "the header is sent"
    return "sent without it" if seen.requests else f"refused: {error(seen)}"


REMEDY = re.compile(r"ca_bundle|SSL_CERT_FILE|verify=|cafile")


def distrusted(seen: Seen) -> str:
    """What the error says of a certificate."""
    if seen.kind != "error":
        return plain(seen)
    text = str(seen.outcome["text"])
    named = "names the certificate" if "certificate" in text.lower() else "does not say why"
    remedy = " and the remedy" if REMEDY.search(text) else ""
    # Its requests never come: the connections tell how often it tried.
    many = f" after {seen.connections} connections" if seen.connections > 1 else ""
    return f"`{seen.outcome['error']}`{many}, {named}{remedy}"


def roots(seen: Seen) -> str:
    """Whether a root of the system's is known: what it did not sign is then a bad signature."""
    text = str(seen.outcome.get("text"))
    if "ignature" in text:
        return "kept"
    unknown = "UnknownIssuer" in text or "unable to get local issuer" in text
    return "replaced" if unknown else "the error does not tell"


def log(seen: Seen) -> str:
    """What the standard logging heard."""
    if seen.kind != "logged":
        return plain(seen)
    request = "the request" if seen.outcome["request"] else "no request"
    return f"{request}" + (", the secret too" if seen.outcome["secret"] else "")
