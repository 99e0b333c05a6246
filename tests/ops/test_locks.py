"""The pinned packages: what the image installs is what the tests ran with, and nothing that only tests need."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def pinned(name: str) -> dict[str, str]:
    """Each package of a lock with its version."""
    lines = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", (ROOT / ".ci" / name).read_text(), re.MULTILINE)
    return {canonicalize_name(package): version for package, version in lines}


def wanted(lines: list[str]) -> dict[str, Requirement]:
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(one.name): one for one in found}


def test_the_image_installs_what_the_tests_ran_with() -> None:
    image, tests = pinned("production.lock"), pinned("requirements.lock")
    assert image and image.items() <= tests.items()
    assert not image.keys() & {"pytest", "moto", "mypy", "playwright", "hypothesis", "ruff"}
    assert "COPY .ci/production.lock" in (ROOT / "Dockerfile").read_text()


def test_the_locks_hold_what_the_project_asks_for() -> None:
    needs, develops = PROJECT["project"]["dependencies"], PROJECT["dependency-groups"]["dev"]
    for lock, lines in (("production.lock", needs), ("requirements.lock", needs + develops)):
        has = pinned(lock)
        for name, one in wanted(lines).items():
            assert name in has and one.specifier.contains(has[name], prereleases=True), (
                f"{lock}: make it anew for {one}"
            )
