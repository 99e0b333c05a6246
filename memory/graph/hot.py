"""What the SQL of the graph's hot doors is asked with: one row, and who may."""

from collections.abc import Sequence
from typing import Any

from memory.tenants.access import MAY, SCOPES
from memory.tenants.trip import rows


def row(sql: str, values: Sequence[Any]) -> tuple[Any, ...]:
    """The one row of a statement."""
    return rows(sql, values)[0]


def roles(action: str) -> list[str]:
    """Whose key's owner may do the action."""
    return sorted(MAY[action] - {"agent", "dream"})


def literals(*lists: list[str]) -> str:
    """Lists of our own words as SQL: as parameters they would be packed anew for each call."""
    return ", ".join("'{" + ",".join(words) + "}'::text[]" for words in lists)


def scopes(action: str) -> list[str]:
    """The scopes that open the action."""
    return sorted(scope for scope, actions in SCOPES.items() if action in actions)
