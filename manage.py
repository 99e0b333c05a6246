#!/usr/bin/env python
"""The command line: `manage.py start` runs Team Memory, `manage.py help` lists the rest."""

import os
import sys

from memory.management.borrowed import for_command
from memory.management.home import Refused


def is_schema_missing(fault: Exception) -> bool:
    """Whether the database refused a statement because its tables or functions are not made yet."""
    from psycopg.errors import UndefinedFunction, UndefinedTable

    return isinstance(fault.__cause__, UndefinedTable | UndefinedFunction)


def main() -> None:
    """Run one command, with the embedded database for its time where the command needs one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory.settings")
    try:
        with for_command(sys.argv):  # takes --data-dir out of it
            from django.core.management import execute_from_command_line

            execute_from_command_line(sys.argv)
    except Refused as why:
        sys.exit(f"team-memory: {why}")
    except Exception as fault:
        if not is_schema_missing(fault):
            raise
        sys.exit(
            "team-memory: the database has no schema yet. Run `manage.py start`, or wait until a start that is under"
            " way has printed its addresses; then run this again."
        )


if __name__ == "__main__":
    main()
