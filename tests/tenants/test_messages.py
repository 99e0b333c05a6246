"""Messages that wait to be sent: by a worker, once, and with their outcome on a page."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from memory.tenants import choices, due, outbox, outgoing, tasks, vault
from memory.tenants.access import member_actor
from memory.tenants.models import Due, Message
from memory.tenants.rls import tenant_scope
from tests.hook_server import hook_server
from tests.mail_server import mail_server

PAGE = "/t/acme/messages/"


def put(team: Any, occasion: str = "") -> Message | None:
    with tenant_scope(str(team.pk)):
        return outbox.mail(team, "bob@acme.test", "A proposal waits", "See https://m.test/p/1\n", occasion=occasion)


def work(team: Any) -> int:
    """What a worker does with all that is due now; gives how many."""
    with tenant_scope(str(team.pk)):
        rows = [str(pk) for pk in Due.objects.filter(task=outbox.TASK).values_list("pk", flat=True)]
    for pk in rows:
        tasks.send(tenant_id=str(team.pk), due_id=pk)
    return len(rows)


def row(team: Any) -> Message:
    with tenant_scope(str(team.pk)):
        return Message.objects.get()


def waits(team: Any) -> timedelta:
    with tenant_scope(str(team.pk)):
        return Due.objects.get(task=outbox.TASK).due_at - timezone.now()


def come_due(team: Any) -> None:
    with tenant_scope(str(team.pk)):
        Due.objects.update(due_at=timezone.now(), owner="", leased_until=None)


def test_a_message_is_sent_once_and_its_words_are_forgotten(acme: Any) -> None:
    with mail_server() as box:
        made = put(acme)
        assert made is not None and b"m.test" not in bytes(made.sealed or b"") and box.mails == []
        assert work(acme) == 1 and work(acme) == 0
        assert put(acme, "review:prp_1") is not None and put(acme, "review:prp_1") is None
        work(acme)
    assert len(box.mails) == 2
    with tenant_scope(str(acme.pk)):
        assert {(one.state, one.sealed, one.attempts) for one in Message.objects.all()} == {("sent", None, 1)}


def test_a_rolled_back_transaction_sends_nothing(acme: Any) -> None:
    with mail_server() as box:
        with pytest.raises(ZeroDivisionError), tenant_scope(str(acme.pk)):
            outbox.mail(acme, "bob@acme.test", "No", "No")
            raise ZeroDivisionError
        assert work(acme) == 0 and box.mails == []


def test_without_a_mail_server_nothing_is_put_down(acme: Any, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    with pytest.raises(outbox.NoMail):
        put(acme)


def test_a_not_now_is_tried_again_later_and_a_never_is_not(acme: Any) -> None:
    answers = iter(["451 not now", "451 not now", "250 OK", "554 never"])
    with mail_server(lambda number: next(answers)) as box:
        put(acme)
        work(acme)
        assert (row(acme).state, row(acme).attempts) == ("waiting", 1) and "451 not now" in row(acme).error
        assert timedelta(seconds=20) < waits(acme) <= timedelta(seconds=30)
        come_due(acme)
        work(acme)
        assert timedelta(seconds=100) < waits(acme) <= timedelta(seconds=120)
        come_due(acme)
        work(acme)
        assert (row(acme).state, row(acme).attempts, len(box.mails)) == ("sent", 3, 1)
        with tenant_scope(str(acme.pk)):
            Message.objects.all().delete()
        put(acme)
        work(acme)
        assert row(acme).state == "failed" and work(acme) == 0


def test_it_gives_up_after_the_last_wait(acme: Any) -> None:
    with mail_server(lambda number: "451 not now"):
        put(acme)
        with tenant_scope(str(acme.pk)):
            Message.objects.update(attempts=len(outbox.WAITS))
        work(acme)
    assert row(acme).state == "failed" and row(acme).attempts == len(outbox.WAITS) + 1


class Killed(BaseException):
    """The worker ends here."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_worker_that_dies_sends_nothing_twice(acme: Any, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Killed just before or just after the server took it: the next worker can't know which, and says so."""
    whole = outgoing.EmailMessage.send

    def killed(self: Any, *args: Any, **more: Any) -> int:
        if moment == "after":
            whole(self, *args, **more)
        raise Killed

    with mail_server() as box:
        put(acme)
        with monkeypatch.context() as patched:
            patched.setattr(outgoing.EmailMessage, "send", killed)
            with pytest.raises(Killed):
                work(acme)
        come_due(acme)
        work(acme)
        assert row(acme).state == "unknown" and "may have arrived" in row(acme).error and work(acme) == 0
        assert len(box.mails) == (moment == "after")


def test_a_worker_that_dies_before_it_began_leaves_it_to_the_next(acme: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(**_: Any) -> Any:
        raise Killed

    with mail_server() as box:
        put(acme)
        with monkeypatch.context() as patched:
            patched.setattr(outgoing, "get_connection", killed)
            with pytest.raises(Killed):
                work(acme)
        come_due(acme)
        work(acme)
    assert len(box.mails) == 1 and row(acme).state == "sent"


def test_of_two_workers_one_sends(acme: Any) -> None:
    with mail_server() as box:
        put(acme)
        with tenant_scope(str(acme.pk)):
            pk = str(Due.objects.get(task=outbox.TASK).pk)
        claim = due.claim(str(acme.pk), pk)
        assert claim is not None
        come_due(acme)
        work(acme)
        outbox.perform(claim)  # the first one wakes up: its lease is lost, and it sends nothing
    assert len(box.mails) == 1 and row(acme).state == "sent"


def test_slack_goes_to_the_address_that_holds_when_it_is_sent(acme: Any, alice: Any) -> None:
    hook = outbox.Hook(url_setting="slack_url")
    with hook_server() as receiver, tenant_scope(str(acme.pk)):
        choices.choose(acme, "slack_url", receiver.address, by=member_actor(alice))
        made = outbox.slack(acme, hook, "One proposal waits", about="Review")
        assert made is not None and "services" not in made.recipient
    with hook_server() as other:
        with tenant_scope(str(acme.pk)):
            choices.choose(acme, "slack_url", other.address, by=member_actor(alice))
        work(acme)
        assert (receiver.bodies, other.bodies) == ([], [b'{"text":"One proposal waits"}'])
        with tenant_scope(str(acme.pk)):
            outbox.slack(acme, hook, "Another", about="Review")
            choices.choose(acme, "slack_url", "", by=member_actor(alice))
        work(acme)
    with tenant_scope(str(acme.pk)):
        assert Message.objects.order_by("-public_id")[0].state == "failed"


def test_a_signed_webhook_keeps_its_id_over_tries(acme: Any) -> None:
    """Also after a broken connection: the receiver drops repeats by the id."""
    answers: list[Any] = [None, (503, {"Retry-After": "600"}), (200, {})]
    with hook_server(lambda number: answers[number - 1]) as receiver:
        with tenant_scope(str(acme.pk)):
            outbox.webhook(acme, outbox.Hook(receiver.address, "s" * 32), {"kind": "alert"}, about="Alert")
        for _ in answers:
            work(acme)
            if len(receiver.bodies) == 2:
                assert timedelta(seconds=590) < waits(acme) <= timedelta(seconds=600)
            come_due(acme)
    assert len({headers["webhook-id"] for headers in receiver.headers}) == 1 and len(receiver.bodies) == 3
    assert row(acme).state == "sent"


def test_a_private_address_of_an_admin_fails_aloud(acme: Any) -> None:
    with tenant_scope(str(acme.pk)):
        outbox.webhook(acme, outbox.Hook("https://127.0.0.1:1/x", "s" * 32), {}, about="Alert")
    work(acme)
    assert row(acme).state == "failed" and "private or loopback" in row(acme).error


def test_words_whose_key_is_gone_fail_aloud(acme: Any, settings: Any) -> None:
    with mail_server() as box:
        put(acme)
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "n" * 50, []
        work(acme)
    assert row(acme).state == "failed" and box.mails == []


def test_old_ones_are_forgotten_and_waiting_ones_sealed_anew(acme: Any, settings: Any) -> None:
    with mail_server():
        made = put(acme)
    assert made is not None
    former, settings.SECRET_KEY = settings.SECRET_KEY, "n" * 50
    settings.SECRET_KEY_FALLBACKS = [former]
    with tenant_scope(str(acme.pk)):
        assert outbox.reseal() == 1
    settings.SECRET_KEY_FALLBACKS = []
    assert "m.test" in vault.opened(bytes(row(acme).sealed or b""))
    with tenant_scope(str(acme.pk)):
        assert outbox.forget(acme) == 0
        Message.objects.update(created_at=timezone.now() - timedelta(days=31))
        assert outbox.forget(acme) == 1


def test_an_admin_sees_each_outcome_and_sends_again(acme: Any, alice: Any, mia: Any, logged_in: Any) -> None:
    browser = logged_in(alice)
    assert "Nothing was sent yet" in browser.get(PAGE).content.decode()
    with mail_server(lambda number: "554 no such mailbox" if number == 1 else "250 OK") as box:
        assert browser.post(PAGE + "try/", {"channel": "mail"}).status_code == 302
        assert "every 2s" in browser.get(PAGE).content.decode()
        work(acme)
        page = browser.get(PAGE).content.decode()
        assert "554 no such mailbox" in page and "alice@acme.test" in page and "every 2s" not in page
        again = f"{PAGE}{row(acme).public_id}/again/"
        assert logged_in(mia).post(again).status_code == 403 and logged_in(mia).get(PAGE).status_code == 403
        assert browser.post(again).status_code == 302
        work(acme)
        assert len(box.to("alice@acme.test")) == 1
        assert "was sent" in browser.post(again, follow=True).content.decode() and work(acme) == 0


def test_what_is_not_set_says_what_to_set(acme: Any, alice: Any, logged_in: Any, settings: Any) -> None:
    settings.EMAIL_HOST = ""
    browser = logged_in(alice)
    page = browser.get(PAGE).content.decode()
    assert "TEAM_MEMORY_SMTP_URL" in page and "No Slack webhook is set" in page and "Send me a test" not in page
    said = browser.post(PAGE + "try/", {"channel": "mail"}, follow=True).content.decode()
    assert "No mail server is set" in said
    assert "No Slack webhook" in browser.post(PAGE + "try/", {"channel": "slack"}, follow=True).content.decode()
    answer = browser.post("/t/acme/settings/", {"name": "slack_url", "value": "http://10.0.0.1/x"})
    assert answer.status_code == 422 and "https://" in answer.content.decode()
