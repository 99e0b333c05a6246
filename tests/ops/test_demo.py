"""`manage.py demo` and the first steps of a new team."""

from typing import Any

from django.core.management import call_command
from django.test import Client

from memory.ops import first_run
from memory.tenants.access import member_actor
from memory.tenants.models import Member, Tenant, User
from memory.tenants.people import tenant_by_slug
from memory.tenants.rls import tenant_scope


def test_the_demo_fills_every_page_and_may_run_again(committed: None, capsys: Any) -> None:
    call_command("demo", "showroom", owner="ana@example.com")
    said = capsys.readouterr().out
    assert "3 new sessions" in said and "3 notes approved" in said and "/login/link/" in said
    browser = Client()
    browser.force_login(User.objects.get(email="ana@example.com"))
    for page in ("", "notes/", "sessions/", "threads/", "dreams/", "projects/", "settings/"):
        answer = browser.get(f"/t/showroom/{page}")
        assert answer.status_code == 200 and 'class="empty"' not in answer.content.decode(), page
    call_command("demo", "showroom", owner="ana@example.com")
    again = capsys.readouterr().out
    assert "0 new sessions, 0 new events" in again and "0 notes approved" in again


def test_a_new_owner_is_led_and_each_step_ticks_itself(committed: None, capsys: Any) -> None:
    call_command("create_tenant", "fresh", owner="ana@example.com")
    browser = Client()
    browser.force_login(User.objects.get(email="ana@example.com"))
    page = browser.get("/t/fresh/").content.decode()
    assert page.count(">To do<") == 5 and ">Done<" not in page
    pk = str(tenant_by_slug("fresh"))
    with tenant_scope(pk):
        tenant = Tenant.objects.get(pk=pk)
        actor = member_actor(Member.objects.get(tenant=tenant))
        for step in first_run.steps(tenant, actor):
            assert browser.get(step.url).status_code == 200, step
    call_command("demo", "fresh", owner="ana@example.com")
    page = browser.get("/t/fresh/").content.decode()
    assert page.count(">To do<") == 1 and page.count(">Done<") == 4
    call_command("add_member", "fresh", "bo@example.com", role="reviewer")
    assert "First steps" not in browser.get("/t/fresh/").content.decode()
