"""Projects: what belongs together, mapped and merged by a person."""

from typing import Any

import pytest
from django.test import Client

from memory.events.models import Project, ProjectRoot, Session
from memory.tenants import rls
from tests.pages import made

URL = "/t/acme/projects/"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def shop(acme: Any) -> Any:
    return made.project(acme, "shop", name="Shop", place="/home/ana/shop")


@pytest.fixture
def worktree(acme: Any) -> Any:
    return made.project(acme, "shop-fix", name="Shop fix", place="/home/ana/shop-fix")


def url(of: Any, verb: str, team: str = "acme") -> str:
    return f"/t/{team}/projects/{of.public_id}/{verb}/"


def roots(of: Any) -> list[str]:
    with rls.tenant_scope(str(of.tenant_id)):
        return list(ProjectRoot.objects.filter(project=of).order_by("place").values_list("place", flat=True))


def test_it_lists_projects_with_their_places(logged_in: Any, acme: Any, vera: Any, shop: Any) -> None:
    made.session(acme, project=shop)
    page = logged_in(vera).get(URL).content.decode()
    assert "Shop" in page and "/home/ana/shop" in page and "1 session" in page
    assert "Map folder" not in page


def test_it_offers_to_merge_what_is_likely_the_same(logged_in: Any, alice: Any, shop: Any, worktree: Any) -> None:
    assert "looks like a worktree" in logged_in(alice).get(URL).content.decode()


def test_merging_moves_places_and_sessions(logged_in: Any, acme: Any, alice: Any, shop: Any, worktree: Any) -> None:
    session = made.session(acme, project=worktree)
    answer = logged_in(alice).post(url(worktree, "merge"), {"into": shop.public_id}, headers=HTMX)
    assert answer.status_code == 200 and answer.content.strip().startswith(b'<div id="projects">')
    assert roots(shop) == ["/home/ana/shop", "/home/ana/shop-fix"]
    with rls.tenant_scope(str(acme.pk)):
        assert Session.objects.get(pk=session.pk, project=shop.pk)
        assert [project.public_id for project in Project.objects.current()] == [shop.public_id]


def test_without_javascript_it_leads_back(logged_in: Any, alice: Any, shop: Any, worktree: Any) -> None:
    assert logged_in(alice).post(url(worktree, "merge"), {"into": shop.public_id})["Location"] == URL
    assert logged_in(alice).post(url(shop, "map"), {"root": "/srv/shop"})["Location"] == URL


def test_a_project_is_not_merged_into_itself(logged_in: Any, alice: Any, shop: Any) -> None:
    answer = logged_in(alice).post(url(shop, "merge"), {"into": shop.public_id}, headers=HTMX)
    assert answer.status_code == 409 and "two different projects" in answer.content.decode()


def test_merging_needs_a_choice(logged_in: Any, alice: Any, shop: Any) -> None:
    answer = logged_in(alice).post(url(shop, "merge"), {"into": ""}, headers=HTMX)
    assert answer.status_code == 422 and "Choose the project" in answer.content.decode()


def test_it_merges_into_nothing_of_another_team(logged_in: Any, globex: Any, alice: Any, shop: Any) -> None:
    theirs = made.project(globex, "theirs")
    for into in (theirs.public_id, "prj_none", "\0x"):
        assert logged_in(alice).post(url(shop, "merge"), {"into": into}).status_code == 404
    assert roots(shop) == ["/home/ana/shop"]


@pytest.mark.parametrize(
    ("asked", "place"),
    [("/srv/shop/", "/srv/shop"), ("git@github.com:Acme/Shop.git", "github.com/acme/shop"), (" /a\0b ", "/ab")],
)
def test_mapping_takes_folders_and_remotes(logged_in: Any, alice: Any, shop: Any, asked: str, place: str) -> None:
    assert logged_in(alice).post(url(shop, "map"), {"root": asked}, headers=HTMX).status_code == 200
    assert place in roots(shop)


@pytest.mark.parametrize("asked", ["", "   ", "/"])
def test_a_place_that_is_none_is_said(logged_in: Any, alice: Any, shop: Any, asked: str) -> None:
    answer = logged_in(alice).post(url(shop, "map"), {"root": asked}, headers=HTMX)
    assert answer.status_code == 422 and 'role="alert"' in answer.content.decode()


def test_a_taken_place_is_a_conflict(logged_in: Any, alice: Any, shop: Any, worktree: Any) -> None:
    answer = logged_in(alice).post(url(shop, "map"), {"root": "/home/ana/shop-fix"}, headers=HTMX)
    assert answer.status_code == 409 and "Merge the two projects instead" in answer.content.decode()
    assert roots(worktree) == ["/home/ana/shop-fix"]


def test_the_same_folder_of_two_teams_stays_apart(logged_in: Any, globex: Any, alice: Any, shop: Any) -> None:
    made.project(globex, "theirs", place="/srv/shop")
    assert logged_in(alice).post(url(shop, "map"), {"root": "/srv/shop"}).status_code == 302


def test_it_needs_login(shop: Any) -> None:
    assert Client().get(URL).status_code == 302
    for verb in ("merge", "map"):
        assert Client().post(url(shop, verb)).status_code == 302


@pytest.mark.parametrize("role", ["vera", "mia", "bob"])
def test_changing_needs_the_role(logged_in: Any, teams: Any, shop: Any, worktree: Any, role: str) -> None:
    browser = logged_in(teams[role])
    assert browser.post(url(worktree, "merge"), {"into": shop.public_id}).status_code == 403
    assert browser.post(url(shop, "map"), {"root": "/srv/shop"}).status_code == 403
    assert roots(shop) == ["/home/ana/shop"]


def test_it_hides_projects_from_other_tenants(logged_in: Any, charlie: Any, shop: Any) -> None:
    browser = logged_in(charlie)
    assert browser.get(URL).status_code == 404
    for team in ("acme", "globex"):
        assert browser.post(url(shop, "map", team), {"root": "/srv/x"}).status_code == 404
        assert browser.post(url(shop, "merge", team), {"into": shop.public_id}).status_code == 404


@pytest.mark.parametrize("verb", ["merge", "map"])
def test_an_unknown_project_is_not_found(logged_in: Any, alice: Any, acme: Any, verb: str) -> None:
    form = {"into": "prj_x", "root": "/x"}
    assert logged_in(alice).post(f"/t/acme/projects/prj_none/{verb}/", form).status_code == 404


def test_they_take_no_other_method(logged_in: Any, alice: Any, shop: Any) -> None:
    assert logged_in(alice).post(URL).status_code == 405
    for verb in ("merge", "map"):
        assert logged_in(alice).get(url(shop, verb)).status_code == 405


def test_a_merge_says_what_moves_before_and_what_was_merged_after(
    logged_in: Any, alice: Any, shop: Any, worktree: Any
) -> None:
    browser = logged_in(alice)
    page = browser.get(URL).content.decode()
    assert "move there, and sessions of either are told the notes of both" in page and "hx-confirm" not in page
    answer = browser.post(url(worktree, "merge"), {"into": shop.public_id}, follow=True)
    assert "Merged Shop fix into Shop" in answer.content.decode()


def test_the_message_of_a_merge_comes_with_the_swapped_piece(
    logged_in: Any, alice: Any, shop: Any, worktree: Any
) -> None:
    form = {"into": shop.public_id}
    page = logged_in(alice).post(url(worktree, "merge"), form, headers=HTMX).content.decode()
    assert 'id="messages"' in page and "Merged Shop fix into Shop" in page


def test_an_admin_says_who_sees_it_and_hears_who_no_longer_does(
    logged_in: Any, alice: Any, mia: Any, shop: Any, bob: Any
) -> None:
    admin = logged_in(alice)
    page = admin.get(URL).content.decode()
    assert "Seen by the whole team" in page and "always sees it" in page and "Nothing is deleted" in page
    answer = admin.post(url(shop, "limit"), {"for": "some", "members": [mia.public_id]}, follow=True)
    assert "No longer seen by bob, vera" in answer.content.decode()
    assert "Seen by some members only" in answer.content.decode()
    assert "Shop" not in logged_in(bob).get(URL).content.decode()
    seen = logged_in(mia).get(URL).content.decode()
    assert "Not everybody in the team sees this project" in seen and "always sees it" not in seen
    answer = admin.post(url(shop, "limit"), {"for": "all"}, headers=HTMX)
    assert "Seen again by bob, vera" in answer.content.decode()
    assert "Shop" in logged_in(bob).get(URL).content.decode()


def test_it_asks_again_who_is_there_and_for_the_role(
    logged_in: Any, alice: Any, bob: Any, mia: Any, shop: Any, monkeypatch: Any
) -> None:
    assert logged_in(bob).post(url(shop, "limit"), {"for": "some"}).status_code == 403
    monkeypatch.setattr("memory.tenants.proof.is_fresh", lambda request: False)
    answer = logged_in(alice).post(url(shop, "limit"), {"for": "some"})
    assert answer.status_code == 302 and answer["Location"].startswith("/prove/")
    assert "Shop" in logged_in(bob).get(URL).content.decode()


def test_a_key_is_made_for_the_ticked_projects(logged_in: Any, acme: Any, mia: Any, shop: Any, worktree: Any) -> None:
    said = {"name": "CI", "scopes": ["read"], "days": "7", "rate_limit": "100", "projects": [shop.public_id]}
    page = logged_in(mia).post("/t/acme/keys/", said).content.decode()
    assert "Only in</span> Shop" in page
    with rls.tenant_scope(str(acme.pk)):
        assert [str(pk) for pk in acme.keys.get(name="CI").only_projects or []] == [str(shop.pk)]
    assert logged_in(mia).post("/t/acme/keys/", {**said, "projects": ["prj_none"]}).status_code == 422
