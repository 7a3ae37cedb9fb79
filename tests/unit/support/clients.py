"""S3 clients for the tests of the stand-ins: the two that omnigraph uses, and a bare one that can ask wrongly."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from obstore.store import S3Store

from tests.support.s3server import S3Address


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: str


def ask(
    address: S3Address,
    method: str,
    path: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One bare request below the bucket."""
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=10)
    try:
        connection.request(method, f"/{address.bucket}{path}", body, dict(headers or {}))
        response = connection.getresponse()
        lowered = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, lowered, response.read().decode())
    finally:
        connection.close()


def object_store(address: S3Address, prefix: str = "", *, retries: int = 3) -> Any:
    """An obstore client that gives up soon."""
    return S3Store(
        address.bucket,
        prefix=prefix or None,
        config=address.storage_options(),
        client_options={"allow_http": True},
        retry_config={"max_retries": retries},
    )
