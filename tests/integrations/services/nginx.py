"""Debian's nginx in the foreground, with one configuration file in a folder of its own.

with nginx(folder, locations=PASS, upstream=[socket]) as front:
    Client(front.url, ...)
front.answered()        # what it logged: time, status and address of each request
"""

import contextlib
import os
import pwd
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import trustme
from processes import accepts, on_free_port, running

PROGRAM = "/usr/sbin/nginx"
PASS = "location / { proxy_pass http://origin; }"


@dataclass(frozen=True)
class Answered:
    """One request as the proxy logged it: seconds since 1970, status, path with its query."""

    at: float
    status: int
    target: str


@dataclass(frozen=True)
class Front:
    """A proxy that runs, or ran."""

    url: str
    log: Path
    ca_bundle: Path | None = None

    def answered(self) -> list[Answered]:
        """The requests in the order of their ends; all of them once the proxy has ended."""
        lines = self.log.read_text("utf-8").splitlines()
        parts = [line.split(" ", 2) for line in lines if line[:1].isdigit()]
        return [Answered(float(at), int(status), target) for at, status, target in parts]

    def count(self, status: int) -> int:
        """How many requests were answered so."""
        return sum(one.status == status for one in self.answered())


@contextlib.contextmanager
def nginx(
    folder: Path,
    upstream: Sequence[Path],
    *,
    locations: str = PASS,
    http: str = "",
    server: str = "",
    tls: bool = False,
) -> Iterator[Front]:
    """nginx before upstreams on Unix sockets; with ``tls`` it speaks HTTP/2.

    ``http``, ``server`` and ``locations`` are lines of the configuration, put where they are named
    after.
    """
    folder.mkdir(parents=True, exist_ok=True)
    bundle = None
    secure = ""
    if tls:
        bundle, chain, key = folder / "ca.pem", folder / "chain.pem", folder / "key.pem"
        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1")
        authority.cert_pem.write_to_path(str(bundle))
        certificate.private_key_pem.write_to_path(str(key))
        for pem in certificate.cert_chain_pems:
            pem.write_to_path(str(chain), append=True)
        secure = f"ssl_certificate {chain}; ssl_certificate_key {key};"
    servers = "\n".join(f"server unix:{path} max_fails=0;" for path in upstream)
    # Its workers would else be of a user who may not open the upstream's socket.
    name = f"user {pwd.getpwuid(0).pw_name} root;" if os.geteuid() == 0 else ""
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    access, errors = folder / "access.log", folder / "errors.log"

    def configuration(port: int) -> str:
        return f"""
            {name}
            daemon off;
            worker_processes 1;
            pid {folder}/nginx.pid;
            error_log {errors};
            events {{ worker_connections 512; }}
            http {{
                {temporary}
                log_format lines '$msec $status $request_uri';
                access_log {access} lines;
                upstream origin {{ {servers} keepalive 32; }}
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_next_upstream off;
                {http}
                server {{
                    listen 127.0.0.1:{port} {"ssl http2" if tls else ""};
                    {secure}
                    {server}
                    {locations}
                }}
            }}
        """

    def start(port: int) -> contextlib.AbstractContextManager[object]:
        file = folder / "nginx.conf"
        file.write_text(configuration(port), "utf-8")
        command = [PROGRAM, "-e", errors, "-p", folder, "-c", file]
        return running(command, errors, lambda: accepts(port))

    with on_free_port(start) as port:
        yield Front(f"{'https' if tls else 'http'}://127.0.0.1:{port}", access, bundle)
