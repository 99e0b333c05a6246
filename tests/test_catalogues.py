"""The catalogues say all that pages say, in each language, and a page's template says nothing that they lack."""

import re
from functools import cache

import polib
import pytest

from tests import catalogues
from tests.untranslated import untranslated

LANGUAGES = list(catalogues.PLURALS)
REBUILD = "Run python -m tests.catalogues, translate what it lists, and run it again."
PLACEHOLDER = re.compile(r"%\(\w+\)[sd]|\{\w*\}|%%|</?\w+")
# The page of drf-spectacular: it is the API's, which is in English.
ENGLISH = {"templates/drf_spectacular/swagger_ui.html"}


@cache
def texts() -> dict[catalogues.Message, set[str]]:
    return catalogues.found()


@cache
def catalogue(language: str) -> polib.POFile:
    return catalogues.catalogue(language)


def forms(entry: polib.POEntry) -> list[str]:
    return list(entry.msgstr_plural.values()) if entry.msgid_plural else [entry.msgstr]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_text_is_translated_and_no_other_is_kept(language: str) -> None:
    kept = {catalogues.key(entry) for entry in catalogue(language) if not entry.obsolete}
    assert set(texts()) - kept == set(), REBUILD
    assert kept - set(texts()) == set(), REBUILD
    assert [entry.msgid for entry in catalogue(language) if not catalogues.is_complete(entry)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_translation_has_the_placeholders_and_tags_of_its_text(language: str) -> None:
    odd = []
    for entry in catalogue(language):
        wanted = sorted(PLACEHOLDER.findall(entry.msgid_plural or entry.msgid))
        odd += [form for form in forms(entry) if sorted(PLACEHOLDER.findall(form)) != wanted]
    assert odd == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_compiled_is_what_is_written(language: str) -> None:
    compiled = polib.mofile(str(catalogues.LOCALE / language / "LC_MESSAGES" / "django.mo"))
    said = {catalogues.key(entry): forms(entry) for entry in compiled}
    assert said == {catalogues.key(entry): forms(entry) for entry in catalogue(language)}, REBUILD
    assert compiled.metadata["Plural-Forms"] == catalogues.PLURALS[language]


def test_templates_hold_no_words_outside_of_translate_tags() -> None:
    left = {}
    for path in sorted((catalogues.ROOT / "templates").rglob("*.html")):
        name = str(path.relative_to(catalogues.ROOT))
        words = [] if name in ENGLISH else list(untranslated(path.read_text()))
        if words:
            left[name] = words
    assert left == {}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("<p>Gone</p>", ["Gone"]),
        ('<p>{% translate "Gone" %} <code>x = y</code></p>', []),
        ('<a title="Go there" class="b">{{ name }}</a>', ["Go there"]),
        ("{% blocktranslate %}{{ n }} notes{% endblocktranslate %} of yours", ["of yours"]),
        ('{{ name|default:"nobody" }}{{ name|default:_("nobody") }}', ["nobody"]),
    ],
)
def test_words_that_nobody_marked_are_found(source: str, words: list[str]) -> None:
    assert list(untranslated(source)) == words


def test_extraction_reads_templates_and_code() -> None:
    path = catalogues.ROOT / "templates" / "_diff.html"
    counted = catalogues.Message("%(many)s unchanged line", "%(many)s unchanged lines")
    assert {counted, catalogues.Message("Old line")} <= set(catalogues.messages_of(path))
    code = 'from django.utils.translation import gettext as _\n_("Sent to %(who)s.") % {"who": 1}\nother("Not this")'
    assert list(catalogues._of_python(code)) == [catalogues.Message("Sent to %(who)s.")]
