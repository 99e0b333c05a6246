"""Finding notes: any text is a question, what fits is found, and what does not fit is not."""

import unicodedata
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest

from memory.events.models import Project
from memory.notes import review
from memory.notes.models import Note
from memory.recall.scope import within_reach
from memory.recall.search import Hit, find, fitting
from memory.tenants.access import member_actor
from memory.tenants.models import Member, Tenant
from tests.conftest import Agent

Bound = Callable[[Tenant], AbstractContextManager[None]]
ODD = "Never run rm -rf on build. Don't use C++ tricks, nor C#. Who is on call? see src/app/views.py"
LANGUAGES = {
    "vi": "Sửa lỗi đăng nhập khi token hết hạn",
    "zh": "项目使用PostgreSQL数据库存储日志",
    "ja": "東京カンファレンスの議事録",
    "ar": "قاعدة البَيَانَات بطيئة",
}


@pytest.fixture
def write(acme: Tenant, bob: Member, bound: Bound) -> Callable[..., Note]:
    def writing(path: str, text: str, *, member: Member | None = None) -> Note:
        with bound(acme):
            by = member_actor(member or bob)
            return review.write(acme, path=path, text=text, by=by, member=member, base=None).note

    return writing


@pytest.fixture
def ask(acme: Tenant, bound: Bound) -> Callable[..., list[str]]:
    def asking(q: str, **more: Any) -> list[str]:
        with bound(acme):
            return [hit.note.path for hit in find(acme, q=q, **more)]

    return asking


def others(write: Callable[..., Note]) -> None:
    for number, text in enumerate(["Release notes go to the wiki", "Billing runs at night", "Use uv for Python"]):
        write(f"general/other{number}.md", text)


@pytest.mark.parametrize(
    "q", ["rm -rf", "don't", "C++", "C#", "who is on", "src/app/views.py", "DON’T", "build tricks"]
)
def test_it_takes_any_text_as_it_is(write: Any, ask: Any, q: str) -> None:
    write("general/odd.md", ODD)
    others(write)
    assert ask(q) == ["general/odd.md"]


@pytest.mark.parametrize(
    "q", ["foo:bar", '"unbalanced', "(", "a & ", "%", "", " ", "\0", "\ud800", "🚀", "_", "the", "' OR 1=1 --", "\\"]
)
def test_it_finds_nothing_where_nothing_fits(write: Any, ask: Any, q: str) -> None:
    write("general/odd.md", ODD)
    others(write)
    assert ask(q) == []


def test_it_cuts_a_long_question_to_its_rarest_words(write: Any, ask: Any) -> None:
    write("general/odd.md", ODD)
    others(write)
    assert ask("views.py tricks rm -rf " + "lorem ipsum dolor " * 17_000) == ["general/odd.md"]
    assert ask("lorem ipsum dolor " * 17_000) == []


@pytest.mark.parametrize(
    ("q", "language"),
    [
        ("đăng nhập", "vi"), (unicodedata.normalize("NFD", "đăng nhập"), "vi"), ("ĐĂNG NHẬP", "vi"),
        ("dang nhap", "vi"), ("数据库", "zh"), ("東京", "ja"), ("البيانات", "ar"), ("postgresql", "zh"),
    ],
)  # fmt: skip
def test_it_reads_every_script(write: Any, ask: Any, q: str, language: str) -> None:
    for name, text in LANGUAGES.items():
        write(f"general/{name}.md", text)
    assert ask(q) == [f"general/{language}.md"]


def test_it_ranks_the_exact_spelling_first(write: Any, ask: Any) -> None:
    write("general/a.md", "dang nhap, written without accents")
    write("general/b.md", "đăng nhập, written with them")
    others(write)
    assert ask("đăng nhập") == ["general/b.md", "general/a.md"]


@pytest.mark.parametrize(
    ("text", "q"),
    [
        ("see src/app/views.py", "views"), ("file config.yaml", "config"), ("getUserToken fails", "token"),
        ("error ORA-01555 raised", "01555"), ("v1.2.3 released", "1.2.3"), ("call get_user_token", "user_token"),
        ("use --dry-run", "dry-run"),
    ],
)  # fmt: skip
def test_it_finds_parts_of_code_words(write: Any, ask: Any, text: str, q: str) -> None:
    write("general/code.md", text)
    others(write)
    assert ask(q) == ["general/code.md"]


def test_it_ranks_the_exact_match_first(write: Any, ask: Any) -> None:
    write("general/a.md", "the user of a token gets a name")
    write("general/b.md", "call user_token first")
    others(write)
    assert ask("user_token") == ["general/b.md", "general/a.md"]


def test_it_forgives_a_mistyped_word(write: Any, ask: Any) -> None:
    write("general/db.md", "# Migrations of the database\n\n- They run before deploys\n")
    others(write)
    assert ask("databse migratons") == ["general/db.md"]


def test_it_reads_a_note_again_after_it_changed(write: Any, ask: Any, acme: Tenant, bob: Member, bound: Bound) -> None:
    write("general/x.md", "about zebras")
    assert ask("zebras") == ["general/x.md"]
    with bound(acme):
        review.write(acme, path="general/x.md", text="about lions", by=member_actor(bob), base=1)
    assert ask("zebras") == [] and ask("lions") == ["general/x.md"]
    with bound(acme):
        review.delete(Note.objects.get(), by=member_actor(bob), reason="gone")
    assert ask("lions") == []


def test_it_keeps_to_what_the_asker_may_see(
    write: Any, ask: Any, acme: Tenant, globex: Tenant, mia: Member, alice: Member, bound: Bound
) -> None:
    with bound(acme):
        one = Project.objects.create(tenant=acme, slug="one", name="one")
        two = Project.objects.create(tenant=acme, slug="two", name="two")
    write("general/zebra.md", "zebra for all")
    write("profile/zebra.md", "zebra of mia", member=mia)
    write("project/one/zebra.md", "zebra of one")
    write("project/two/zebra.md", "zebra of two")
    everyone = {"general/zebra.md", "project/one/zebra.md", "project/two/zebra.md"}
    assert set(ask("zebra")) == everyone and set(ask("zebra", member=alice)) == everyone
    assert set(ask("zebra", member=mia)) == {*everyone, "profile/zebra.md"}
    assert set(ask("zebra", project=one)) == {"general/zebra.md", "project/one/zebra.md"}
    with bound(acme):
        Project.objects.filter(pk=two.pk).update(merged_into=one)
    assert set(ask("zebra", project=one)) == everyone
    with bound(globex):
        assert find(globex, q="zebra") == []


def fit(acme: Tenant, prompt: str, bound: Bound) -> list[Hit]:
    with bound(acme):
        return fitting(prompt, within_reach([], None), acme, limit=5)


NOTES = {
    "tools/pytest/retries.md": "---\ntitle: Flaky tests\ndescription: Which tests fail now and then\n---\n"
    "- test_payment_retry fails when Redis is slow; rerun it with `pytest -k retry`\n",
    "general/deploy.md": "---\ntitle: Deploy to staging\n---\n- Deploys need the VPN and `make deploy ENV=staging`\n",
    "general/style.md": "---\ntitle: Code style\n---\n- Two spaces, no tabs; run `ruff format` before you commit\n",
    "general/db.md": "---\ntitle: Database migrations\n---\n- Migrations run in CI; never edit one that was merged\n",
}


@pytest.mark.parametrize(
    ("prompt", "path"),
    [
        ("why do the flaky tests fail again?", "tools/pytest/retries.md"),
        ("please deploy this branch to staging", "general/deploy.md"),
        ("add a database migration for the new column", "general/db.md"),
        ("What is our code style?", "general/style.md"),
        ("Implement the export endpoint. " * 30 + "Then write the database migrations.", "general/db.md"),
    ],
)
def test_it_fits_a_prompt_to_the_note_about_it(write: Any, acme: Tenant, bound: Bound, prompt: str, path: str) -> None:
    for where, text in NOTES.items():
        write(where, text)
    assert path in [hit.note.path for hit in fit(acme, prompt, bound)][:1]


@pytest.mark.parametrize(
    "prompt",
    ["continue", "ok", "yes, do it", "write a poem about the sea", "make the header blue", "", "🚀", "1", "hello there",
     "explain how the login page works", "rename the variable foo to bar in utils.ts"],
)  # fmt: skip
def test_it_tells_nothing_where_no_note_fits_the_prompt(write: Any, acme: Tenant, bound: Bound, prompt: str) -> None:
    for where, text in NOTES.items():
        write(where, text)
    assert [hit.note.path for hit in fit(acme, prompt, bound)] == []


def test_it_lists_and_searches_over_rest(write: Any, agent: Agent, globex_agent: Agent, mia: Member, api: Any) -> None:
    for where, text in NOTES.items():
        write(where, text)
    write("profile/own.md", "mia likes staging", member=mia)
    everything = api(agent).get("notes").json()
    assert [one["path"] for one in everything["items"]] == sorted(NOTES) and not everything["has_more"]
    first = api(agent).get("notes", limit=3).json()
    rest = api(agent).get("notes", cursor=first["next_cursor"], limit=3).json()
    assert [one["path"] for one in [*first["items"], *rest["items"]]] == sorted(NOTES)
    found = api(agent).get("notes", q="staging").json()["items"]
    assert [one["path"] for one in found] == ["general/deploy.md"] and "staging" in found[0]["why"]
    assert api(agent).get("notes", prefix="Tools/").json()["items"][0]["path"] == "tools/pytest/retries.md"
    assert api(agent).get("notes", space="members/mia").status_code == 404
    assert api(globex_agent).get("notes", q="staging").json()["items"] == []
    for q in ("(", "a & ", "%", "x" * 50_000):
        assert api(agent).get("notes", q=q).json()["items"] == []
