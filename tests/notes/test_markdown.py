"""What a note looks like in a browser, and that no text makes it do anything."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from memory.notes.markdown import ids_in, render

DATA = Path(__file__).parents[1] / "data"
NAUGHTY = json.loads((DATA / "strings/blns.json").read_text())
TABLES_AND_MORE = json.loads((DATA / "markdown/gfm-extensions.tests.json").read_text())
VECTORS = [path.read_text().split("\n--\n")[0] for path in sorted((DATA / "xss").glob("*.test"))] + [
    "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html;base64,PHNjcmlwdD4=)",
    "<img src=x onerror=alert(1)> <svg/onload=alert(1)> ![a](https://evil.example/p.png?c=1)",
    "[x](java&#115;cript:alert(1)) [x](java\tscript:alert(1)) [x](\x01javascript:alert(1)) [x](vbscript:x)",
    "<javascript:alert(1)> <data:text/html,x> <JAVASCRIPT://%0aalert(1)>",
    '[x](http://a "\\" onmouseover=alert(1) x=\\"") ![x" onerror="alert(1)](http://a)',
    "[r]\n\n[r]: javascript:alert(1)\n",
    "![x](data:image/svg+xml;base64,AAAA) [x](data:image/png;base64,AAAA) [f](file:///etc/passwd)",
    '<div hx-get="/x" hx-trigger="load"></div> <form action=/x><input autofocus onfocus=alert(1)></form>',
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><style>@import'//x'</style><base href=//x>",
    "```\"><script>alert(1)</script>\nx\n```\n\n    <script>alert(1)</script>\n",
    "|a<script>|b|\n|:-:|-|\n|<img src=x onerror=alert(1)>|[x](javascript:1)|\n",
    "<!-- hidden --> <![CDATA[x]]> <?php x ?> &lt;script&gt; &#60;script&#62;",
    "trg_a\"><script>alert(1)</script> evt_javascript thr_x' onclick='alert(1)",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
]  # fmt: skip
TAGS = {
    *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a"),
    *("hr", "br", "table", "thead", "tbody", "tr", "th", "td"),
}
ATTRIBUTES = {"href", "title", "rel", "align", "start"}


SCHEME = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9+.-]*):")
UNSEEN_BY_BROWSERS = re.compile(r"^[\x00-\x20]+|[\t\r\n]")


class Live(HTMLParser):
    """Collects whatever a browser would act on."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found = []

    def handle_starttag(self, tag, attrs):
        wrong = [name for name, _ in attrs if name not in ATTRIBUTES]
        self.found += [f"{tag} {wrong}"] if tag not in TAGS or wrong else []
        address = dict(attrs).get("href") or ""
        scheme = SCHEME.match(UNSEEN_BY_BROWSERS.sub("", address))
        self.found += [address] if scheme and scheme[1].lower() not in ("http", "https", "mailto") else []

    def handle_comment(self, data):
        self.found.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def live(html):
    parser = Live()
    parser.feed(html)
    parser.close()
    return parser.found


@pytest.mark.parametrize("text", VECTORS + [case["markdown"] for case in TABLES_AND_MORE])
def test_it_makes_nothing_live(text):
    for candidate in (text, f"# {text}", f"- {text}", f"|h|\n|-|\n|{text}|\n", f"[{text}](http://a)", f"[x]({text})"):
        assert live(render(candidate, link_for=lambda given: f"/x/{given}")) == []


def test_it_makes_nothing_live_of_the_naughty_strings():
    found = {text: live(render(text, link_for=lambda given: f"/x/{given}")) for text in NAUGHTY}
    assert [text for text, parts in found.items() if parts] == []
    assert live(render("\n\n".join(NAUGHTY))) == []


def test_the_net_of_these_tests_catches_something():
    assert (
        live('<a href=" java\tscript:x">')
        and live("<script>")
        and live('<a href="javascript:x">')
        and live("<p onclick=x>")
        and live("<!-- x -->")
    )


def test_it_shows_raw_html_as_text():
    assert render("<b>bold</b>") == "<p>&lt;b&gt;bold&lt;/b&gt;</p>\n"


def test_it_renders_tables_lists_and_code():
    assert '<th align="center">a</th>' in render("|a|\n|:-:|\n|1|\n")
    assert render("3. x\n") == '<ol start="3">\n<li>x</li>\n</ol>\n'
    assert render("```sh\nmake <all>\n```\n") == "<pre><code>make &lt;all&gt;\n</code></pre>\n"


def test_links_carry_no_trust():
    assert render("[a](https://a.example)") == (
        '<p><a href="https://a.example" rel="nofollow noopener noreferrer">a</a></p>\n'
    )
    assert "<a" not in render("www.a.example and https://a.example")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("![logo](https://a.example/p.png)", '<a href="https://a.example/p.png" rel="…">image: logo</a>'),
        ("![](/p.png)", '<a href="/p.png" rel="…">image: /p.png</a>'),
        ("[![logo](/p.png)](https://a.example)", '<a href="https://a.example" rel="…">image: logo</a>'),
        ("![d](data:image/png;base64,AAAA)", "image: d"),
    ],
)
def test_it_shows_an_image_as_a_link(text, expected):
    assert render(text).replace("nofollow noopener noreferrer", "…") == f"<p>{expected}</p>\n"


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("see evt_01kb2 and thr_pr_412.", ["evt_01kb2", "thr_pr_412"]),
        ("`nte_1`, (trg_a), **wkr_b**; ses_c", ["nte_1", "trg_a", "wkr_b", "ses_c"]),
        ("[evt_1](https://a.example)", []),
        ("xevt_1 a/evt_1 evt_1/b key_1 evt_ EVT_1", []),
        ("evt_unknown", []),
        ("```\nevt_1\n```", []),
        ("|evt_1|\n|-|\n|ses_2|\n", ["evt_1", "ses_2"]),
    ],
)
def test_it_links_the_ids_it_knows(text, linked):
    html = render(text, link_for=lambda given: None if given == "evt_unknown" else f"/at/{given}")
    assert [part.partition('"')[0] for part in html.split('href="/at/')[1:]] == linked
    assert set(linked) <= ids_in(text)


def test_it_leaves_ids_alone_without_a_way_to_link_them():
    assert render("evt_1") == "<p>evt_1</p>\n"


def test_it_escapes_the_address_it_is_given():
    html = render("evt_1", link_for=lambda given: '/x?a=1&b="><script>')
    assert live(html) == []
    assert live(render("evt_1", link_for=lambda given: "javascript:alert(1)")) == []


@pytest.mark.parametrize("text", ["é" * 40_000, "![" * 8_001, "<script>x</script>" * 5_000])
def test_it_shows_what_is_too_long_as_plain_text(text):
    html = render(text)
    assert html.startswith("<p><em>This text is longer than 64 KB")
    assert html.count("<") == 6
    assert live(html) == []


def test_templates_take_it_as_html():
    assert render("a").__html__() == "<p>a</p>\n"
