"""Markdown as HTML that can't run, load or post anything, whoever wrote the note.

Two walls: markdown-it with raw HTML off, and nh3's allow-list over what it made. Images become links, so that opening
a note tells no other server about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from html import escape
from typing import TypeAlias

import nh3
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

# The address for an id or for a link's target, or None.
LinkFor: TypeAlias = Callable[[str], str | None]

MAX_BYTES = 65536  # tables grow to six times their size; measured worst below it: 1.3 s
MAX_BRACKETS = 8_000  # "![" repeated takes time by its square: 64 KB of it 2.3 s, 8,000 of it 0.2 s

_BLOCKS = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr"}
_TAGS = _BLOCKS | {"code", "em", "strong", "s", "a", "br", "table", "thead", "tbody", "tr", "th", "td"}
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}, "th": {"align"}, "td": {"align"}}
_SCHEMES = {"http", "https", "mailto"}
# Minted ids and those that callers gave (thr_pr_412); a full stop at the end belongs to the sentence.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
# What browsers take for another host by the page's own scheme.
_ELSEWHERE = re.compile(r"[/\\]{2}")
_ID = re.compile(r"(?<![\w/.-])(?:evt|nte|trg|thr|wkr|ses)_[a-z0-9](?:[a-z0-9_.-]{0,94}[a-z0-9])?(?![\w/])")


def render(text: str, *, link_for: LinkFor | None = None, page_for: LinkFor | None = None) -> SafeString:
    """The text as safe HTML; `link_for` gives the address of an id that stands in it, or None to leave it be.

    `page_for` gives the page of the note that a relative link names; a link to an unknown .md file becomes plain text.
    """
    if _is_too_much(text):
        return _plain(text)
    html = _parser().render(text, {"link_for": link_for, "page_for": page_for})
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes=_SCHEMES,
        link_rel="nofollow noopener noreferrer",
    )
    return SafeString(clean)


def ids_in(text: str) -> frozenset[str]:
    """The ids that `render` would ask `link_for` about, so that a page can look them up in one query."""
    return frozenset(_ID.findall(text))


def targets_in(text: str) -> frozenset[str]:
    """The targets that `render` would ask `page_for` about."""
    if _is_too_much(text) or ("](" not in text and "]:" not in text):
        return frozenset()
    found: set[str] = set()
    _parser().render(text, {"page_for": found.add})
    return frozenset(found)


def _is_too_much(text: str) -> bool:
    return len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES or text.count("[") > MAX_BRACKETS


def _plain(text: str) -> SafeString:
    notice = gettext("This text is longer than %(max_bytes)s KB or has too many brackets, so it is shown as it is.") % {
        "max_bytes": MAX_BYTES // 1024
    }
    return SafeString(f"<p><em>{notice}</em></p>\n<pre>{escape(text)}</pre>\n")


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    parser.core.ruler.push("team_memory", _rewrite)
    return parser


def _rewrite(state: StateCore) -> None:
    """Images to links, ids to links, a table cell's style to an attribute that a content policy allows."""
    link_for: LinkFor | None = state.env.get("link_for")
    page_for: LinkFor | None = state.env.get("page_for")
    for token in state.tokens:
        if token.type in ("th_open", "td_open") and "style" in token.attrs:
            token.attrs = {"align": str(token.attrs["style"]).removeprefix("text-align:")}
        if token.type == "inline":
            token.children = _linked(_led(token.children or [], page_for), link_for)


def _led(children: list[Token], page_for: LinkFor | None) -> list[Token]:
    """Links to notes lead to their pages. Links don't nest, so one that leads nowhere ends at the next close."""
    led: list[Token] = []
    is_dropped = False
    for token in children:
        if token.type == "link_open":
            address = _leads_to(str(token.attrs.get("href", "")), page_for)
            is_dropped = address is None
            if address is not None:
                token.attrs["href"] = address
        if not (is_dropped and token.type in ("link_open", "link_close")):
            led.append(token)
    return led


def _leads_to(target: str, page_for: LinkFor | None) -> str | None:
    """Where a link goes; None where it can't go anywhere."""
    if _ELSEWHERE.match(target):
        return None
    if page_for is None or not target or target.startswith("#") or _SCHEME.match(target):
        return target
    path, mark, fragment = target.partition("#")
    page = page_for(path)
    if page is not None:
        return f"{page}{mark}{fragment}"
    return None if path.partition("?")[0].casefold().endswith(".md") else target


def _linked(children: list[Token], link_for: LinkFor | None) -> list[Token]:
    linked: list[Token] = []
    depth = 0
    for token in children:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type == "image":
            linked += _image_link(token, is_in_link=depth > 0)
        elif link_for and not depth and token.type in ("text", "code_inline"):
            linked += _id_links(token, link_for)
        else:
            linked.append(token)
    return linked


def _image_link(image: Token, *, is_in_link: bool) -> list[Token]:
    address = str(image.attrs.get("src", ""))
    label = _text(f"image: {image.content or address}")
    is_bare = is_in_link or address.startswith("data:") or _ELSEWHERE.match(address)
    return [label] if is_bare else _link(address, label)


def _id_links(token: Token, link_for: LinkFor) -> list[Token]:
    parts: list[Token] = []
    at = 0
    for match in _ID.finditer(token.content):
        if address := link_for(match.group()):
            parts += [_like(token, token.content[at : match.start()]), *_link(address, _like(token, match.group()))]
            at = match.end()
    return [part for part in [*parts, _like(token, token.content[at:])] if part.type != token.type or part.content]


def _link(address: str, label: Token) -> list[Token]:
    return [Token("link_open", "a", 1, attrs={"href": address}), label, Token("link_close", "a", -1)]


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _like(token: Token, content: str) -> Token:
    return Token(token.type, token.tag, 0, content=content, markup=token.markup)
