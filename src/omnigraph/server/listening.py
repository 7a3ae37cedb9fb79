"""Where a server listens, and the messages between the listening process and its workers."""

from __future__ import annotations

import socket
import struct

import msgspec

from omnigraph.model.frozen import frozen
from omnigraph.server.settings import ServerInvalid, Settings

LENGTH = struct.Struct("!I")  # before the orders
READY, FAILED = b"R", b"F"  # from a worker
CONNECTION, FINISH = b"C", b"D"  # to a worker
METRICS_FOLDER = (
    "PROMETHEUS_MULTIPROC_DIR"  # where workers put theirs; the name is that of prometheus_client
)


@frozen
class Listen:
    """Where a server listens, and how."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: str | None = None
    tls_key: str | None = None


def bound(listen: Listen) -> socket.socket:
    """A socket at this address."""
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    # With the protocol named, asyncio sends small responses immediately instead of waiting for acknowledgements.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((listen.host, listen.port))
    except OSError as error:
        made.close()
        raise ServerInvalid(f"cannot listen on {listen.host}:{listen.port}: {error}") from error
    return made


class Orders(msgspec.Struct, frozen=True):
    """The orders of a worker."""

    settings: Settings
    host: str
    number: int  # of this worker, among those that may exist at a time
    workers_max: int
    log_level: int
    tls_cert: str | None = None
    tls_key: str | None = None


class WorkerFailed(msgspec.Struct, frozen=True):
    """Why a worker does not start."""

    message: str
    help: str | None = None
