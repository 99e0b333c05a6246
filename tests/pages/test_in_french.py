"""Every page in another language: what is left in English on it are people's and agents' words, names and codes.

What went through the catalogues is marked while a page is made. A text without the mark is the product's own where
the sources say it: that finds a sentence that was never marked as well as one that a row keeps and no page tells.
"""

import ast
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client
from django.utils import translation
from django.utils.safestring import SafeData, SafeString

from tests import catalogues
from tests.browser import filled
from tests.untranslated import ATTRIBUTES

BEGIN, END = "\ue000", "\ue001"
PART = re.compile(r"%\(\w+\)[sd]|\{\w*\}")
# What stands between the sentences of a literal: its parts, and the ends of its lines.
CUT = re.compile(r"%\(\w+\)[sd]|%[sdr]|\{[^}]*\}|\n")
# Code, and what was given to the product: it is shown as it is. A datalist holds what a field takes.
AS_IT_IS = {"script", "style", "svg", "code", "pre", "kbd", "bdi", "textarea", "datalist", "ins", "del"}
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
# Modules whose words are no page's: they are a note's, a prompt's, a mail's, a summary's or a program's.
ELSEWHERE = re.compile(
    r"dream/distill|dream/gist|dream/prompt|memory/graph/summaries/|memory/recall/|memory/hooks/|memory/management/"
    r"|memory/mcp/|memory/settings|memory/tenants/connect|cache_admin/(client|policy|summaries)|news_words"
)
# Names, which are the same in every language, and what a field takes as it is written here.
NAMES = {
    *("GitHub", "GitLab", "Slack", "CI", "Claude Code", "Codex", "Cursor", "Gemini CLI", "OpenCode", "Copilot CLI"),
    *("VS Code", "Bash", "Read", "Stop", "Model", "Version", "SessionStart", "UserPromptSubmit", "X-Signature-256"),
    *("offset, limit", "path, file_path", "SAML 2.0", "OpenID Connect"),
}  # fmt: skip


class Texts(HTMLParser):
    """What a page says: its texts, and those of its attributes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.said: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.said += [value for name, value in attrs if value and re.fullmatch(ATTRIBUTES, name)]
        if tag not in EMPTY:
            self.inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not AS_IT_IS.intersection(self.inside):
            self.said.append(data)


def marked(gettext: Callable[..., str]) -> Callable[..., str]:
    """The same, with a mark around what the catalogue said, and none around the parts that come into it."""

    def told(*args: Any) -> str:
        said = gettext(*args)
        whole = BEGIN + PART.sub(lambda part: END + part[0] + BEGIN, said) + END
        return SafeString(whole) if isinstance(said, SafeData) else whole

    return told


def unmarked(html: str) -> Iterator[str]:
    """The pieces of a page's texts that no catalogue said."""
    page = Texts()
    page.feed(html)
    for said in page.said:
        for piece in re.split(f"{BEGIN}[^{END}]*{END}", said):
            words = " ".join(piece.split()).strip(" .,:;()·")
            if re.search("[A-Za-z]{2}", words):
                yield words


def own_words() -> set[str]:
    """What the sources say and mark nowhere: sentences, and single words that begin with a capital."""
    words = set()
    for path in catalogues.sources():
        name = str(path.relative_to(catalogues.ROOT))
        if path.suffix != ".py" or ELSEWHERE.search(name):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words |= {" ".join(piece.split()).strip(" .,:;()·") for piece in CUT.split(node.value)}
    return {one for one in words if re.search("[A-Za-z]{2}", one) and (" " in one or one.istitle())} - NAMES


def is_own(words: str, sources: set[str], sentences: list[str]) -> bool:
    """Whether a piece is one of the product's texts, or has one of some length in it."""
    return words in sources or any(one in words for one in sentences)


def test_no_page_in_french_says_our_own_words_in_english(committed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    team = filled.fill(filled.EXCERPT)
    pages, before = filled.addresses(team) | filled.operated(team), filled.outside(team)
    for name in ("gettext", "ngettext", "pgettext", "npgettext"):
        monkeypatch.setattr(translation._trans, name, marked(getattr(translation._trans, name)))
    sources = own_words()
    sentences = [one for one in sources if len(one) >= 12 and one.count(" ") >= 2]
    left = []
    for member, paths in ((team["alice"], pages), (None, before)):
        browser = Client(headers={"accept-language": "fr"})
        if member:
            browser.force_login(member.user)
        for name, path in paths.items():
            # The guide is in English, as what programs are told.
            if not name.startswith("guide-"):
                html = browser.get(path).content.decode()
                left += [f"{name}: {words[:120]}" for words in unmarked(html) if is_own(words, sources, sentences)]
    assert sorted(set(left)) == []


@pytest.mark.parametrize(
    ("html", "words"),
    [
        (f"<p>{BEGIN}Supprime{END} the note.</p>", ["the note"]),
        (f'<a title="Go there" class="b">{BEGIN}Là{END}</a>', ["Go there"]),
        ("<p>Deletes <code>it now</code></p>", ["Deletes"]),
    ],
)
def test_what_no_catalogue_said_is_found(html: str, words: list[str]) -> None:
    assert list(unmarked(html)) == words
