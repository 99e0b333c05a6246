"""Source code: its head, an outline with line numbers, its tail."""

import importlib
import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final

from cache_admin.summaries.fit import rows_of

HEAD: Final = 15
TAIL: Final = 10
DEPTH: Final = 3
MOST: Final = 400
CLIP: Final = 160
# A parser has no time limit of its own; beyond this the text is paged instead.
LARGEST: Final = 2_000_000
_LANGUAGES: Final = {
    "py": "python", "pyi": "python", "js": "javascript", "jsx": "javascript", "mjs": "javascript", "cjs": "javascript",
    "ts": "typescript", "tsx": "tsx", "go": "go", "rs": "rust", "java": "java", "kt": "kotlin", "rb": "ruby",
    "php": "php", "c": "c", "h": "c", "cc": "cpp", "cpp": "cpp", "hpp": "cpp", "cs": "csharp", "swift": "swift",
    "scala": "scala", "sh": "bash", "bash": "bash", "lua": "lua", "ex": "elixir", "exs": "elixir", "hs": "haskell",
    "ml": "ocaml", "zig": "zig", "dart": "dart", "r": "r", "jl": "julia", "proto": "proto", "md": "markdown",
}  # fmt: skip
_NAMES: Final = frozenset(_LANGUAGES.values())
_DEFINES: Final = re.compile(
    r"(?:function|class|method|struct|enum|interface|trait|impl|module|namespace|type|constructor|protocol|object|package"
    r"|mod|union|macro|message|service|lexical)_?(?:signature)?_?(?:definition|declaration|item|spec|alias|elem)?"
    r"|singleton_method|decorated_definition|export_statement|type_alias_declaration|method|class|module"
)
# What shows how a harness numbers the lines of a file: `  12→text`.
_NUMBERED: Final = re.compile(r"^ *(\d+)(?:→|\t)", re.MULTILINE)


def language_of(name: str) -> str:
    """The language that a file's name, or the name of a language itself, stands for; empty where it is none."""
    if name.lower() in _NAMES:
        return name.lower()
    return _LANGUAGES.get(PurePosixPath(name.replace("\\", "/")).suffix.lower().removeprefix("."), "")


def outline(text: str, name: str) -> str:
    """First 15 lines, the definitions with their line numbers, last 10; empty where the language is not known."""
    language = language_of(name)
    if not language or language == "markdown" or len(text) > LARGEST:
        return ""
    rows, first = _rows(text)
    defined = _defined("\n".join(rows), language)
    inner = [(number, row) for number, row in defined if HEAD <= number < len(rows) - TAIL]
    if not inner:
        return ""
    shown = [f"{number + first}: {row}" for number, row in inner[:MOST]]
    if len(inner) > MOST:
        shown.append(f"[{len(inner) - MOST} more definitions]")
    hidden = len(rows) - HEAD - TAIL
    return "\n".join(
        (
            *rows[:HEAD],
            f"[{hidden} of {len(rows)} lines hidden; what they define, with line numbers:]",
            *shown,
            f"[last {TAIL} lines:]",
            *rows[-TAIL:],
        )
    )


def _rows(text: str) -> tuple[list[str], int]:
    """The lines without the numbers of a harness, and the number of the first one."""
    rows = rows_of(text)
    found = _NUMBERED.match(text)
    if not found or not all(_NUMBERED.match(row) for row in rows[:5]):
        return rows, 1
    return [_NUMBERED.sub("", row, count=1) for row in rows], int(found[1])


def _defined(text: str, language: str) -> list[tuple[int, str]]:
    parser = _parser(language)
    if parser is None:
        return []
    rows = text.split("\n")
    found: dict[int, str] = {}
    waiting = [(parser.parse(text.encode()).root_node, 0)]
    while waiting:
        node, depth = waiting.pop()
        is_definition = bool(_DEFINES.fullmatch(node.type)) and node.child_by_field_name("name") is not None
        if is_definition:
            line = node.start_point[0]
            found.setdefault(line, rows[line].rstrip()[:CLIP])
        if depth + is_definition <= DEPTH:
            waiting.extend((child, depth + is_definition) for child in node.named_children)
    return sorted(found.items())


@lru_cache(maxsize=64)
def _parser(language: str) -> Any:
    """The grammar inside of the installed wheel; None where there is none."""
    try:
        return importlib.import_module("tree_sitter_language_pack").get_parser(language)
    except (ImportError, LookupError):
        return None
