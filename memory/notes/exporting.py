"""A space's notes taken out as files."""

from memory.notes import bundle
from memory.notes.models import Note
from memory.tenants.models import Member, Tenant


def packed(tenant: Tenant, member: Member | None, *, layout: str = "markdown") -> bytes:
    """The space as a zip; the same notes give the same bytes."""
    return bundle.write(texts_of(tenant, member).items(), layout=layout)


def texts_of(tenant: Tenant, member: Member | None) -> dict[str, str]:
    """The current text of each note of the space by its path."""
    rows = Note.objects.present().filter(tenant=tenant, member=member)
    return dict(rows.order_by("path_key", "pk").values_list("path", "current__text"))
