"""What sessions were told, note by note, and what search reads."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
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
    # Null while it waits: a client with a backlog is told at once, and sends its event after those before it.
    event = models.ForeignKey(Event, models.CASCADE, null=True, db_constraint=False, related_name="tellings")
    # The key of the event that it waits for.
    awaits = models.CharField(max_length=300, blank=True)
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
            models.UniqueConstraint(
                fields=["awaits", "tenant"], condition=models.Q(event__isnull=True), name="one_telling_awaits_an_event"
            ),
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


class HalfVector(models.Field):  # type: ignore[type-arg]
    """pgvector's half precision, of any length: which lengths have an index is said in the migration."""

    def db_type(self, connection: Any) -> str:
        return "halfvec"


class Mark(models.Model):
    """A thing that was made or changed since search last read it. The database itself puts these down, beside the
    change and in its transaction; whoever searches, or the clock, takes them away.
    """

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    kind = models.CharField(max_length=10)
    target = models.UUIDField()

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


class Entry(TenantOwned):
    """What search reads of one thing: its words as numbers (the tenant is hashed into each), and who may find it."""

    kind = models.CharField(max_length=10)
    target = models.UUIDField()
    # NIL is everybody: one column and one list of values, since an OR would cost the index.
    reader = models.UUIDField()
    # The project, or what stands for a project's name; NIL is all projects.
    place = models.UUIDField()
    thread = models.UUIDField(null=True)
    version = models.IntegerField()
    words = ArrayField(models.BigIntegerField())
    # The words of what it is called.
    head = ArrayField(models.BigIntegerField())
    size = models.IntegerField()
    # The whole text folded, for signs and parts of words.
    folded = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["target", "kind"], name="one_entry_per_thing")]
        indexes = [
            models.Index(fields=["tenant", "place", "kind"], name="recall_entry_reach"),
            GinIndex(fields=["words"], name="recall_entry_words", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


class Vector(TenantOwned):
    """The vector of one passage of an entry; before it is computed, the row that says it is wanted."""

    entry = models.ForeignKey(Entry, models.CASCADE, db_constraint=False, related_name="vectors")
    chunk = models.IntegerField()
    kind = models.CharField(max_length=10)
    reader = models.UUIDField()
    place = models.UUIDField()
    thread = models.UUIDField(null=True)
    sha256 = models.BinaryField()
    # Which embedder made it, in which version. Only those of one are ever compared.
    made_with = models.CharField(max_length=120, blank=True)
    dimensions = models.IntegerField(default=0)
    embedding = HalfVector(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["entry", "chunk"], name="one_vector_per_passage")]
        indexes = [
            models.Index(fields=["tenant", "made_with", "id"], name="recall_vector_made_with"),
            models.Index(fields=["tenant", "place", "kind"], name="recall_vector_reach"),
            models.Index(fields=["thread"], condition=models.Q(thread__isnull=False), name="recall_vector_thread"),
        ]

    def __str__(self) -> str:
        return f"{self.entry_id} {self.chunk}"


class Word(models.Model):
    """A word that a team has written: what a mistyped one may have meant."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.ForeignKey(Tenant, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    word = models.CharField(max_length=30)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["word", "tenant"], name="one_row_per_word")]
        indexes = [GinIndex(fields=["word"], opclasses=["gin_trgm_ops"], name="recall_word_likeness")]

    def __str__(self) -> str:
        return self.word
