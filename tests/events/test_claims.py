"""What a session works on, by rule, told by its events. Each row is what an agent's shell or a person really says."""

from typing import Any

import pytest

from memory.events.cited import marks_of
from memory.events.claims import Claims, Heard, threads_of

HOME = "github:acme/payments"
PR = "https://github.com/acme/payments/pull/412"


def shell(command: str, said: str) -> Heard:
    payload = {"tool_input": {"command": command}, "tool_response": {"stdout": said, "stderr": ""}}
    return Heard("tool_after", "Bash", payload)


def prompt(text: str) -> Heard:
    return Heard("prompt", "", {"prompt": text})


def tool(name: str, told: dict[str, Any], said: Any) -> Heard:
    return Heard("tool_after", name, {"tool_input": told, "tool_response": said})


def works_on(*events: Heard, home: str = HOME) -> set[str]:
    return {one for one in threads_of(events, home=home).works_on if not one.startswith("branch:")}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("gh pr create --title 'Retry' --body 'As #7'", f"{PR}\n"),
        ("cd api && gh pr create -R acme/payments -t x", f"Warning: 2 uncommitted changes\n{PR}"),
        ("gh pr checkout 412", "Switched to branch 'fix/retry'"),
        ("gh pr merge 412 --squash", "✓ Squashed and merged pull request #412"),
        ("gh pr comment 412 --body 'done'", f"{PR}#issuecomment-1"),
        (f"gh pr review {PR} --approve", ""),
        ("gh pr review --approve 412", ""),
        ("gh pr view", "title:\tRetry\nstate:\tOPEN\nnumber:\t412\nurl:\t" + PR),
        ("gh pr view --json number,url", '{"number":412,"url":"' + PR + '"}'),
        ("gh issue comment 412 --body 'Fixed'", "https://github.com/acme/payments/issues/412#issuecomment-9"),
        ("gh issue close 412", "✓ Closed issue #412"),
        ("git checkout -b fix/issue-412-retry", "Switched to a new branch 'fix/issue-412-retry'"),
        ("git commit -m 'Retry twice'", "[fix/issue-412-retry 308bcb3] Retry twice\n 1 file changed"),
        (
            "git push -u origin fix/issue-412-retry",
            "To https://github.com/acme/payments.git\n * [new branch]      fix/issue-412-retry -> fix/issue-412-retry",
        ),
        ("git push", "To github.com:acme/payments.git\n   bbf59ca..7c4ca6e  HEAD -> fix/issue-412-retry"),
    ],
)
def test_what_git_and_gh_tell(command: str, said: str) -> None:
    assert works_on(shell(command, said)) == {f"{HOME}#412"}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("gh pr view 412", f"title:\tRetry\nnumber:\t412\nurl:\t{PR}"),
        ("gh pr list", f"412\tRetry\tfix/issue-412\tOPEN\n{PR}"),
        ("gh pr diff 412", "+ retry()"),
        ("gh issue view 412 --comments", "number:\t412"),
        ("gh issue list", "412\tOPEN\tRetry"),
        ("gh issue create --title x", "https://github.com/acme/payments/issues/412"),
        ("gh pr create --title x", "pull request create failed: no commits between main and fix/issue-412"),
        ("git log --oneline", "[fix/issue-412 308bcb3] x"),
        ("git branch -a", "* fix/issue-412-retry"),
        ("git checkout main", "Switched to branch 'main'"),
        ("git checkout fix/issue-412-retry", "Already on 'fix/issue-412-retry'"),
        ("git push origin --delete fix/issue-412-retry", " - [deleted]         fix/issue-412-retry"),
        ("git push origin :fix/issue-412-retry", " - [deleted]         fix/issue-412-retry"),
        ("git push", "To https://github.com/acme/payments.git\n   bbf59ca..7c4ca6e  main -> main"),
        ("git push", "Everything up-to-date"),
        ("echo 'gh pr merge 412'", ""),
        ("cat notes.md", f"see {PR}, git push, gh pr merge 412"),
    ],
)
def test_what_is_only_read_is_not_its_work(command: str, said: str) -> None:
    assert works_on(shell(command, said)) == set()


def test_a_call_that_failed_is_nothing() -> None:
    failed = Heard("tool_failed", "Bash", {"tool_input": {"command": "gh pr create"}, "tool_response": PR})
    assert works_on(failed) == set()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"Review {PR} and improve it", {f"{HOME}#412"}),
        (f"as per {PR}#issuecomment-31 take phase 2 to PR", {f"{HOME}#412"}),
        ("fix #412 please", {f"{HOME}#412"}),
        ("PR 412 has failing CI tests", {f"{HOME}#412"}),
        ("look into thr_pr_412", {"thr_pr_412"}),
        ("do https://github.com/acme/web/issues/9", {"github:acme/web#9"}),
        (f"do it like {PR} but for refunds", set()),
        ("make an issue based on #412", set()),
        ("merge what is in feature/issue-363-tools", set()),
        ("which of #1, #2, #3, #4 is oldest?", set()),
        ("the colour is #412", set()),
        ("PR pls", set()),
    ],
)
def test_what_a_prompt_gives_to_do(text: str, wanted: set[str]) -> None:
    assert works_on(prompt(text)) == wanted


def test_the_tools_of_a_forge_count_where_they_write() -> None:
    where = {"owner": "acme", "repo": "payments"}
    made = [{"type": "text", "text": '{"id":27,"number":412,"state":"open"}'}]
    assert works_on(tool("mcp__github__create_pull_request", where | {"title": "x"}, made)) == {f"{HOME}#412"}
    assert works_on(tool("mcp__github__merge_pull_request", where | {"pullNumber": 412}, "")) == {f"{HOME}#412"}
    assert works_on(tool("mcp__github__add_issue_comment", where | {"issue_number": 412}, "")) == {f"{HOME}#412"}
    assert works_on(tool("mcp__github__get_pull_request", where | {"pullNumber": 412}, made)) == set()
    assert works_on(tool("mcp__github__list_issues", where, made)) == set()


def test_the_repository_is_learnt_on_the_way() -> None:
    push = shell("git push", "To git@github.com:acme/payments.git\n * [new branch] fix/gh-412 -> fix/gh-412")
    found = threads_of([prompt("fix #7"), push])
    assert found.home == HOME
    assert set(found.works_on) == {"#7", "branch:fix/gh-412", f"{HOME}#412"}


def test_other_harnesses_shapes_are_read() -> None:
    cursor = Heard("tool_after", "shell", {"tool_input": {"command": ["gh", "pr", "create"]}, "output": PR})
    codex = Heard("tool_after", "shell", {"tool_input": {"cmd": "gh pr create"}, "tool_result": {"output": PR}})
    assert works_on(cursor) == works_on(codex) == {f"{HOME}#412"}


def test_what_it_names_marks_single_triggers() -> None:
    found = threads_of(
        [prompt(f"address {PR}#issuecomment-3161"), shell("git commit -m x", "[fix/x 308bcb3] x")], home=HOME
    )
    assert list(found.named) == [f"opened:{HOME}#412", "comment:3161", "commit:308bcb3"]
    assert marks_of({"comment": {"id": 3161}, "head_commit": {"id": "308bcb3f"}}) == ["comment:3161", "commit:308bcb3f"]
    assert marks_of({"comment": "x", "head_commit": None}) == []


def test_odd_payloads_say_nothing() -> None:
    for payload in ({}, {"tool_input": "x"}, {"tool_input": {"command": 7}}, {"tool_input": {"command": "git push"}}):
        assert threads_of([Heard("tool_after", "Bash", payload)]) == Claims()
    assert threads_of([Heard("prompt", "", {})]) == Claims()
