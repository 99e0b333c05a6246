"""An OpenAI-compatible `/embeddings` endpoint: hosted, or a server of one's own."""

import http.client
import json
import math
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from memory.embed import EmbedFailed, Failure, Text, UnknownEmbedder

BATCH: Final = 64
MOST_CHARACTERS: Final = 8_000
MOST_BYTES: Final = 32 * 1024 * 1024
MOST_DIMENSIONS: Final = 4_000  # what pgvector stores as half precision with an index


class Endpoint:
    """`POST {url}/embeddings`. The standard library's client: the others take a second and 30 MB to import."""

    # Not measured for a model we don't know; low enough to cut only what is unlike.
    floor = 0.25

    def __init__(self, url: str, model: str, *, key: str = "", timeout: float = 30.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UnknownEmbedder(f"{url!r} is no http address.")
        self._parts = parts
        self._key = key
        self._timeout = timeout
        self._dimensions = 0
        self.model = model[:80]
        # Where it was made belongs to what it is: two servers may call different models by one name.
        self.version = f"{parts.hostname}{parts.path}"[:39]

    @property
    def dimensions(self) -> int:
        return self._dimensions

    def embed(self, texts: Sequence[str], *, kind: Text) -> list[list[float]]:
        """All the vectors, or EmbedFailed: never some of them."""
        made: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            made += self._batch([_fit(text) for text in texts[start : start + BATCH]])
        return made

    def _batch(self, texts: list[str]) -> list[list[float]]:
        asked = json.dumps({"model": self.model, "input": texts, "encoding_format": "float"}).encode()
        status, headers, raw = self._post(asked)
        if status != 200:
            raise _refused(status, headers, raw)
        try:
            rows = json.loads(raw)["data"]
            rows = sorted(rows, key=lambda row: row["index"]) if all("index" in row for row in rows) else rows
            vectors = [_unit(row["embedding"]) for row in rows]
        except (ValueError, KeyError, TypeError, RecursionError) as why:
            raise EmbedFailed("rejected", f"the answer holds no vectors: {type(why).__name__} {why}"[:300]) from why
        if len(vectors) != len(texts):
            raise EmbedFailed("rejected", f"{len(vectors)} vectors for {len(texts)} texts")
        return self._same_length(vectors)

    def _same_length(self, vectors: list[list[float]]) -> list[list[float]]:
        lengths = {len(vector) for vector in vectors} | ({self._dimensions} if self._dimensions else set())
        if len(lengths) > 1:
            raise EmbedFailed("rejected", f"vectors of different lengths: {sorted(lengths)}")
        self._dimensions = lengths.pop()
        return vectors

    def _post(self, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        try:
            connection.request("POST", f"{self._parts.path}/embeddings", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, self._read(answer)
        except TimeoutError as why:
            raise EmbedFailed("timeout", f"no answer within {self._timeout:g} s") from why
        except (OSError, http.client.HTTPException) as why:
            raise EmbedFailed("unavailable", f"{type(why).__name__}: {why}"[:300]) from why
        finally:
            connection.close()

    def _read(self, answer: http.client.HTTPResponse) -> bytes:
        """The whole body within the time. The socket's own limit is for each piece, and pieces may drip."""
        until = time.monotonic() + self._timeout
        parts: list[bytes] = []
        size = 0
        while part := answer.read1(65_536):
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise EmbedFailed("rejected", f"the answer is over {MOST_BYTES} bytes")
            if time.monotonic() > until:
                raise TimeoutError
        if answer.length:
            raise http.client.IncompleteRead(b"", answer.length)
        return b"".join(parts)


def _fit(text: str) -> str:
    """A text that is UTF-8 and not empty: many servers refuse the empty one."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")[:MOST_CHARACTERS] or " "


def _unit(raw: Any) -> list[float]:
    vector = [float(value) for value in raw]
    length = math.sqrt(sum(value * value for value in vector))
    if not 0 < len(vector) <= MOST_DIMENSIONS or not math.isfinite(length) or length == 0:
        raise ValueError(f"a vector of {len(vector)} numbers and length {length}")
    return [value / length for value in vector]


def _refused(status: int, headers: http.client.HTTPMessage, raw: bytes) -> EmbedFailed:
    said = raw[:200].decode("utf-8", "replace")
    kind: Failure = "rejected"
    if status == 429:
        kind = "rate_limited"
    elif status in (401, 403, 404):
        kind = "not_allowed"
    elif status >= 500 or status == 408:
        kind = "unavailable"
    return EmbedFailed(kind, f"{status} {said}", retry_after=_seconds(headers.get("Retry-After", "")))


def _seconds(text: str) -> float:
    try:
        asked = float(text)
    except ValueError:
        return 0.0
    return min(max(0.0, asked), 3600.0) if math.isfinite(asked) else 0.0
