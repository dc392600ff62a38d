"""Debian's nginx and HAProxy in the foreground, each with one configuration file, before a mock.

with nginx(folder, [server.port], locations=PASS) as front:
    front.client(server)
front.answered()        # what it logged: time, status and address of each request

Tests fail where a program is missing; ``make test-services`` installs them, or says how to.
"""

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from processes import accepts, on_free_port, running

from backread import Client
from backread.testing import MockServer

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

    def client(self, server: MockServer, **options: Any) -> Client:
        """A client of the server behind it."""
        bundle = self.ca_bundle
        return Client(self.url, server.secret, server.vendor, ca_bundle=bundle, **options)

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
    upstream: Sequence[int],
    *,
    locations: str = PASS,
    http: str = "",
    server: str = "",
    tls: bool = False,
) -> Iterator[Front]:
    """nginx before ports of this machine; with ``tls`` it speaks HTTP/2.

    ``http``, ``server`` and ``locations`` are lines of the configuration, put where they are named
    after.
    """
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
    servers = "\n".join(f"server 127.0.0.1:{port} max_fails=0;" for port in upstream)
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    access, errors = folder / "access.log", folder / "errors.log"

    def start(port: int) -> contextlib.AbstractContextManager[object]:
        file = folder / "nginx.conf"
        file.write_text(
            f"""
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
                proxy_set_header Host $http_host;
                proxy_next_upstream off;
                {http}
                server {{
                    listen 127.0.0.1:{port} {"ssl http2" if tls else ""};
                    {secure}
                    {server}
                    {locations}
                }}
            }}
            """,
            "utf-8",
        )
        command = ["/usr/sbin/nginx", "-e", errors, "-p", folder, "-c", file]
        return running(command, errors, lambda: accepts(port))

    with on_free_port(start) as port:
        yield Front(f"{'https' if tls else 'http'}://127.0.0.1:{port}", access, bundle)


@contextlib.contextmanager
def haproxy(folder: Path, upstream: Sequence[int]) -> Iterator[Front]:
    """HAProxy before ports whose health it checks; it answers 503 at once if none is healthy."""
    log = folder / "haproxy.log"
    servers = "\n    ".join(
        f"server s{port} 127.0.0.1:{port} check inter 50ms fall 1 rise 1" for port in upstream
    )

    def start(port: int) -> contextlib.AbstractContextManager[object]:
        file = folder / "haproxy.cfg"
        file.write_text(
            f"""
global
    nbthread 1
    maxconn 512
    hard-stop-after 5s
    noreuseport
    log stdout format raw local0
defaults
    mode http
    log global
    option dontlognull
    option http-ignore-probes
    log-format "%Ts.%ms %ST %HU"
    timeout connect 2s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:{port}
    default_backend origin
backend origin
    retries 0
    {servers}
""",
            "utf-8",
        )
        # -db: in the foreground, one process.
        command = ["/usr/sbin/haproxy", "-db", "-f", file]
        # SIGTERM would lose the log of requests that have just been answered.
        return running(command, log, lambda: accepts(port), signal.SIGUSR1)

    with on_free_port(start) as port:
        yield Front(f"http://127.0.0.1:{port}", log)
