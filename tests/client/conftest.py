"""A machine of one's own for each test, and a server that can be told how to behave."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.machine import Machine
from tests.client.scripted import Scripted, scripted


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "home")
    yield made
    made.leave()


@pytest.fixture
def server() -> Iterator[Scripted]:
    with scripted() as running:
        yield running
