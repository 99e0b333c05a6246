"""What pages call people: the name that each gave themselves, else their handle."""

import unicodedata
from collections import Counter
from functools import cached_property
from typing import Final

from django.utils.translation import gettext

from memory.tenants.models import Member, Tenant, User

LONGEST: Final = 60
# They join letters of Persian and of Indian scripts, and pieces of emoji; all else that is not seen may hide or turn
# what stands beside it.
_JOINERS: Final = frozenset("\u200c\u200d")
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))


class InvalidName(ValueError):
    """Nobody can be called so; the message says why."""


def cleaned(said: str) -> str:
    """A name as it is kept: one line, NFC, single spaces; "" is no name. Raises InvalidName."""
    name = unicodedata.normalize("NFC", " ".join(said.split()))
    if len(name) > LONGEST:
        raise InvalidName(gettext("A name has at most %(longest)s characters.") % {"longest": LONGEST})
    if any(unicodedata.category(one) in _UNSEEN and one not in _JOINERS for one in name):
        raise InvalidName(gettext("A character in it can't be seen. Type the name instead of pasting it."))
    if name and not any(one.isalnum() for one in name):
        raise InvalidName(gettext("A name has at least one letter or digit."))
    return name


def rename(user: User, said: str) -> str:
    """Another name for a person, in all of their teams; gives what they were called before. Raises InvalidName."""
    before = user.name
    user.name = cleaned(said)
    user.save(update_fields=["name"])
    return before


class Names:
    """What the pages of a team call its members. The database is asked once, when a page first names somebody."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant

    def of(self, handle: str) -> str:
        """The member with this handle, present or former, as pages call them."""
        return self._by_handle.get(handle, handle)

    @cached_property
    def _by_handle(self) -> dict[str, str]:
        everybody = Member.objects.filter(tenant=self.tenant)
        rows = list(everybody.exclude(user__name="").values_list("handle", "user__name"))
        if not rows:
            return {}
        # Of two that are called alike, or of one who is called as another's handle, nobody knew who is meant.
        taken = Counter(name.casefold() for _, name in rows)
        handles = set(everybody.values_list("handle", flat=True))
        return {
            handle: name
            if taken[name.casefold()] == 1 and name.casefold() not in handles - {handle}
            else f"{name} ({handle})"
            for handle, name in rows
        }
