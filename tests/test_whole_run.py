"""How a run of the whole suite is shared among the cores."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests import conftest


def run(**more: Any) -> Any:
    option = SimpleNamespace(markexpr="not slow", numprocesses=None, usepdb=False, dist="no")
    source = pytest.Config.ArgsSource
    return SimpleNamespace(args_source=source.TESTPATHS, ArgsSource=source, option=option, **more)


def test_it_is_shared_and_a_share_is_not() -> None:
    whole, share = run(), run(workerinput={})
    for config in (whole, share):
        conftest.pytest_cmdline_main(config)
    assert 1 <= whole.option.numprocesses <= conftest.MOST_WORKERS and whole.option.dist == "loadfile"
    assert share.option.numprocesses is None
