#!/usr/bin/env python
"""The command line: `manage.py start` runs Team Memory, `manage.py help` lists the rest."""

import os
import sys

from memory.management.borrowed import for_command
from memory.management.home import Refused


def main() -> None:
    """Run one command, with the embedded database for its time where the command needs one."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory.settings")
    try:
        with for_command(sys.argv):  # takes --data-dir out of it
            from django.core.management import execute_from_command_line

            execute_from_command_line(sys.argv)
    except Refused as why:
        sys.exit(f"team-memory: {why}")


if __name__ == "__main__":
    main()
