"""An event whose stored payload nobody can read: its team dreams on."""

from typing import Any

import pytest

from dream.models import Watermark, Window
from memory.events.models import Event
from tests import database
from tests.dream.test_run import Scribe, dreamt
from tests.dream.told import prompt, stop, tell


@pytest.mark.parametrize(
    ("body", "is_told"),
    [('{"prompt": "odd", "v": 1e999}', False), ("{cut off", True), ("[" * 100 + "]" * 100, True), ("null", False)],
)
def test_it_goes_on_and_says_which_event_was_unreadable(
    acme: Any, alice: Any, bound: Any, body: str, is_told: bool
) -> None:
    tell(alice, "s1", prompt("one"), prompt("odd"), prompt("three"), stop())
    with database.migrator() as everything:
        everything.execute("UPDATE events_event SET body = %s WHERE seq = 2", [body])
    mind = Scribe()
    run = dreamt(acme, mind) if "1e999" in body else dreamt(acme, Patient())
    assert run.state == "succeeded"
    with bound(acme):
        assert Watermark.objects.get().seq == Event.objects.count() == 4
        assert ("Event 2 could not be read" in Window.objects.get().detail) is is_told
    if mind.batches:
        assert mind.batches == [["one", "odd", "three", "stop"]]


class Patient(Scribe):
    """A mind that takes an event without its payload."""

    def dream(self, material: Any) -> Any:
        for event in material.events:
            event.payload.setdefault("prompt", event.payload.get("summary", ""))
        return super().dream(material)
