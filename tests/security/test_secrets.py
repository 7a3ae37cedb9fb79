"""Secrets are planted wherever one can be given; whatever goes wrong then, none of them comes out again."""

from __future__ import annotations

import base64
import json
import logging
import socket
import traceback
import zlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from starlette.testclient import TestClient

import omnigraph
from omnigraph.cli import context
from omnigraph.cli.main import main
from omnigraph.errors import OmnigraphError
from omnigraph.graph import Graph
from omnigraph.remote.graph import RemoteGraph
from omnigraph.server import boot
from omnigraph.server.routes import ROUTES
from omnigraph.server.settings import GraphSettings, Settings
from tests.server.process import serving
from tests.server.world import PEOPLE, RECORDS, SCHEMA
from tests.support.faults import Effect, Fault
from tests.support.faulty_s3 import FaultyS3
from tests.support.spans import kept_spans

PLANTED = {
    "AWS_ACCESS_KEY_ID": "AKPLANTED7QXW",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+Zx81",
    "AWS_SESSION_TOKEN": "planted-session-9fYw",
    "OMNIGRAPH_TOKEN": "planted-token-kk3v",
    "OMNIGRAPH_SERVER_BEARER_TOKEN": "planted-bearer-0u8b",
    "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"bob": "planted-map-t6mm"}',
    "OMNIGRAPH_EMBED_API_KEY": "planted-embed-c1ce",
}
PASSWORD, RULE, BODY = "planted-password-77ad", "planted-rule-e5sd", "planted-body-d0ce"
SECRETS = (
    *PLANTED.values(), "planted-map-t6mm", "planted-file-q2wi", PASSWORD, RULE, BODY,
)  # fmt: skip
POLICY = f"""
version: 1
# {RULE}
groups: {{all: [default, bob, ann]}}
rules:
  - id: all
    allow: {{actors: {{group: all}}, actions: [read, export, change]}}
"""
ASK = "match { $p: Person } return { $p.name }"


def spellings(secret: str) -> Iterator[str]:
    """A secret as it might be written somewhere."""
    yield secret
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode().rstrip("=")
    yield secret.encode().hex()


def assert_nothing_is_told(output: str, *, but: tuple[str, ...] = ()) -> None:
    for secret in SECRETS:
        for spelling in spellings(secret):
            at = output.find(spelling)
            if secret not in but:
                assert at < 0, f"{secret} is told: …{output[max(0, at - 300) : at + 100]}…"


class Outputs:
    """Everything that was written anywhere during a test."""

    def __init__(self, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
        caplog.set_level(logging.DEBUG)
        self._caplog, self._capfd = caplog, capfd
        self._seen: list[str] = []

    def add(self, text: object) -> None:
        self._seen.append(str(text))

    def run(self, *words: str) -> int:
        """One command line."""
        context.config.cache_clear()
        self.add(" ".join(words[:1]))
        return main(list(words))

    def all(self) -> str:
        captured = self._capfd.readouterr()
        return "\n".join([*self._seen, self._caplog.text, captured.out, captured.err])


@pytest.fixture
def outputs(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> Outputs:
    return Outputs(caplog, capfd)


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMNIGRAPH_DEBUG", "1")
    yield
    context.config.cache_clear()


@pytest.fixture
def store(faulty_s3: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> FaultyS3:
    """An S3 server that is asked with the planted credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, PLANTED[name])
    return faulty_s3


def _deny(store: FaultyS3) -> None:
    store.inject(Fault(Effect.DIE_BEFORE, durable=False, deny=True))


def _closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


# --- the command line ------------------------------------------------------------------------------------------------


def _every_command(outputs: Outputs, uri: str, folder: Path) -> None:
    (folder / "s.pg").write_text(SCHEMA)
    (folder / "r.jsonl").write_text("\n".join(map(json.dumps, RECORDS)))
    for words in (
        ("init", "--schema", str(folder / "s.pg"), uri),
        ("load", "--store", uri, "--data", str(folder / "r.jsonl")),
        ("query", "--store", uri, "-e", ASK),
        ("query", "--store", uri, "-e", ASK, "--json"),
        ("branch", "list", "--store", uri),
        ("export", "--store", uri, "--out", str(folder / "out")),
        ("doctor", "--store", uri),
        ("load", "--store", str(folder / "none"), "--data", f"{uri}/records.jsonl"),
    ):
        outputs.run(*words)


def test_a_store_that_works_tells_nothing(
    store: FaultyS3, outputs: Outputs, tmp_path: Path
) -> None:
    _every_command(outputs, store.address.uri("g"), tmp_path)
    assert_nothing_is_told(outputs.all())
    stored = b"".join(_plain(body) for body in store.objects().values())
    assert_nothing_is_told(stored.decode("latin-1"))


def _plain(body: bytes) -> bytes:
    """What is stored, unpacked where it is packed."""
    try:
        return zlib.decompress(body)
    except zlib.error:
        return body


def test_a_store_that_denies_tells_nothing(
    store: FaultyS3, outputs: Outputs, tmp_path: Path
) -> None:
    uri = store.address.uri("g")
    omnigraph.init(uri, SCHEMA)
    _deny(store)
    _every_command(outputs, uri, tmp_path)
    said = outputs.all()
    assert "store_denied" in said
    assert_nothing_is_told(said)


def test_a_bucket_that_is_not_there_tells_nothing(
    store: FaultyS3, outputs: Outputs, tmp_path: Path
) -> None:
    _every_command(outputs, "s3://no-such-bucket/g", tmp_path)
    assert_nothing_is_told(outputs.all())


def test_a_store_nobody_reaches_tells_nothing(
    outputs: Outputs, store: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{_closed_port()}")
    assert outputs.run("query", "--store", store.address.uri("g"), "-e", ASK) != 0
    assert_nothing_is_told(outputs.all())


@pytest.mark.parametrize(
    "uri",
    [
        f"s3://ann:{PASSWORD}@bucket/g",
        f"postgres://ann:{PASSWORD}@127.0.0.1/people",
        f"http://ann:{PASSWORD}@127.0.0.1:9/graphs/g",
        f"http://ann:{PASSWORD}@127.0.0.1:9/elsewhere",
        f"gs://bucket/g?secret={PASSWORD}",
    ],
)
def test_passwords_in_addresses_are_not_repeated(
    outputs: Outputs, uri: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    graph = str(tmp_path / "g")
    omnigraph.init(graph, SCHEMA)
    for words in (
        ("query", "--store", uri, "-e", ASK),
        ("log", "--store", uri, "--json"),
        ("load", "--store", graph, "--data", f"{uri}/r.jsonl"),
    ):
        assert outputs.run(*words) != 0
    monkeypatch.setenv("OMNIGRAPH_STORE", uri)
    if "@" in uri:
        assert outputs.run("config", "show", "--origin") == 0
        assert outputs.run("config", "show", "--json") == 0
    assert_nothing_is_told(outputs.all())


def test_values_that_hold_credentials_do_not_show_them(store: FaultyS3, outputs: Outputs) -> None:
    graph = omnigraph.init(store.address.uri("g"), SCHEMA)
    for thing in (graph, graph.repository, graph.repository.place, graph.snapshot()):
        outputs.add(repr(thing))
    try:
        raise RuntimeError(f"{graph.repository.place}")
    except RuntimeError:
        outputs.add(traceback.format_exc())
    assert_nothing_is_told(outputs.all())


# --- the server ------------------------------------------------------------------------------------------------------


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    return kept_spans(monkeypatch)


def _settings(folder: Path, uri: str) -> Settings:
    (folder / "tokens.json").write_text(json.dumps({"ann": "planted-file-q2wi"}))
    (folder / "p.yaml").write_text(POLICY)
    graphs = {"g": GraphSettings(uri=uri, policy=str(folder / "p.yaml"))}
    return Settings(graphs=graphs, tokens_file=str(folder / "tokens.json"))


def _every_route(client: TestClient, outputs: Outputs) -> None:
    """Every route, as somebody and as nobody, with bodies it does and does not understand."""
    tokens = ("planted-bearer-0u8b", "planted-file-q2wi", "planted-wrong")
    for route in ROUTES:
        path = route.full_path.replace("{graph_id}", "g").replace("{", "").replace("}", "")
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            content = None if route.method == "GET" else json.dumps({"secret": BODY}).encode()
            answer = client.request(route.method, path, content=content, headers=headers)
            outputs.add(f"{answer.status_code} {answer.headers} {answer.text}")


def test_a_server_tells_nothing(
    store: FaultyS3,
    outputs: Outputs,
    spans: InMemorySpanExporter,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While all is well, while the store denies, and while the code itself is wrong."""
    uri = store.address.uri("g")
    omnigraph.init(uri, SCHEMA).load(RECORDS)
    server = boot.build(_settings(tmp_path, uri))
    client = TestClient(server, raise_server_exceptions=False)
    _every_route(client, outputs)

    def broken(self: Graph, *_: object, **__: object) -> None:
        raise RuntimeError(f"{vars(self._repo)} {self._repo.place}")

    with monkeypatch.context() as patch:
        patch.setattr(Graph, "query", broken)
        headers = {"Authorization": "Bearer planted-bearer-0u8b"}
        told = client.post("/graphs/g/query", json={"query": PEOPLE}, headers=headers)
        assert told.status_code == 500
    _deny(store)
    _every_route(client, outputs)
    server.close()
    for span in spans.get_finished_spans():
        outputs.add(span.to_json())
    assert_nothing_is_told(outputs.all())
    stored = b"".join(_plain(body) for body in store.objects().values())
    assert_nothing_is_told(stored.decode("latin-1"))


def test_signed_addresses_hold_no_secret_key(store: FaultyS3, outputs: Outputs) -> None:
    """They name the key and the session, as they must; what signs them stays here."""
    graph = omnigraph.init(store.address.uri("g"), SCHEMA)
    signed = graph.repository.objects.signed("x", 60)  # type: ignore[attr-defined]
    assert "Signature=" in str(signed)
    outputs.add(signed)
    named = (PLANTED["AWS_ACCESS_KEY_ID"], PLANTED["AWS_SESSION_TOKEN"])
    assert_nothing_is_told(outputs.all(), but=named)


@pytest.mark.parametrize("broken", ["tokens", "policy", "store"])
def test_a_server_that_cannot_start_tells_nothing(
    outputs: Outputs, tmp_path: Path, broken: str
) -> None:
    graph = str(tmp_path / "g")
    omnigraph.init(graph, SCHEMA)
    settings = _settings(tmp_path, graph if broken != "store" else f"s3://ann:{PASSWORD}@b/g")
    if broken == "tokens":
        (tmp_path / "tokens.json").write_text('{"ann": "planted-file-q2wi", "ann": ')
    if broken == "policy":
        (tmp_path / "p.yaml").write_text(f"{POLICY}\n  - {{id: {RULE}x, deny: [{{")
    with pytest.raises(OmnigraphError) as failure:
        boot.build(settings)
    outputs.add(failure.value.render())
    outputs.add(json.dumps(failure.value.to_json(), default=str))
    assert_nothing_is_told(outputs.all(), but=(RULE,) if broken == "policy" else ())


def test_a_process_under_debugging_tells_nothing(store: FaultyS3, tmp_path: Path) -> None:
    """What libraries say when they are told to say everything."""
    uri = store.address.uri("g")
    omnigraph.init(uri, SCHEMA).load(RECORDS)
    log = tmp_path / "stderr"
    loud = {"RUST_LOG": "debug", "LANCE_LOG": "debug", "PYTHONASYNCIODEBUG": "1"}
    with (
        log.open("w") as stderr,
        serving("--store", uri, environment=loud, stderr=stderr) as running,
    ):
        client = omnigraph.open(running.url())
        with pytest.raises(OmnigraphError):
            client.query(PEOPLE)
        served = RemoteGraph(running.url(), PLANTED["OMNIGRAPH_SERVER_BEARER_TOKEN"])
        assert len(served.query(PEOPLE)) == 2
        running.stop()
    assert_nothing_is_told(log.read_text(errors="replace"))
