"""Bearer tokens of OpenID Connect issuers: signed, for this server, not expired, by a key the issuer publishes now.

Algorithms are pinned in the settings to those with a public key, and a key is only used with the one algorithm it is
for, so a token cannot choose how it is verified: neither `none`, nor a public key taken as a shared secret. Keys come
from a file, or from an address on the operator's list; an unknown key is looked up again, but not often.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import urllib3

from omnigraph.model.frozen import frozen
from omnigraph.server.settings import OidcSettings, ServerInvalid

if TYPE_CHECKING:
    from jwt import PyJWK

ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)
SKEW_SECONDS_MAX = 300
TOKEN_CHARACTERS_MAX = 16_384
NAME_CHARACTERS_MAX = 200  # of an actor or a person
KEYS_BYTES_MAX = 1 << 20
KEYS_MAX = 100
RSA_BITS_MIN = 2048
LOOK_SECONDS = 1.0  # between two checks of a file
FETCH_SECONDS_MAX = 5.0
FRESH_SECONDS = 600.0  # how long fetched keys are used without fetching again
AGAIN_SECONDS = 30.0  # between two requests for keys, whatever tokens need
STALE_SECONDS_MAX = 86_400.0  # how long they are used while the issuer cannot be reached
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})

log = logging.getLogger("omnigraph.server.identity")


class TokenRefused(Exception):
    """Why a token is rejected; for the log."""


@frozen
class Claimed:
    """The actor a token names, and on whose behalf they act."""

    actor: str
    person: str | None = None


class Keys:
    """The public keys of an issuer by their ids, as they are now."""

    def __init__(self, source: str, algorithms: Sequence[str]) -> None:
        self._source = source
        self._algorithms = frozenset(algorithms)
        self._is_address = "://" in source
        self._lock = threading.Lock()
        self._keys: Mapping[str | None, PyJWK] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._looked = self._fetched = float("-inf")
        if self._is_address:
            self.refresh()
        else:
            self._keys, self._stamp = self._from_file(), self._file_stamp()

    def find(self, kid: str | None) -> PyJWK:
        """The key with an id; a token without one is verified with the only key, if there is just one."""
        if not self._is_address:
            self._look_again()
        elif time.monotonic() - self._fetched > STALE_SECONDS_MAX:
            raise TokenRefused("the keys of the issuer are too old")
        keys = self._keys
        if kid is None and len(keys) == 1:
            return next(iter(keys.values()))
        if kid not in keys:
            raise TokenRefused("no key of the issuer has this id")
        return keys[kid]

    def wants(self, kid: str | None) -> bool:
        """Whether to fetch the issuer's keys first."""
        now = time.monotonic()
        if not self._is_address or now - self._looked < AGAIN_SECONDS:
            return False
        return now - self._fetched > FRESH_SECONDS or (kid not in self._keys and kid is not None)

    def refresh(self) -> None:
        """Fetch the issuer's keys; if it cannot be reached, the old ones stay."""
        with self._lock:
            if time.monotonic() - self._looked < AGAIN_SECONDS:
                return
            self._looked = time.monotonic()
            try:
                self._keys = self._parsed(_fetched(self._source))
                self._fetched = time.monotonic()
            except (ServerInvalid, urllib3.exceptions.HTTPError) as error:
                log.warning("keys of %s were not renewed: %s", self._source, type(error).__name__)

    def _look_again(self) -> None:
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        self._looked, stamp = now, self._file_stamp()
        if stamp == self._stamp:
            return
        try:
            self._keys = self._from_file()
        except ServerInvalid as error:
            log.error("keys were not renewed: %s", error.message)  # noqa: TRY400
            return
        self._stamp = stamp

    def _file_stamp(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._source)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _from_file(self) -> Mapping[str | None, PyJWK]:
        try:
            return self._parsed(Path(self._source).read_bytes()[: KEYS_BYTES_MAX + 1])
        except OSError as error:
            raise ServerInvalid(f"the keys in {self._source} cannot be read: {error}") from error

    def _parsed(self, raw: bytes) -> Mapping[str | None, PyJWK]:
        """The usable keys; those for other purposes are left out, as are shared secrets."""
        import jwt

        try:
            listed = json.loads(raw)["keys"] if len(raw) <= KEYS_BYTES_MAX else None
        except (ValueError, KeyError, TypeError, RecursionError):
            listed = None
        if not isinstance(listed, list) or len(listed) > KEYS_MAX:
            raise ServerInvalid(f"{self._source} is not a JSON Web Key Set")
        found: dict[str | None, PyJWK] = {}
        for each in listed:
            try:
                key = jwt.PyJWK.from_dict(each)
            except (jwt.PyJWTError, TypeError, ValueError, AttributeError, KeyError):
                continue
            if key.algorithm_name in self._algorithms and _is_usable(key, each):
                if key.key_id in found:
                    raise ServerInvalid(f"{self._source} has two keys with the same id")
                found[key.key_id] = key
        if not found:
            raise ServerInvalid(f"{self._source} has no key for {', '.join(self._algorithms)}")
        return found


def _is_usable(key: PyJWK, described: Mapping[str, Any]) -> bool:
    bits = getattr(key.key, "key_size", RSA_BITS_MIN) if key.key_type == "RSA" else RSA_BITS_MIN
    is_public = "d" not in described and key.key_type in ("RSA", "EC", "OKP")
    return is_public and described.get("use", "sig") == "sig" and bits >= RSA_BITS_MIN


def _fetched(address: str) -> bytes:
    """The content of an address, within limits; redirects are not followed."""
    with urllib3.PoolManager(retries=False) as pool:
        answer = pool.request(
            "GET",
            address,
            redirect=False,
            preload_content=False,
            timeout=urllib3.Timeout(total=FETCH_SECONDS_MAX),
            headers={"Accept": "application/json"},
        )
        raw: bytes = answer.read(KEYS_BYTES_MAX + 1)
        answer.release_conn()
    if answer.status != 200:
        raise ServerInvalid(f"{address} answered with status {answer.status}")
    return raw


class Issuer:
    """A trusted issuer of tokens."""

    def __init__(self, settings: OidcSettings, allowed: Sequence[str]) -> None:
        try:
            import jwt  # noqa: F401
        except ModuleNotFoundError as missing:
            raise ServerInvalid(
                "tokens of an issuer need the package PyJWT",
                help="Install it with `pip install 'omnigraph[oidc]'`.",
            ) from missing
        _check(settings, allowed)
        self.issuer = settings.issuer
        self._settings = settings
        self._keys = Keys(settings.keys, settings.algorithms)

    def prepare(self, kid: str | None) -> bool:
        """Whether the keys should be renewed, in a thread, before a token is checked."""
        return self._keys.wants(kid)

    def renew(self) -> None:
        self._keys.refresh()

    def claimed(self, token: str, header: Mapping[str, Any]) -> Claimed:
        """The caller, if the token is valid."""
        import jwt

        settings, kid = self._settings, header.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise TokenRefused("the id of the key is not a string")
        key = self._keys.find(kid)
        if header.get("alg") != key.algorithm_name or "crit" in header:
            raise TokenRefused("the token names another algorithm than that of its key")
        try:
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm_name],
                audience=settings.audience,
                issuer=settings.issuer,
                leeway=settings.skew_seconds,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError as error:
            raise TokenRefused(type(error).__name__) from None
        actor = _claim(claims, settings.actor_claim)
        if actor is None:
            raise TokenRefused(f"the claim {settings.actor_claim} is missing")
        person = settings.person_claim and _claim(claims, settings.person_claim)
        return Claimed(settings.prefix + actor, person or None)


def _check(settings: OidcSettings, allowed: Sequence[str]) -> None:
    wrong = set(settings.algorithms) - ALGORITHMS
    if wrong or not settings.algorithms:
        named = ", ".join(sorted(wrong)) or "an empty list"
        raise ServerInvalid(f"oidc algorithms must have a public key; {named} cannot be used")
    if not 0 <= settings.skew_seconds <= SKEW_SECONDS_MAX:
        raise ServerInvalid(f"oidc skew_seconds must be 0 to {SKEW_SECONDS_MAX}")
    if not settings.issuer or not settings.audience:
        raise ServerInvalid("oidc needs an issuer and an audience")
    if "://" in settings.keys:
        _check_address(settings.keys, allowed)


def _check_address(address: str, allowed: Sequence[str]) -> None:
    parts = urlsplit(address)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOCAL):
        raise ServerInvalid("the keys of an issuer must come over https")
    if "@" in parts.netloc or not any(_is_below(address, place) for place in allowed):
        raise ServerInvalid(
            "the address of an issuer's keys is not on the list",
            help="Add it, or a prefix of it, to `oidc_keys_from`.",
        )


def _is_below(address: str, place: str) -> bool:
    """Whether an address is on a place's host and below its path."""
    one, other = urlsplit(address), urlsplit(place)
    same = (one.scheme, one.netloc) == (other.scheme, other.netloc) and bool(other.netloc)
    path = other.path.rstrip("/")
    inside = one.path == path or one.path.startswith(f"{path}/")
    return same and inside and ".." not in one.path.split("/")


def _claim(claims: Mapping[str, Any], path: str) -> str | None:
    """A claim by its name, or by a dotted path such as `act.sub`."""
    found: Any = claims.get(path)
    if found is None and "." in path:
        found = claims
        for name in path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, str) or not 0 < len(found) <= NAME_CHARACTERS_MAX:
        return None
    return found if found.isprintable() and found == found.strip() else None


class Issuers:
    """All trusted issuers."""

    def __init__(self, settings: Sequence[OidcSettings], allowed: Sequence[str]) -> None:
        self._issuers = {each.issuer: Issuer(each, allowed) for each in settings}
        if len(self._issuers) != len(settings):
            raise ServerInvalid("duplicate oidc issuer")
        if len({each.prefix for each in settings}) != len(settings):
            raise ServerInvalid(
                "two oidc issuers could name the same actor",
                help="Give each its own `prefix`.",
            )

    def __bool__(self) -> bool:
        return bool(self._issuers)

    def renewal(self, token: str) -> Issuer | None:
        """The issuer whose keys should be renewed before this token is checked, if any."""
        try:
            issuer, header = self._read(token)
        except TokenRefused:
            return None
        kid = header.get("kid")
        return issuer if issuer.prepare(kid if isinstance(kid, str) else None) else None

    def claimed(self, token: str) -> Claimed:
        """The claims of a verified token; raises if it is rejected."""
        issuer, header = self._read(token)
        return issuer.claimed(token, header)

    def _read(self, token: str) -> tuple[Issuer, Mapping[str, Any]]:
        """The issuer a token names, and its header; neither is verified yet."""
        import jwt

        if len(token) > TOKEN_CHARACTERS_MAX or token.count(".") != 2:
            raise TokenRefused("it is not a signed token")
        try:
            found = jwt.decode_complete(token, options={"verify_signature": False})
        except (jwt.PyJWTError, ValueError, RecursionError):
            raise TokenRefused("it cannot be read") from None
        issuer = found["payload"].get("iss")
        if not isinstance(issuer, str) or issuer not in self._issuers:
            raise TokenRefused("its issuer is not known")
        return self._issuers[issuer], found["header"]
