"""The Go scanner of betterleaks, called through its documented C interface.

Why not `betterleaks.scan_string`: a Go runtime loaded before a fork is dead in the child (its threads are gone) and
the next call hangs for ever; seen 4 of 4 times. Here the child loads a private copy of the library instead, which
starts a runtime of its own (seen 40 of 40 times). Live validation of findings is never used: no request leaves.
"""

import ctypes
import importlib.util
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

LIBRARY_NAMES = ("libbetterleaks.so", "libbetterleaks.dylib", "libbetterleaks.dll", "betterleaks.dll")


class Finding(NamedTuple):
    """One finding: the rule, the whole match, and the secret inside it."""

    rule: str
    match: str
    secret: str


class Scanner:
    """One loaded library. Thread-safe; ctypes gives up the GIL while it scans."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._scan = library.ScanStringCGO
        self._scan.argtypes = [ctypes.c_char_p]
        self._scan.restype = ctypes.c_void_p
        self._free = library.FreeMemory
        self._free.argtypes = [ctypes.c_void_p]
        self._free.restype = None

    def scan(self, text: str) -> list[Finding]:
        """The findings in a text without NUL (C strings end there) and without lone surrogates."""
        pointer = self._scan(text.encode())
        if not pointer:
            raise OSError("The secret scanner returned nothing.")
        try:
            answer: dict[str, Any] = json.loads(ctypes.string_at(pointer))
        finally:
            self._free(pointer)
        if not answer.get("success"):
            raise OSError("The secret scanner refused the text.")
        return list(_findings(answer))


def _findings(answer: dict[str, Any]) -> Iterator[Finding]:
    for row in answer.get("data") or ():
        match = row["match"]
        if match.get("value"):
            yield Finding(row["rule_id"], match.get("full") or match["value"], match["value"])


def library_path() -> Path | None:
    """Where the wheel keeps its library; None where there is no wheel (Linux on arm64)."""
    spec = importlib.util.find_spec("betterleaks")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for name in LIBRARY_NAMES:
            if (path := Path(place, name)).is_file():
                return path
    return None


_lock = threading.Lock()
_scanner: Scanner | None = None
_is_searched = False
_is_loaded_before_fork = False


def scanner() -> Scanner | None:
    """The scanner of this process, loaded at the first call; None means: own rules only."""
    global _scanner, _is_searched
    if not _is_searched:
        with _lock:
            if not _is_searched:
                _scanner = _load()
                _is_searched = True
    return _scanner


def _load() -> Scanner | None:
    path = library_path()
    if path is None:
        return None
    if not _is_loaded_before_fork:
        return Scanner(ctypes.CDLL(str(path)))
    # The same path would give the parent's dead runtime back, so the child opens a copy.
    with tempfile.NamedTemporaryFile(suffix=path.suffix) as copy:
        shutil.copyfile(path, copy.name)
        return Scanner(ctypes.CDLL(copy.name))


def _forget_in_child() -> None:
    global _lock, _scanner, _is_searched, _is_loaded_before_fork
    _is_loaded_before_fork = _is_loaded_before_fork or _scanner is not None
    _lock, _scanner, _is_searched = threading.Lock(), None, False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
