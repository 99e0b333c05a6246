"""Words of a text: one form for case, accents, code and scripts without spaces."""

import unicodedata

import pytest

from memory.recall.words import fold, is_telling, terms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("getUserToken", ["getusertoken", "get", "user", "token"]),
        ("ORA-01555", ["ora", "01555"]),
        ("v1.2.3", ["v1", "v", "1", "2", "3"]),
        ("src/app/views.py", ["src", "app", "view", "py"]),
        ("Đăng nhập", ["dang", "nhap"]),
        ("数据库", ["数据", "据库"]),
        ("用PostgreSQL库", ["用", "postgresql", "postgre", "sql", "库"]),
        ("البَيَانَات", ["البيانات"]),
        ("🚀 % ( &", []),
        ("\ud800 a\0b", ["a", "b"]),
    ],
)
def test_it_finds_the_words(text: str, found: list[str]) -> None:
    assert terms(text) == found


def test_it_folds_both_compositions_alike() -> None:
    text = "Sửa lỗi ĐĂNG NHẬP"
    assert fold(unicodedata.normalize("NFD", text)) == fold(text) == "sua loi dang nhap"


def test_it_knows_words_that_say_nothing() -> None:
    assert not is_telling("the") and not is_telling("x") and is_telling("db") and is_telling("库")
