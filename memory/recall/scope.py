"""Which notes a session may be told, and in which order: profiles, the project, tools, the rest."""

from collections.abc import Iterable
from typing import Final

from django.db.models import Case, CharField, IntegerField, Q, Value, When

from memory.events.models import Project
from memory.notes import paths
from memory.notes.models import Note, NoteQuerySet

TEAM_PROFILE: Final = "1 team profile"
OWN_PROFILE: Final = "2 own profile"
PROJECT: Final = "3 project"
TOOLS: Final = "4 tools"
GENERAL: Final = "5 general"

# Of a project's notes: what a session can act on comes first, and what only records comes last.
USEFUL: Final = ("commands.md", "rules.md", "failures.md", "status.md", "overview.md")
RECORDS: Final = ("history.md", "requests.md", "files.md")
_USE: Final = {name: rank for rank, name in enumerate([*USEFUL, "", *RECORDS]) if name}


def same_project(project: Project | None) -> list[Project]:
    """The project where it stands after merges, and all that were merged into it."""
    if project is None:
        return []
    while project.merged_into is not None:
        project = project.merged_into
    found, layer = [project], [project]
    while layer:
        layer = list(Project.objects.filter(merged_into__in=layer).exclude(pk__in=[one.pk for one in found]))
        found += layer
    return found


def within_reach(projects: Iterable[Project], member_pk: str | None) -> NoteQuerySet:
    """Live notes of the team and of this member; of project notes only those of these projects."""
    projects = list(projects)
    own = Q(project__in=projects)
    for project in projects:
        # Written before the project was known by that name.
        own |= Q(project__isnull=True, path_key__startswith=f"project/{paths.path_key(project.slug)}/")
    is_project_note = Q(path_key__startswith="project/") | Q(project__isnull=False)
    mine = Q(member__isnull=True) | (Q(member_id=member_pk) if member_pk else Q(pk__in=[]))
    return Note.objects.live().filter(mine).filter(~is_project_note | own)


def in_order(notes: NoteQuerySet, home: Project | None = None) -> NoteQuerySet:
    """By priority, pins, use and path, so that the same memory is told in the same order.

    Notes of projects that were merged into `home` stand after its own.
    """
    is_profile = Q(path_key__startswith="profile/")
    is_project = Q(path_key__startswith="project/")
    priority = Case(
        When(is_profile, member__isnull=True, then=Value(TEAM_PROFILE)),
        When(is_profile, then=Value(OWN_PROFILE)),
        When(is_project, then=Value(PROJECT)),
        When(path_key__startswith="tools/", then=Value(TOOLS)),
        default=Value(GENERAL),
        output_field=CharField(),
    )
    is_own = Q(path_key__startswith=f"project/{paths.path_key(home.slug)}/") if home else is_project
    merged = Case(When(is_project & ~is_own, then=Value(1)), default=Value(0), output_field=IntegerField())
    ranks = [When(is_project & Q(path_key__endswith=f"/{name}"), then=Value(rank)) for name, rank in _USE.items()]
    use = Case(*ranks, default=Value(len(USEFUL)), output_field=IntegerField())
    found = notes.annotate(priority=priority, merged=merged, use=use)
    return found.order_by("priority", "merged", "-is_pinned", "use", "path_key", "pk")


def is_record(note: Note) -> bool:
    """Whether a project's note only records what was: good to find, seldom worth telling unasked."""
    return note.path_key.startswith("project/") and note.path_key.endswith(tuple(f"/{name}" for name in RECORDS))
