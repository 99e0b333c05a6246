"""What dreams keep of a project goes over when the project is merged into another."""

from typing import Any

from dream.mind import DistillMind
from dream.models import Digest
from memory.events import projects
from memory.events.models import Project
from memory.notes.models import Proposal
from memory.tenants.access import member_actor
from memory.tenants.rls import tenant_scope
from tests.dream.test_run import Scribe, dreamt, scheduled
from tests.dream.told import prompt, ran, stop, tell


def told(alice: Any) -> None:
    tell(alice, "s1", prompt("never push to main"), *ran("make test"), stop(), root="/home/dev/shop")
    tell(alice, "s2", prompt("use the bank of tests"), *ran("make build"), stop(), root="/home/dev/bank")


def merge(tenant: Any, alice: Any) -> None:
    with tenant_scope(str(tenant.pk)):
        old, new = Project.objects.get(slug="bank"), Project.objects.get(slug="shop")
        projects.merge(old, into=new, by=member_actor(alice))


def waiting(tenant: Any) -> dict[str, str]:
    with tenant_scope(str(tenant.pk)):
        return {row.note.path: row.text for row in Proposal.objects.open().select_related("note")}


def test_open_proposals_of_the_old_name_end_and_what_they_said_is_proposed_under_the_new(acme: Any, alice: Any) -> None:
    told(alice)
    dreamt(acme, DistillMind())
    assert "project/bank/commands.md" in waiting(acme)
    merge(acme, alice)
    run = dreamt(acme, DistillMind())
    after = waiting(acme)
    assert not [path for path in after if path.startswith("project/bank/")]
    assert "make build" in after["project/shop/commands.md"] and "make test" in after["project/shop/commands.md"]
    assert (run.state, run.sessions_read) == ("succeeded", 2)
    with tenant_scope(str(acme.pk)):
        ended = Proposal.objects.filter(state="superseded", note__path__startswith="project/bank/")
        assert {row.decision_reason for row in ended} == {"The project bank was merged into shop."}
        assert Digest.objects.get().project.slug == "shop"  # type: ignore[union-attr]
    again = dreamt(acme, DistillMind())
    assert (again.state, again.events_read) == ("no_change", 0) and waiting(acme) == after


def test_a_dream_by_the_clock_follows_too(acme: Any, alice: Any) -> None:
    told(alice)
    dreamt(acme, DistillMind())
    merge(acme, alice)
    assert scheduled(acme, DistillMind()) is not None
    assert {path.split("/")[1] for path in waiting(acme)} == {"shop"}


def test_nothing_untold_is_proposed_under_the_old_name(acme: Any, alice: Any) -> None:
    told(alice)
    dreamt(acme, Scribe())
    with tenant_scope(str(acme.pk)):
        Proposal.objects.all().delete()
        Digest.objects.update(has_news=True)
    merge(acme, alice)
    dreamt(acme, Scribe())
    assert set(waiting(acme)) == {"project/shop/asked.md"}


def test_a_model_does_not_read_everything_again(acme: Any, alice: Any) -> None:
    told(alice)
    dreamt(acme, DistillMind())
    merge(acme, alice)
    model = Scribe()
    model.model = "some model"
    assert dreamt(acme, model).events_read == 0
    assert not [path for path in waiting(acme) if path.startswith("project/bank/")]
