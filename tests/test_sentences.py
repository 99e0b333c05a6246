"""memory/sentences.py: kept in English, told in the language of the page, and nobody else's words with it."""

from collections.abc import Iterator

import pytest
from django.utils import translation

from memory.sentences import CONTEXT, retold, sentence, thousands, word
from tests import catalogues

SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture
def french() -> Iterator[None]:
    with translation.override("fr"):
        yield


def test_a_sentence_is_in_english_whoever_asks(french: None) -> None:
    assert sentence("Deletes the note.") == "Deletes the note."
    assert sentence("Imported from %(name)s.", name="a.zip") == "Imported from a.zip."


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ("Deletes the note.", "Supprime la note."),
        ("Imported from a 100 % b.zip.", "Importée de a 100 % b.zip."),
        # A part that is a sentence of ours, and one of the longest that fit: no "%(where)s answered %(status)s".
        (
            "The provider could not be asked. hooks.test answered 302, a redirect: type the address it leads to.",
            "Le fournisseur n'a pas pu être interrogé. hooks.test a répondu 302, une redirection"
            f"{SPACE}: tapez l'adresse où elle mène.",
        ),
        ("It was rejected. So it can go.", "Elle a été rejetée. Elle peut donc disparaître."),
        ("It was rejected.\nno address", "Elle a été rejetée.\naucune adresse"),
        ("over_budget: It was rejected.", "over_budget: Elle a été rejetée."),
        ("Last told on 2026-01-31.", "Communiquée pour la dernière fois le 31 jan. 2026."),
        ("12.5 KB. Split it, or shorten it to 4 KB.", "12,5 Ko. Divisez-la, ou raccourcissez-la à 4 Ko."),
    ],
)
def test_what_was_kept_is_told_in_the_language_of_the_page(french: None, kept: str, told: str) -> None:
    assert retold(kept) == told


@pytest.mark.parametrize("words", ["", "I said so. It was rejected.", "Deletes the note", "Not ours", "x" * 9000])
def test_words_that_are_not_ours_stay(french: None, words: str) -> None:
    assert retold(words) == words


def test_among_peoples_reasons_a_sentence_that_begins_with_a_part_is_theirs(french: None) -> None:
    assert retold("GitHub answered 502") == "GitHub a répondu 502"
    assert retold("GitHub answered 502", is_ours=False) == "GitHub answered 502"
    assert retold("Let in by a rule.", is_ours=False) == "Admise par une règle."


def test_english_is_told_as_it_was_kept() -> None:
    assert retold("Imported from a.zip.") == "Imported from a.zip."


def test_words_and_numbers_are_the_pages(french: None) -> None:
    assert (word("merged"), word("zzz"), thousands(5463)) == ("fusionné", "zzz", "5\u202f463")


@pytest.mark.parametrize("language", catalogues.PLURALS)
def test_every_sentence_of_every_catalogue_is_found_again(language: str) -> None:
    kept = [entry for entry in catalogues.catalogue(language) if entry.msgctxt == CONTEXT]
    assert len(kept) > 100
    with translation.override(language):
        for entry in kept:
            parts = {name: f"«{name}»" for name in catalogues.parts(entry.msgid)}
            assert retold(entry.msgid % parts) == entry.msgstr % parts, entry.msgid
