"""One flight: many ask, one runs. Real threads over committed transactions."""

import threading
import time
from collections import Counter
from typing import Any

import pytest
from django.db import connection

from tests.cache.asked import call

ASKERS = 64


def run(desk: Any, ran: Counter[str], name: str, *, dies: bool = False, deadline: float = 60.0) -> str:
    """What a client does: ask until there is an answer, and run the tool where it is told to."""
    body = call(lease_s=1 if dies or ran["impatient"] else 60)
    until = time.monotonic() + deadline
    while time.monotonic() < until:
        said = desk.post("cache/tools/lookup", body).json()
        if said["status"] == "hit":
            return str(said["result"])
        if said["status"] == "miss":
            ran[name] += 1
            if dies:
                return "died"
            time.sleep(0.05)
            desk.put(f"cache/tools/{said['key']}", {"lease": said["lease"], "result": f"by {name}"})
            return f"by {name}"
        time.sleep(min(said["retry_after"], 0.2))
    raise AssertionError("no answer")


def together(desk: Any, names: list[str], ran: Counter[str]) -> dict[str, str]:
    answers: dict[str, str] = {}
    gate = threading.Barrier(len(names))

    def work(name: str) -> None:
        gate.wait()
        try:
            answers[name] = run(desk, ran, name)
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    return answers


@pytest.fixture
def desk(agent: Any, api: Any) -> Any:
    return api(agent)


def test_64_askers_of_one_cold_key_run_the_tool_once(desk: Any) -> None:
    ran: Counter[str] = Counter()
    answers = together(desk, [f"a{number}" for number in range(ASKERS)], ran)
    assert sum(ran.values()) == 1, ran
    [leader] = ran
    assert len(answers) == ASKERS and set(answers.values()) == {f"by {leader}"}


def test_when_the_leader_dies_one_other_runs_it(desk: Any) -> None:
    ran: Counter[str] = Counter()
    assert run(desk, ran, "leader", dies=True) == "died"
    answers = together(desk, [f"b{number}" for number in range(12)], ran)
    assert ran.pop("leader") == 1 and sum(ran.values()) == 1, ran
    [successor] = ran
    assert set(answers.values()) == {f"by {successor}"}
