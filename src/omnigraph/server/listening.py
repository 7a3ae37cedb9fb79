"""Where a server listens, and what the process that listens and its workers say to each other."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

import msgspec

from omnigraph.server.settings import ServerInvalid, Settings

LENGTH = struct.Struct("!I")  # before the orders
READY, FAILED = b"R", b"F"  # what a worker says
CONNECTION, FINISH = b"C", b"D"  # what it is told
METRICS_FOLDER = (
    "PROMETHEUS_MULTIPROC_DIR"  # where workers put theirs, by the name prometheus_client has for it
)


@dataclass(frozen=True, slots=True)
class Listen:
    """Where a server listens, and how."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: str | None = None
    tls_key: str | None = None


def bound(listen: Listen) -> socket.socket:
    """A socket at this address."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once instead of waiting for acknowledgements.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((listen.host, listen.port))
    except OSError as error:
        made.close()
        raise ServerInvalid(f"cannot listen on {listen.host}:{listen.port}: {error}") from error
    return made


class Orders(msgspec.Struct, frozen=True):
    """What a worker is to do."""

    settings: Settings
    host: str
    number: int  # of this worker, among those that may be there at once
    workers_max: int
    log_level: int
    tls_cert: str | None = None
    tls_key: str | None = None


class WorkerFailed(msgspec.Struct, frozen=True):
    """Why a worker does not begin."""

    message: str
    help: str | None = None
