"""Settings of the tests: the database is up before the app's own settings are read."""

import os

from tests.database import NAME

# Programs that the tests start use the app's settings, over the same database.
os.environ["DJANGO_SETTINGS_MODULE"] = "memory.settings"

from memory.settings import *  # noqa: F403

DATABASE_OF_TESTS = NAME
