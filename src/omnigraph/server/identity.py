"""Bearer tokens: who is asking. Only digests are kept, all of them are compared, and a changed file is read again."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from omnigraph.errors import Kind, OmnigraphError
from omnigraph.server.settings import ServerInvalid

TOKEN = "OMNIGRAPH_SERVER_BEARER_TOKEN"  # noqa: S105  the name of a variable
TOKENS_FILE = "OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"
TOKENS_JSON = "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON"
LOOK_SECONDS = 1.0
SCHEME = "Bearer "

log = logging.getLogger("omnigraph.server.identity")


class Unauthenticated(OmnigraphError):
    """The request does not say who is asking, or not convincingly."""

    code, kind = "unauthenticated", Kind.DENIED
    default_help = "Send the header `Authorization: Bearer <token>`."


class Identity:
    """The tokens of a server. Plain texts are forgotten as soon as they are hashed.

    A secret is a token of nobody in particular: who has it may do everything, and nobody else anything.
    """

    def __init__(
        self,
        tokens_file: str | None = None,
        environment: Mapping[str, str] = os.environ,
        secret: str | None = None,
    ) -> None:
        self._secret = None if secret is None else _digest(secret)
        named = tokens_file or environment.get(TOKENS_FILE)
        self._file = Path(named) if named else None
        self._fixed = _from_environment(environment, with_map=self._file is None)
        self._looked = time.monotonic()
        self._stamp = self._file_stamp()
        self._digests = self._fixed | self._read_file()
        _refuse_shared(self._digests)

    @property
    def required(self) -> bool:
        """Whether requests must carry a token."""
        return bool(self._digests) or self._file is not None

    def actor(self, authorization: str | None) -> str | None:
        """Who the header says it is; none where tokens are not required."""
        self._look_again()
        if not self.required and self._secret is None:
            return None
        if authorization is None or not authorization.startswith(SCHEME):
            raise Unauthenticated("missing bearer token")
        given = _digest(authorization.removeprefix(SCHEME))
        if self._secret is not None and hmac.compare_digest(given, self._secret):
            return None
        found: str | None = None
        for actor, digest in self._digests.items():  # all of them, so that time tells nothing
            if hmac.compare_digest(given, digest):
                found = actor
        if found is None:
            raise Unauthenticated("invalid bearer token")
        return found

    def _look_again(self) -> None:
        """Take over a file that changed; one that cannot be used leaves what was."""
        now = time.monotonic()
        if self._file is None or now - self._looked < LOOK_SECONDS:
            return
        self._looked = now
        stamp = self._file_stamp()
        if stamp == self._stamp:
            return
        try:
            digests = self._fixed | self._read_file()
            _refuse_shared(digests)
        except ServerInvalid as error:
            log.error("tokens were not renewed: %s", error.message)  # noqa: TRY400
            return
        self._stamp, self._digests = stamp, digests
        log.info("tokens were renewed: %d actors", len(digests))

    def _file_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._file) if self._file else None
        except OSError:
            return None
        return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)

    def _read_file(self) -> dict[str, bytes]:
        if self._file is None:
            return {}
        try:
            return _digests(self._file.read_text(encoding="utf-8"), str(self._file))
        except (OSError, UnicodeDecodeError) as error:
            raise ServerInvalid(f"the tokens in {self._file} cannot be read: {error}") from error


def _from_environment(environment: Mapping[str, str], *, with_map: bool) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    single = environment.get(TOKEN, "").strip()
    if single:
        found["default"] = _digest(single)
    if with_map and environment.get(TOKENS_JSON):
        found |= _digests(environment[TOKENS_JSON], TOKENS_JSON)
    return found


def _digests(text: str, source: str) -> dict[str, bytes]:
    """Actors and the digests of their tokens. Errors never quote the text: it is full of secrets."""
    try:
        pairs = json.loads(text, object_pairs_hook=tuple)
    except (ValueError, RecursionError):
        raise ServerInvalid(f"{source} is not a JSON object of actor: token") from None
    if not isinstance(pairs, tuple) or any(not _is_pair(pair) for pair in pairs):
        raise ServerInvalid(f"{source} must be a JSON object of actor: token, all of them texts")
    actors = [actor.strip() for actor, _ in pairs]
    if not all(actors) or len(set(actors)) != len(actors):
        raise ServerInvalid(f"{source} has an actor without a name, or one twice")
    if not all(token.strip() for _, token in pairs):
        raise ServerInvalid(f"{source} has an actor without a token")
    digests = {actor: _digest(pair[1].strip()) for actor, pair in zip(actors, pairs, strict=True)}
    _refuse_shared(digests)
    return digests


def _is_pair(pair: object) -> bool:
    return isinstance(pair, tuple) and all(map(_is_text, pair))


def _is_text(part: object) -> bool:
    """JSON can spell half a character; nobody can send one."""
    return isinstance(part, str) and part.encode("utf-8", "ignore").decode() == part


def _refuse_shared(digests: Mapping[str, bytes]) -> None:
    if len(set(digests.values())) != len(digests):
        raise ServerInvalid("two actors have the same token")


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
