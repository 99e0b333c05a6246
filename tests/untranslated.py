"""Finds words in a template that no translate tag holds: what a reader of another language would meet in English."""

import re
from collections.abc import Iterator

# What is shown to nobody, or is the same in every language: code, keys, what goes back to the server as it is.
SILENT = ("script", "style", "svg", "code", "kbd", "pre", "datalist")
ATTRIBUTES = "title|aria-label|placeholder|alt|data-label"
BLOCK = re.compile(r"\{% blocktranslate\b.*?\{% endblocktranslate %\}", re.S)
TAG = re.compile(r"""</?[a-zA-Z!](?:"[^"]*"|'[^']*'|[^>"'])*>""", re.S)
# A constant of a filter or of what is included, without the _( ) that translates it.
CONSTANT = re.compile(r'(?:(?<![-\w])(?:text|words|label)=|\|(?:default|default_if_none|yesno):)"([^"]*)"')
ALLOWED = {
    # Names.
    "Team Memory", "UTC", "API",
    # A risk that is asked for, never shown.
    "low",
    # The names of HTML of their own page, which is there when everything else is broken.
    "doctype html",
}  # fmt: skip


def untranslated(source: str) -> Iterator[str]:
    """The words of a template that its reader sees and that stand in no translate tag."""
    source = re.sub(r"\{#.*?#\}", "", source, flags=re.S)
    source = BLOCK.sub("", source)
    for constant in CONSTANT.findall(source):
        if _says(constant):
            yield constant
    source = re.sub(r"\{%.*?%\}|\{\{.*?\}\}", "\0", source, flags=re.S)
    for silent in SILENT:
        source = re.sub(rf"<{silent}\b.*?</{silent}>", "", source, flags=re.S)
    for tag in TAG.findall(source):
        for _, words in re.findall(rf' ({ATTRIBUTES})="([^"]*)"', tag):
            if _says(words):
                yield words
    for words in re.split("\0|\n", TAG.sub("\0", source)):
        if _says(words):
            yield words.strip()


def _says(words: str) -> bool:
    words = re.sub(r"&\w+;|\0", " ", words).strip(" \n.,:·")
    return bool(re.search(r"[A-Za-z]", words)) and words not in ALLOWED
