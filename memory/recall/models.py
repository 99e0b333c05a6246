"""What sessions were told, note by note."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from memory import ids
from memory.events.models import Event, Session
from memory.notes.models import Note, Revision
from memory.tenants.models import Member, Tenant, TenantOwned


def telling_id() -> str:
    return ids.mint("telling")


class Telling(TenantOwned):
    """One answer given to a session. `text` is kept, so "what was it told?" has an exact answer."""

    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="tellings")
    public_id = models.CharField(max_length=100, default=telling_id)
    session = models.ForeignKey(Session, models.CASCADE, db_constraint=False, related_name="tellings")
    event = models.ForeignKey(Event, models.CASCADE, db_constraint=False, related_name="tellings")
    member = models.ForeignKey(Member, models.SET_NULL, null=True, db_constraint=False, related_name="+")
    kind = models.CharField(max_length=8, choices=[("start", "start"), ("prompt", "prompt")])
    generation = models.IntegerField(default=0)
    text = models.TextField()
    left_out = models.IntegerField(default=0)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "public_id"], name="one_telling_per_id"),
            models.UniqueConstraint(fields=["event"], name="one_telling_per_event"),
        ]

    def __str__(self) -> str:
        return self.public_id


class ToldNote(TenantOwned):
    """A note inside a telling, and why it was told."""

    telling = models.ForeignKey(Telling, models.CASCADE, db_constraint=False, related_name="notes")
    note = models.ForeignKey(Note, models.CASCADE, db_constraint=False, related_name="told")
    revision = models.ForeignKey(Revision, models.CASCADE, db_constraint=False, related_name="told")
    position = models.IntegerField()
    why = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["telling", "note"], name="a_note_is_told_once_a_telling")]

    def __str__(self) -> str:
        return f"{self.telling_id} {self.note_id}"


class NoteWords(TenantOwned):
    """What search reads of a note: the words of its current revision, made again when that or the word rules change."""

    note = models.OneToOneField(Note, models.CASCADE, db_constraint=False, related_name="words")
    revision = models.ForeignKey(Revision, models.CASCADE, db_constraint=False, related_name="+")
    path_key = models.CharField(max_length=255)
    version = models.IntegerField()
    words = ArrayField(models.TextField())
    # The words of path, title and description.
    head = ArrayField(models.TextField())
    # The whole text folded, for parts of words and signs.
    folded = models.TextField()

    def __str__(self) -> str:
        return self.path_key
