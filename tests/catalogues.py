"""The catalogues of what pages say: `python -m tests.catalogues` rebuilds them from the sources and compiles them.

Translations that are there are kept, new texts come in empty, gone ones go. It needs no system gettext.
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polib

ROOT = Path(__file__).resolve().parent.parent
LOCALE = ROOT / "memory" / "locale"
# The plural rules of Django's own catalogues: of two rules for one language the wrong one would be asked.
PLURALS = {
    "fr": "nplurals=2; plural=(n > 1);",
    "pt": "nplurals=2; plural=(n != 1);",
    "vi": "nplurals=1; plural=0;",
}
NAMES = {
    "_": "id",
    "gettext": "id",
    "gettext_lazy": "id",
    "gettext_noop": "id",
    "ngettext": "id plural",
    "ngettext_lazy": "id plural",
    "pgettext": "context id",
    "pgettext_lazy": "context id",
    "npgettext": "context id plural",
    "npgettext_lazy": "context id plural",
    # memory/sentences.py: its context is the same everywhere.
    "sentence": "id",
}
STRING = r"u?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
# What Django makes of a template for xgettext: calls, and X for all else.
CALL = re.compile(rf"\b(_|gettext|ngettext|pgettext|npgettext)\(((?:{STRING})(?:, (?:{STRING}))*)(?:, ?count)?\)", re.S)


@dataclass(frozen=True, order=True)
class Message:
    """A text of ours. context and plural are empty where there is none."""

    id: str
    plural: str = ""
    context: str = ""


def sources() -> list[Path]:
    """Every file whose texts pages show."""
    pages = list((ROOT / "templates").rglob("*.html"))
    code = [path for app in ("memory", "cache_admin", "dream") for path in (ROOT / app).rglob("*.py")]
    return sorted(path for path in (*pages, *code) if "migrations" not in path.parts)


def messages_of(path: Path) -> Iterator[Message]:
    """The texts that a file marks."""
    text = path.read_text()
    if path.suffix == ".py":
        yield from _of_python(text)
        return
    from django.utils.translation.template import templatize

    for call in CALL.finditer(templatize(text, origin=str(path))):
        yield _message(call[1], list(ast.literal_eval(f"[{call[2]}]")))


def _of_python(text: str) -> Iterator[Message]:
    if "gettext" not in text and "sentence" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
            words = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if words:
                yield _message(node.func.id, words)


def _message(name: str, words: list[str]) -> Message:
    from memory.sentences import CONTEXT

    context = {"context": CONTEXT} if name == "sentence" else {}
    return Message(**dict(zip(NAMES[name].split(), words, strict=False)), **context)


def found() -> dict[Message, set[str]]:
    """Every text with the files that say it."""
    texts: dict[Message, set[str]] = {}
    for path in sources():
        for message in messages_of(path):
            texts.setdefault(message, set()).add(str(path.relative_to(ROOT)))
    return _joined(texts)


def _joined(texts: dict[Message, set[str]]) -> dict[Message, set[str]]:
    """One entry for a text that is counted here and not there: a catalogue has one for both."""
    plurals = {(one.id, one.context): one for one in texts if one.plural}
    joined: dict[Message, set[str]] = {}
    for message, places in texts.items():
        joined.setdefault(plurals.get((message.id, message.context), message), set()).update(places)
    return joined


def catalogue(language: str) -> polib.POFile:
    """The catalogue as it lies there, or an empty one."""
    path = LOCALE / language / "LC_MESSAGES" / "django.po"
    if path.exists():
        return polib.pofile(str(path), wrapwidth=100)
    return polib.POFile(wrapwidth=100)


def key(entry: polib.POEntry) -> Message:
    """Which text an entry translates."""
    return Message(entry.msgid, entry.msgid_plural or "", entry.msgctxt or "")


def rebuild(language: str, texts: dict[Message, set[str]]) -> polib.POFile:
    """Write the catalogue and what is compiled of it; gives it."""
    known = {key(entry): entry for entry in catalogue(language) if not entry.obsolete}
    count = int(PLURALS[language][9])
    fresh = polib.POFile(wrapwidth=100)
    fresh.metadata = {
        "Language": language,
        "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": PLURALS[language],
    }
    for message, places in sorted(texts.items(), key=lambda item: (min(item[1]), item[0])):
        old = known.get(message)
        plurals = dict.fromkeys(range(count), "") if message.plural else {}
        entry = polib.POEntry(
            msgid=message.id,
            msgid_plural=message.plural,
            msgctxt=message.context or None,
            msgstr=old.msgstr if old and not message.plural else "",
            msgstr_plural={**plurals, **(old.msgstr_plural if old else {})},
            occurrences=[(place, "") for place in sorted(places)],
            comment=old.comment if old else "",
        )
        if "%(" in message.id:
            entry.flags.append("python-format")
        fresh.append(entry)
    folder = LOCALE / language / "LC_MESSAGES"
    folder.mkdir(parents=True, exist_ok=True)
    fresh.save(str(folder / "django.po"))
    fresh.save_as_mofile(str(folder / "django.mo"))
    return fresh


def parts(text: str) -> list[str]:
    """The names of what comes into a text."""
    return re.findall(r"%\((\w+)\)s", text)


def is_complete(entry: polib.POEntry) -> bool:
    """Whether each of its forms says something, and nobody doubts it."""
    words = entry.msgstr_plural.values() if entry.msgid_plural else [entry.msgstr]
    return all(words) and not entry.fuzzy


def main() -> int:
    """Rebuild all; 1 where a text waits for its translation, and say which."""
    texts = found()
    waiting = 0
    for language in PLURALS:
        empty = [entry for entry in rebuild(language, texts) if not is_complete(entry)]
        waiting += len(empty)
        print(f"{language}: {len(texts)} texts, {len(empty)} without a translation")
        for entry in empty[:20]:
            print(f"    {entry.msgid!r}")
    return 1 if waiting else 0


if __name__ == "__main__":
    import django
    from django.conf import settings

    settings.configure(USE_I18N=False)
    django.setup()
    sys.exit(main())
