"""Tombstones: what people turned down or took out, so that no dream brings it back."""

from memory.notes import lines
from memory.notes.models import Note, Proposal, Revision, Tombstone
from memory.sentences import sentence


def bury(note: Note, unwanted: set[str] | set[None], reason: str, *, proposal: Proposal | None = None) -> None:
    """Close the note to these lines, or for None to all that a dream proposes; `proposal` is the decision it was."""
    known = set(note.tombstones.values_list("line", flat=True))
    Tombstone.objects.bulk_create(
        Tombstone(tenant_id=note.tenant_id, note=note, line=line, reason=reason, proposal=proposal)
        for line in sorted(unwanted - known, key=str)
    )


def take_out(note: Note, text: str, *before: Proposal | Revision | None, proposal: Proposal | None = None) -> None:
    """Remember which lines of these texts a person did not let stand in the new one."""
    gone = {lines.substance(line) for one in before if one for line in lines.taken_out(text, one.text)}
    bury(note, gone, sentence("Taken out by a person."), proposal=proposal)
