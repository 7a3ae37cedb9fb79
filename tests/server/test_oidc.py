"""Tokens of OpenID Connect issuers, really signed: who is believed, and every way to cheat that is known."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm
from starlette.testclient import TestClient

import omnigraph
from omnigraph.server import boot, oidc
from omnigraph.server.access import Caller, Identity, Unauthenticated
from omnigraph.server.oidc import Issuers
from omnigraph.server.settings import OidcSettings, ServerInvalid, Settings, read_settings
from tests.server.world import SCHEMA

ISSUER, AUDIENCE = "https://login.example.org/", "omnigraph"


def _rsa(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


FIRST, SECOND = _rsa(), _rsa()


def _public(key: rsa.RSAPrivateKey, kid: str, **more: Any) -> dict[str, Any]:
    described: dict[str, Any] = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**described, "kid": kid, "use": "sig", "alg": "RS256", **more}


def _keys(*keys: dict[str, Any]) -> str:
    return json.dumps({"keys": list(keys)})


def _claims(**more: Any) -> dict[str, Any]:
    now = int(time.time())
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 300}
    return {name: value for name, value in {**usual, **more}.items() if value is not None}


def _token(key: Any = FIRST, kid: str | None = "one", alg: str = "RS256", **claims: Any) -> str:
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(_claims(**claims), key, algorithm=alg, headers=headers)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "keys.json").write_text(_keys(_public(FIRST, "one")))
    return tmp_path


def _identity(folder: Path, environment: dict[str, str] | None = None, **more: Any) -> Identity:
    settings = OidcSettings(ISSUER, AUDIENCE, str(folder / "keys.json"), **more)
    return Identity(None, environment or {}, issuers=Issuers([settings], []))


def _caller(found: Identity, token: str) -> Caller:
    return found.caller(f"Bearer {token}")


def _refused(found: Identity, token: str) -> None:
    with pytest.raises(Unauthenticated) as told:
        _caller(found, token)
    assert token not in told.value.render()


def test_a_signed_token_says_who_asks(folder: Path) -> None:
    found = _identity(folder)
    assert found.required
    assert _caller(found, _token()) == Caller("ada")
    assert _caller(found, _token(kid=None)) == Caller("ada"), "there is only one key"
    assert _caller(found, _token(aud=["other", AUDIENCE])) == Caller("ada")


def test_an_agent_asks_on_behalf_of_somebody(folder: Path) -> None:
    found = _identity(folder, actor_claim="act.sub", person_claim="sub", prefix="corp:")
    assert _caller(found, _token(act={"sub": "robot-7"})) == Caller("corp:robot-7", "ada")
    _refused(found, _token())


def test_static_tokens_are_still_good_and_cannot_be_impersonated(folder: Path) -> None:
    found = _identity(folder, {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"root": "static"}'})
    assert _caller(found, "static") == Caller("root")
    assert _caller(found, _token()) == Caller("ada")
    _refused(found, _token(sub="root"))


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"aud": "somebody-else"},
        {"aud": None},
        {"iss": "https://login.example.org.evil/"},
        {"iss": "https://login.example.org"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"sub": " ada"},
        {"sub": "ada\nroot"},
        {"sub": "x" * 300},
    ],
    ids=str,
)
def test_claims_that_convince_nobody(folder: Path, claims: dict[str, Any]) -> None:
    _refused(_identity(folder), _token(**claims))


@pytest.mark.parametrize(
    ("claim", "seconds"), [("exp", -3600), ("nbf", 3600), ("iat", 3600)], ids=["exp", "nbf", "iat"]
)
def test_times_that_convince_nobody(folder: Path, claim: str, seconds: int) -> None:
    claims: dict[str, Any] = {claim: int(time.time()) + seconds}
    _refused(_identity(folder), _token(**claims))


def test_clocks_may_differ_a_little(folder: Path) -> None:
    now = int(time.time())
    found = _identity(folder, skew_seconds=60)
    assert _caller(found, _token(exp=now - 30)).actor == "ada"
    _refused(found, _token(exp=now - 120))
    _refused(_identity(folder, skew_seconds=0), _token(exp=now - 30))


def _b64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _forged(header: dict[str, Any], key: bytes | None = None) -> str:
    """A token put together by hand, with an HMAC or without a signature."""
    body = f"{_b64(json.dumps(header).encode())}.{_b64(json.dumps(_claims()).encode())}"
    signed = b"" if key is None else hmac.new(key, body.encode(), hashlib.sha256).digest()
    return f"{body}.{_b64(signed)}"


def test_no_signature_and_a_public_key_as_a_secret_are_refused(folder: Path) -> None:
    found = _identity(folder)
    for alg in ("none", "None", "NONE", "", None):
        _refused(found, _forged({"alg": alg, "kid": "one"}))
    pem = FIRST.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    der = FIRST.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), der, (folder / "keys.json").read_bytes(), b"one"):
        _refused(found, _forged({"alg": "HS256", "kid": "one"}, secret))


def test_other_keys_algorithms_and_headers_are_refused(folder: Path) -> None:
    found = _identity(folder)
    _refused(found, _token(SECOND))
    _refused(found, _token(kid="two"))
    _refused(found, _token(alg="RS512"))
    _refused(found, _token(alg="PS256"))
    good = _token()
    head, body, signature = good.split(".")
    for wrong in (
        f"{head}.{body}.",
        f"{head}.{body}",
        f"{head}.{body}.{signature[:-4]}AAAA",
        f"{head}.{_b64(json.dumps(_claims(sub='root')).encode())}.{signature}",
        f"{good}.{good}",
        good + "." * 3,
        "." * 2,
        f"{head}.{_b64(b'[' * 5_000)}.{signature}",
        "a" * 20_000,
    ):
        _refused(found, wrong)
    own = _public(SECOND, "one")
    for extra in ({"jwk": own}, {"jku": "https://evil.example/keys"}, {"crit": ["exp"]}):
        header = {"kid": "one", **extra}
        _refused(found, jwt.encode(_claims(), SECOND, algorithm="RS256", headers=header))
    _refused(
        found, jwt.encode(_claims(), FIRST, algorithm="RS256", headers={"kid": "../keys.json"})
    )
    critical = {"kid": "one", "crit": ["exp"]}
    _refused(found, jwt.encode(_claims(), FIRST, algorithm="RS256", headers=critical))


def test_other_kinds_of_keys(tmp_path: Path) -> None:
    curve, edwards = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
    listed = (
        {**ECAlgorithm.to_jwk(curve.public_key(), as_dict=True), "kid": "ec"},
        {**OKPAlgorithm.to_jwk(edwards.public_key(), as_dict=True), "kid": "ed"},
    )
    (tmp_path / "keys.json").write_text(_keys(*listed))
    found = _identity(tmp_path, algorithms=("ES256", "EdDSA"))
    assert _caller(found, _token(curve, "ec", "ES256")).actor == "ada"
    assert _caller(found, _token(edwards, "ed", "EdDSA")).actor == "ada"
    only = _identity(tmp_path, algorithms=("ES256",))
    _refused(only, _token(edwards, "ed", "EdDSA"))


def test_settings_that_are_unsafe_do_not_start(folder: Path) -> None:
    secret = {"kty": "oct", "k": _b64(b"shared" * 8), "kid": "one", "alg": "HS256"}
    private = json.loads(
        json.dumps(RSAAlgorithm.to_jwk(FIRST, as_dict=True) | {"kid": "one", "alg": "RS256"})
    )
    unusable = {
        "secret": _keys(secret),
        "private": _keys(private),
        "weak": _keys(_public(_rsa(1024), "one")),
        "for encryption": _keys(_public(FIRST, "one", use="enc")),
        "twice": _keys(_public(FIRST, "one"), _public(SECOND, "one")),
        "empty": _keys(),
        "no list": "{}",
        "no json": "keys",
    }
    for text in unusable.values():
        (folder / "keys.json").write_text(text)
        with pytest.raises(ServerInvalid):
            _identity(folder)
    (folder / "keys.json").write_text(_keys(_public(FIRST, "one"), secret))
    for wrong in (
        {"algorithms": ("none",)},
        {"algorithms": ("RS256", "HS256")},
        {"algorithms": ()},
        {"skew_seconds": 3600},
        {"skew_seconds": -1},
    ):
        with pytest.raises(ServerInvalid):
            _identity(folder, **wrong)
    _refused(_identity(folder), _forged({"alg": "HS256", "kid": "one"}, b"shared" * 8))


def test_addresses_of_keys_are_on_the_list() -> None:
    def issuers(keys: str, *allowed: str) -> None:
        Issuers([OidcSettings(ISSUER, AUDIENCE, keys)], allowed)

    good = "https://login.example.org/keys"
    for keys, allowed in (
        (good, ()),
        (good, ("https://login.example.org.evil/",)),
        (good, ("https://login.example.org/other",)),
        ("https://login.example.org.evil/keys", ("https://login.example.org",)),
        ("https://login.example.org@evil/keys", ("https://login.example.org",)),
        ("https://login.example.org/a/../b", ("https://login.example.org/a",)),
        ("http://login.example.org/keys", ("http://login.example.org",)),
        ("ftp://login.example.org/keys", ("ftp://login.example.org",)),
    ):
        with pytest.raises(ServerInvalid):
            issuers(keys, *allowed)


def test_two_issuers_cannot_name_one_actor(folder: Path) -> None:
    keys = str(folder / "keys.json")
    one, other = OidcSettings(ISSUER, AUDIENCE, keys), OidcSettings("https://b/", AUDIENCE, keys)
    with pytest.raises(ServerInvalid):
        Issuers([one, other], [])
    with pytest.raises(ServerInvalid):
        Issuers([one, one], [])


# --- keys that change ------------------------------------------------------------------------------------------------


def test_keys_in_a_file_are_replaced(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oidc, "LOOK_SECONDS", 0.0)
    found = _identity(folder)
    _refused(found, _token(SECOND, "two"))
    (folder / "keys.json").write_text(_keys(_public(FIRST, "one"), _public(SECOND, "two")))
    assert _caller(found, _token(SECOND, "two")).actor == "ada"
    (folder / "keys.json").write_text(_keys(_public(SECOND, "two")))
    _refused(found, _token())
    (folder / "keys.json").write_text("broken")
    assert _caller(found, _token(SECOND, "two")).actor == "ada", "what was stays"


class Publisher:
    """Publishes keys over HTTP, and counts who asks."""

    def __init__(self) -> None:
        self.text, self.status, self.asked = _keys(_public(FIRST, "one")), 200, 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked += 1
                self.send_response(outer.status)
                if outer.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(outer.text.encode())

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/keys"


@contextmanager
def _publishing() -> Iterator[Publisher]:
    made = Publisher()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.server.shutdown()
        made.server.server_close()
        thread.join(10)


def test_a_server_follows_the_keys_of_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a real server: new keys are found when a token names one, and nobody can make it ask often."""
    omnigraph.init(str(tmp_path / "people"), SCHEMA)
    (tmp_path / "rules.yaml").write_text(
        "version: 1\ngroups: {all: [ada]}\nrules:\n"
        "  - {id: r, allow: {actors: {group: all}, actions: [read]}}\n"
    )
    with _publishing() as issuer:
        (tmp_path / "server.yaml").write_text(
            "graphs: {people: {uri: people, policy: rules.yaml}}\n"
            f"oidc_keys_from: ['{issuer.address}']\n"
            f"oidc: [{{issuer: '{ISSUER}', audience: {AUDIENCE}, keys: '{issuer.address}'}}]\n"
        )
        settings = read_settings(tmp_path / "server.yaml")
        assert isinstance(settings, Settings)
        server = boot.build(settings, {})
        client = TestClient(server, raise_server_exceptions=False)

        def status(token: str) -> int:
            headers = {"Authorization": f"Bearer {token}"}
            return client.get("/graphs/people/schema", headers=headers).status_code

        try:
            assert (status(_token()), issuer.asked) == (200, 1)
            assert status(_token(sub="eve")) == 403, "known, and allowed nothing"
            issuer.text = _keys(_public(SECOND, "two"))
            assert [status(_token(SECOND, "two")) for _ in range(5)] == [401] * 5
            assert issuer.asked == 1, "it was asked a moment ago"
            monkeypatch.setattr(oidc, "AGAIN_SECONDS", 0.0)
            assert (status(_token(SECOND, "two")), issuer.asked) == (200, 2)
            assert status(_token()) == 401, "the old key is gone"
            issuer.status = 302
            assert status(_token(kid="three")) == 401
            assert issuer.asked == 4, "a redirection is not followed"
            assert status(_token(SECOND, "two")) == 200, "what was stays"
            monkeypatch.setattr(oidc, "STALE_SECONDS_MAX", 0.0)
            assert status(_token(SECOND, "two")) == 401, "but not for ever"
        finally:
            server.close()


def test_an_issuer_that_is_not_there_lets_the_server_start() -> None:
    place = "http://127.0.0.1:9/keys"
    found = Issuers([OidcSettings(ISSUER, AUDIENCE, place)], [place])
    _refused(Identity(None, {}, issuers=found), _token())
