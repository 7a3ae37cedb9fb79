"""What all handles of a process share: bounded caches, and how a root's address becomes storage options."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

HANDLES_MAX = 512
RECENT_ROWS_BYTES_MAX = 64 * 2**20


class Lru(Generic[K, V]):
    """A thread-safe map that forgets what was not used for longest once the weights exceed the limit."""

    def __init__(self, weight_max: int, weigh: Callable[[V], int] = lambda _value: 1) -> None:
        self._weight_max = weight_max
        self._weigh = weigh
        self._weight = 0
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._remove(key)
            self._entries[key] = value
            self._weight += self._weigh(value)
            while self._weight > self._weight_max:
                self._remove(next(iter(self._entries)))

    def _remove(self, key: K) -> None:
        value = self._entries.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(value)

    def __contains__(self, key: K) -> bool:
        with self._lock:
            return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)


def is_local(uri: str) -> bool:
    """Whether a root is a folder of this machine: a plain path or file://."""
    return "://" not in uri or uri.startswith("file://")


def local_path(uri: str) -> str:
    """The folder of a local root."""
    return uri.removeprefix("file://")


def options_from_environment(
    uri: str, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The storage options an `s3://` root takes from the usual AWS variables; nothing for other roots.

    >>> options_from_environment("s3://b/g", {"AWS_REGION": "eu-1", "AWS_ENDPOINT_URL": "http://localhost:1"})
    {'aws_region': 'eu-1', 'aws_endpoint': 'http://localhost:1', 'allow_http': 'true'}
    """
    if not uri.startswith("s3://"):
        return {}
    env = os.environ if environment is None else environment
    found = {
        "aws_region": env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION"),
        "aws_access_key_id": env.get("AWS_ACCESS_KEY_ID"),
        "aws_secret_access_key": env.get("AWS_SECRET_ACCESS_KEY"),
        "aws_session_token": env.get("AWS_SESSION_TOKEN"),
        "aws_endpoint": env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL"),
    }
    options = {name: value for name, value in found.items() if value}
    if options.get("aws_endpoint", "").startswith("http://") or _yes(env.get("AWS_ALLOW_HTTP")):
        options["allow_http"] = "true"
    path_style = env.get("AWS_S3_FORCE_PATH_STYLE")
    if path_style is not None:
        options["aws_virtual_hosted_style_request"] = "false" if _yes(path_style) else "true"
    return options


def _yes(value: str | None) -> bool:
    return (value or "").strip().lower() in {"1", "true", "yes", "on"}
