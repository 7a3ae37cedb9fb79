from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec

import numpy as np
import pytest

from omnigraph.errors import Kind
from omnigraph.read.search.embed import EmbedModelMismatch, configured, embed_text, embed_texts
from omnigraph.read.search.providers import (
    RETRY,
    EmbedNotConfigured,
    EmbedRefused,
    EmbedUnavailable,
    Float32s,
    GeminiProvider,
    LocalProvider,
    MockProvider,
    OpenAiProvider,
    fnv1a64,
)
from tests.unit.read.search.embedding_server import Answer, EmbeddingServer, embedding_server


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


@dataclass
class Pauses:
    """Takes the place of sleeping, and counts."""

    seconds: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@dataclass
class Recorder:
    """A provider that counts the texts it is asked for."""

    name: str
    model: str | None = None
    batch_texts_max: int = 2
    requests_max: int = 1
    asked: list[list[str]] = field(default_factory=list)
    gives: float = 1.0

    def embed(self, texts: Sequence[str], dim: int, model: str | None) -> Float32s:
        self.asked.append(list(texts))
        return np.full((len(texts), dim), self.gives, np.float32)


# --- the mock ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_the_hash_is_fnv1a(data: bytes, expected: int) -> None:
    assert fnv1a64(data) == expected


def mock_by_hand(text: str, dim: int) -> list[float]:
    seed, values = fnv1a64(text.encode()), []
    for _ in range(dim):
        seed ^= (seed << 13) & (2**64 - 1)
        seed ^= seed >> 7
        seed ^= (seed << 17) & (2**64 - 1)
        values.append(float(np.float32(2) * np.float32(seed / 2**64) - np.float32(1)))
    norm = sum(value * value for value in values) ** 0.5
    return [value / norm for value in values]


@pytest.mark.parametrize("text", ["", "tea", "Grüße 東京", "x" * 1000])
def test_the_mock_follows_its_recipe(text: str) -> None:
    found = embed_text(text, 17, provider=MockProvider())
    assert found.dtype == np.float32
    assert found == pytest.approx(mock_by_hand(text, 17), abs=1e-7)


def test_the_mock_never_changes() -> None:
    """These numbers are stored in graphs of users' tests."""
    found = embed_text("hello", 4, provider=MockProvider())
    assert found == pytest.approx([-0.35281405, 0.57437843, 0.49150062, -0.55139714], abs=1e-7)


# --- caching and checking ----------------------------------------------------------------------------------------


def test_equal_texts_are_embedded_once_and_remembered() -> None:
    provider = Recorder("once")
    assert embed_texts(["a", "b", "a", "c"], 3, provider=provider).shape == (4, 3)
    assert provider.asked == [["a", "b"], ["c"]]
    embed_texts(["c", "d"], 3, provider=provider)
    assert provider.asked[2:] == [["d"]]


def test_another_model_dimension_or_provider_is_another_vector() -> None:
    provider = Recorder("apart")
    embed_text("a", 3, "m1", provider=provider)
    embed_text("a", 3, "m2", provider=provider)
    embed_text("a", 4, "m2", provider=provider)
    embed_text("a", 4, "m2", provider=Recorder("elsewhere", asked=provider.asked))
    assert provider.asked == [["a"]] * 4


def test_no_texts_need_no_request() -> None:
    provider = Recorder("idle")
    assert embed_texts([], 3, provider=provider).shape == (0, 3)
    assert provider.asked == []


@pytest.mark.parametrize("gives", [0.0, float("nan"), float("inf")])
def test_useless_vectors_are_refused_and_not_remembered(gives: float) -> None:
    provider = Recorder(f"useless {gives}", gives=gives)
    with pytest.raises(EmbedUnavailable) as caught:
        embed_text("a", 3, provider=provider)
    assert caught.value.kind is Kind.UNAVAILABLE
    provider.gives = 1.0
    assert embed_text("a", 3, provider=provider).tolist() == [1.0, 1.0, 1.0]


def test_a_mismatch_names_both_models() -> None:
    with pytest.raises(EmbedModelMismatch, match=r"'small'.*'large'"):
        embed_text("a", 3, "small", provider=Recorder("bound", model="large"))


# --- configuration -----------------------------------------------------------------------------------------------


def configure(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    for name in ("PROVIDER", "MODEL", "URL", "BASE_URL", "API_KEY", "REQUESTS_PER_MINUTE_MAX"):
        monkeypatch.delenv(f"OMNIGRAPH_EMBED_{name}", raising=False)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in values.items():
        monkeypatch.setenv(f"OMNIGRAPH_EMBED_{name}", value)


def test_the_environment_chooses_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    configure(monkeypatch, PROVIDER="mock", MODEL="m")
    assert configured() == MockProvider("m")
    configure(monkeypatch, PROVIDER="openai", MODEL="m", URL="https://e.example/v1", API_KEY="k")
    assert configured() == OpenAiProvider("https://e.example/v1", "m", "k")
    configure(monkeypatch, PROVIDER="openai")
    assert configured().name == "https://api.openai.com/v1"
    configure(monkeypatch, PROVIDER="local")
    assert configured() == LocalProvider("wordllama")


def test_names_of_other_products_are_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://e.example/v1"
    configure(monkeypatch, PROVIDER="openai-compatible", MODEL="m", BASE_URL=url)
    monkeypatch.setenv("OPENAI_API_KEY", "k1")
    monkeypatch.setenv("GEMINI_API_KEY", "k2")
    assert configured() == OpenAiProvider(url, "m", "k1")
    configure(monkeypatch, PROVIDER="gemini", MODEL="m", URL=url, REQUESTS_PER_MINUTE_MAX="30")
    monkeypatch.setenv("GEMINI_API_KEY", "k2")
    assert configured() == GeminiProvider(url, "m", "k2", requests_per_minute_max=30.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "no embedding provider is configured"),
        ({"PROVIDER": "oracle"}, "'oracle'"),
        (
            {"PROVIDER": "openai", "REQUESTS_PER_MINUTE_MAX": "fast"},
            "REQUESTS_PER_MINUTE_MAX must be a number",
        ),
        ({"PROVIDER": "openai", "API_KEY": "two\nlines"}, "not allowed in a key"),
    ],
)
def test_a_useless_configuration_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, str], message: str
) -> None:
    configure(monkeypatch, **values)
    with pytest.raises(EmbedNotConfigured, match=message) as caught:
        embed_text("a", 3)
    assert "two" not in caught.value.render()


@pytest.mark.parametrize(
    "url",
    [
        "http://e.example/v1",
        "ftp://127.0.0.1/v1",
        "file:///etc/passwd",
        "https://user:secret@e.example",
        "http://127.0.0.1.e.example/v1",
        "https://",
        "",
    ],
)
def test_only_https_or_this_machine_is_asked(url: str) -> None:
    with pytest.raises(EmbedNotConfigured) as caught:
        OpenAiProvider(url)
    assert "secret" not in caught.value.render()


@pytest.mark.parametrize("url", ["http://localhost:1/v1", "http://[::1]:1", "http://127.0.0.9:1"])
def test_plain_http_is_fine_on_this_machine(url: str) -> None:
    assert OpenAiProvider(url).name == url


def test_the_model_that_comes_with_its_package_knows_what_texts_mean() -> None:
    """With no network: a dog is nearer to a puppy than to a market."""
    texts = ["a dog runs in the park", "a puppy plays outside", "the stock market fell today"]
    for dim in (64, 128, 256):
        found = embed_texts(texts, dim, "wordllama", provider=LocalProvider())
        unit = found / np.linalg.norm(found, axis=1, keepdims=True)
        assert unit[0] @ unit[1] > unit[0] @ unit[2] + 0.2
    with pytest.raises(EmbedRefused, match="64, 128 or 256"):
        embed_text("tea", 100, provider=LocalProvider())


def test_the_local_provider_says_which_package_it_needs() -> None:
    if find_spec("model2vec") is None:
        with pytest.raises(EmbedNotConfigured, match="model2vec"):
            LocalProvider("some/model")
    else:
        assert LocalProvider("some/model").model == "some/model"


# --- over HTTP ---------------------------------------------------------------------------------------------------


def test_vectors_come_back_in_the_order_of_the_texts(server: EmbeddingServer) -> None:
    provider = OpenAiProvider(server.url, "m", "secret-key")
    found = embed_texts(["one", "four", "a"], 2, provider=provider)
    assert found.tolist() == [[3.0, 1.0], [4.0, 1.0], [1.0, 1.0]]
    assert server.asked == [{"model": "m", "input": ["one", "four", "a"], "dimensions": 2}]
    assert server.paths == ["/v1/embeddings"]
    assert server.keys == ["Bearer secret-key"]


def test_gemini_is_asked_in_its_own_way(server: EmbeddingServer) -> None:
    provider = GeminiProvider(server.url, "models/m", "secret-key")
    found = embed_texts(["one", "four"], 2, provider=provider)
    assert found.tolist() == [[3.0, 1.0], [4.0, 1.0]]
    first = server.asked[0]["requests"][0]
    assert first == {
        "model": "models/m",
        "content": {"parts": [{"text": "one"}]},
        "outputDimensionality": 2,
    }
    assert server.paths == ["/v1/models/m:batchEmbedContents"]
    assert server.keys == ["secret-key"]
    server.script = [Answer(body='{"embeddings": [{"values": [1.0, 2.0]}]}')]
    with pytest.raises(EmbedUnavailable, match="one vector per text"):
        embed_texts(["two", "texts"], 2, provider=provider)


def test_requests_keep_their_distance(server: EmbeddingServer) -> None:
    pauses = Pauses()
    provider = OpenAiProvider(
        server.url,
        "m",
        batch_texts_max=1,
        requests_per_minute_max=6.0,
        retry=replace(RETRY, sleep=pauses),
    )
    embed_texts(["one", "two", "three"], 2, provider=provider)
    # Nobody really waits, so that the turns lie ten seconds apart.
    assert sorted(pauses.seconds) == pytest.approx([0.0, 10.0, 20.0], abs=2.0)


def test_the_environment_leads_to_the_server(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(monkeypatch, PROVIDER="openai", URL=server.url + "/", MODEL="m")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # must not be used for this machine
    assert embed_text("four", 2, "m").tolist() == [4.0, 1.0]
    assert server.keys == [None]


def test_large_loads_go_in_batches(server: EmbeddingServer) -> None:
    provider = OpenAiProvider(server.url, "m", batch_texts_max=10)
    texts = ["x" * (i + 1) for i in range(95)]
    found = embed_texts(texts, 2, provider=provider)
    assert found[:, 0].tolist() == [float(len(text)) for text in texts]
    assert sorted(len(asked["input"]) for asked in server.asked) == [5, *[10] * 9]


def test_the_model_of_the_schema_is_used_when_none_is_configured(server: EmbeddingServer) -> None:
    provider = OpenAiProvider(server.url)
    embed_text("a", 2, "from-schema", provider=provider)
    assert server.asked[0]["model"] == "from-schema"
    with pytest.raises(EmbedNotConfigured, match="OMNIGRAPH_EMBED_MODEL"):
        embed_text("b", 2, provider=provider)


def test_a_passing_failure_is_tried_again(server: EmbeddingServer) -> None:
    pauses = Pauses()
    server.script = [
        Answer(503, "busy"),
        Answer(429, "slow down", {"Retry-After": "7"}),
        Answer(429, "slow down", {"Retry-After": "86400"}),
    ]
    found = embed_text(
        "abc", 2, provider=OpenAiProvider(server.url, "m", retry=replace(RETRY, sleep=pauses))
    )
    assert found.tolist() == [3.0, 1.0]
    assert 0.25 <= pauses.seconds[0] <= 0.5
    assert pauses.seconds[1:] == [7.0, RETRY.pause_seconds_max]


@pytest.mark.parametrize("answer", [Answer(500, "down"), Answer(200, "not json")])
def test_a_lasting_failure_is_unavailable(server: EmbeddingServer, answer: Answer) -> None:
    pauses = Pauses()
    server.script = [answer] * 10
    with pytest.raises(EmbedUnavailable) as caught:
        embed_text(
            "abc",
            2,
            provider=OpenAiProvider(
                server.url, "m", retry=replace(RETRY, attempts_max=3, sleep=pauses)
            ),
        )
    assert caught.value.kind is Kind.UNAVAILABLE
    assert len(server.asked) == 3
    first, second = pauses.seconds
    assert 0.25 <= first <= 0.5 <= second <= 1.0


def test_an_unreachable_provider_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EmbedUnavailable, match="did not answer"):
            embed_text(
                "abc", 2, provider=OpenAiProvider(url, "m", retry=replace(RETRY, sleep=Pauses()))
            )


def test_a_silent_provider_is_given_up(server: EmbeddingServer) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        provider = OpenAiProvider(
            url, "m", timeout_seconds=0.05, retry=replace(RETRY, attempts_max=2, sleep=Pauses())
        )
        with pytest.raises(EmbedUnavailable, match="timed out"):
            embed_text("abc", 2, provider=provider)


def test_a_refusal_is_not_repeated_and_hides_the_key(server: EmbeddingServer) -> None:
    server.script = [Answer(401, "wrong key: sk-very-secret")]
    provider = OpenAiProvider(
        server.url, "m", "sk-very-secret", retry=replace(RETRY, sleep=Pauses())
    )
    with pytest.raises(EmbedRefused) as caught:
        embed_text("abc", 2, provider=provider)
    assert len(server.asked) == 1
    assert "sk-very-secret" not in json.dumps(caught.value.to_json()) + repr(provider)
    assert "wrong key: ***" in caught.value.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server: EmbeddingServer, status: int) -> None:
    with embedding_server() as other:
        server.script = [Answer(status, "", {"Location": other.url + "/embeddings"})]
        with pytest.raises(EmbedRefused, match=str(status)):
            embed_text("abc", 2, provider=OpenAiProvider(server.url, "m", "k"))
        assert other.paths == []


def test_a_model_of_fixed_size_is_asked_without_a_size(server: EmbeddingServer) -> None:
    server.script = [Answer(400, "this model does not support dimensions")]
    found = embed_text("abc", 3, provider=OpenAiProvider(server.url, "m"))
    assert found.tolist() == [3.0, 1.0, 1.0]
    assert [asked.get("dimensions") for asked in server.asked] == [3, None]


def test_a_vector_of_another_size_is_refused(server: EmbeddingServer) -> None:
    server.script = [Answer(400, "no dimensions")]
    with pytest.raises(EmbedRefused, match=r"3 numbers, the property holds 5"):
        embed_text("abc", 5, provider=OpenAiProvider(server.url, "m"))


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        [{"index": 1, "embedding": [1.0, 2.0]}],
        [{"index": 0}],
        [{"index": 0, "embedding": ["x", "y"]}],
    ],
)
def test_an_answer_of_another_shape_is_unavailable(server: EmbeddingServer, data: object) -> None:
    server.script = [Answer(200, json.dumps({"data": data}))]
    with pytest.raises(EmbedUnavailable, match="one vector per text"):
        embed_text("abc", 2, provider=OpenAiProvider(server.url, "m"))
