"""The mind without a model, on a recorded excerpt and on small made-up sessions."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from dream import distill_ledger as ledger
from dream.distill import SeenEvent, distill
from tests.dream.made_up import Log, everything, recorded, texts


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture(scope="module")
def real() -> dict[str, str]:
    return texts(distill(recorded(), project="attio-mcp-server", slug="attio-mcp-server").drafts)


# --- the recorded excerpt ---------------------------------------------------------------------------------------------


def test_it_tells_what_the_project_is(real: dict[str, str]) -> None:
    overview = real["project/attio-mcp-server/overview.md"]
    said = "names the package attio-mcp: “A Model Context Protocol server that connects Attio to LLMs”"
    assert said in overview


def test_it_tells_which_commands_work(real: dict[str, str]) -> None:
    commands = real["project/attio-mcp-server/commands.md"]
    assert "`npm run format`: succeeded in" in commands
    assert "`npm run build`: succeeded in" in commands


def test_it_tells_what_fixed_a_failed_command(real: dict[str, str]) -> None:
    failures = real["project/attio-mcp-server/work/failures.md"]
    check = "`npm run check`: reported findings, failed or gave no result in 1 run; succeeded after `npm run format`."
    assert check in failures
    assert "`npm run format:fix`: no success → `npm run format` succeeded" in failures


def test_it_tells_deliveries(real: dict[str, str]) -> None:
    assert (
        "PR #404 opened “Fix: Tasks resource type retrieval and conversion #394”"
        in real["project/attio-mcp-server/work/history.md"]
    )
    assert "aaeb53d1 on `fix/issue-394-tasks-resource`" in real["project/attio-mcp-server/work/history.md"]


def test_every_statement_cites_events_that_exist() -> None:
    events = recorded()
    known = {event.id for event in events}
    for draft in distill(events, project="p", slug="p").drafts:
        for section in draft.sections:
            for statement in section.statements:
                assert statement.events, statement.text
                assert set(statement.events) <= known, statement.text
                assert statement.tier in (1, 2, 3)


def test_every_note_is_whole_small_and_has_readable_frontmatter(real: dict[str, str]) -> None:
    for path, text in real.items():
        assert len(re.sub(r" \[evt_[^\]]*\]$", "", text, flags=re.M).encode()) <= 2560, path
        assert len(text.encode()) <= 4096, path
        head = yaml.safe_load(text.split("---\n")[1])
        assert set(head) == {"title", "description", "kind", "tags", "made_by"}
        assert len(head["description"]) <= 200
        assert head["made_by"] == "distill (rules, no model)"
        assert "without a model" in text
        assert all(line.endswith("]") for line in text.splitlines() if line.startswith("- ")), path


def test_a_run_without_new_events_changes_nothing() -> None:
    first = distill(recorded(), project="p", slug="p")
    kept = json.loads(json.dumps(first.state))
    second = distill([], project="p", slug="p", state=kept)
    assert texts(second.drafts) == texts(first.drafts)
    assert second.state == first.state


def test_sessions_in_any_order_and_chunk_give_the_same_notes() -> None:
    events = [*recorded(), *busy_sessions()]
    whole = texts(distill(events, project="p", slug="p").drafts)
    sessions = sorted({event.session for event in events})
    for seed in range(3):
        random.Random(seed).shuffle(sessions)  # noqa: S311 - an order, not a secret
        state: dict[str, Any] | None = None
        for session in sessions:
            run = distill([e for e in events if e.session == session], project="p", slug="p", state=state)
            state = json.loads(json.dumps(run.state))
        assert texts(run.drafts) == whole


def test_windows_of_one_session_give_the_same_notes() -> None:
    events = recorded()
    whole = texts(distill(events, project="p", slug="p").drafts)
    middle = sorted(event.seq for event in events)[len(events) // 2]
    first = distill([e for e in events if e.seq < middle], project="p", slug="p")
    second = distill([e for e in events if e.seq >= middle], project="p", slug="p", state=first.state)
    assert texts(second.drafts) == whole


def test_it_leaves_the_given_state_alone() -> None:
    first = distill(recorded(), project="p", slug="p")
    before = json.dumps(first.state)
    distill(busy_sessions(), project="p", slug="p", state=first.state)
    assert json.dumps(first.state) == before


def test_the_state_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MAX_STATE", 40_000)
    state: dict[str, Any] | None = None
    for round_number in range(4):
        log = Log(f"ses_{round_number}")
        for number in range(200):
            log.ran(f"go test ./internal/p{round_number}x{number} -run TestNumber{number}")
            log.edited(f"src/a{round_number}/file{number}.go")
        state = distill(log.events, project="p", slug="p", state=state).state
    assert state is not None
    assert len(json.dumps(state, ensure_ascii=False)) <= 40_000


def busy_sessions() -> list[SeenEvent]:
    return list(_busy())


def _busy() -> Iterator[SeenEvent]:
    for name in ("x", "y", "z"):
        log = Log(f"ses_{name}")
        log.prompt(f"always run the linter before a commit, says {name}")
        log.before("make lint")
        log.edited(f"src/{name}.py")
        log.ran("make lint")
        log.ran("git checkout -b topic/" + name)
        yield from log.events


# --- commands ---------------------------------------------------------------------------------------------------------


def test_a_call_without_a_result_is_never_called_a_success(log: Log) -> None:
    for _ in range(4):
        log.before("make test")
    log.ran("make build")
    commands = log.notes()["project/shop/commands.md"]
    assert "`make test`: 4 runs" in commands
    assert "`make test`: succeeded" not in commands


@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("npm test 2>&1 | tail -5", "some output"),
        ("go test ./... | head -3", "ok  \tshop/a\t0.1s\nok  \tshop/b\t0.1s"),
        ("npm test || true", "Tests  3 passed (3)"),
        ("npm test; echo done", "done"),
        ("npm test &", ""),
        ("cd web && npm test | grep -c x", "4"),
    ],
)
def test_a_hidden_exit_code_proves_nothing(log: Log, command: str, stdout: str) -> None:
    log.ran(command, stdout)
    assert "succeeded in" not in everything(log.notes())


def test_an_interrupted_command_is_no_success(log: Log) -> None:
    log.ran("npm run build", interrupted=True)
    assert "succeeded in" not in everything(log.notes())


def test_the_summary_behind_a_pipe_counts(log: Log) -> None:
    log.ran("npm test 2>&1 | tail -5", " Test Files  2 passed (2)\n      Tests  13 passed (13)")
    log.ran("npm test 2>&1 | tail -5", " Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 12 passed (13)")
    said = "`npm test`: fails about as often: succeeded in 1 of 2 runs (1 failed)."
    assert said in log.notes()["project/shop/commands.md"]


def test_a_chain_that_ended_well_proves_its_parts(log: Log) -> None:
    log.ran("cd /home/an/shop && npm run lint && npm run build")
    commands = log.notes()["project/shop/commands.md"]
    assert "`npm run lint`: succeeded in its 1 run" in commands
    assert "`npm run build`: succeeded in its 1 run" in commands


def test_a_chain_without_a_result_counts_only_its_first_part(log: Log) -> None:
    for _ in range(3):
        log.before("make lint && make build")
    commands = log.notes()["project/shop/commands.md"]
    assert "`make lint`: 3 runs" in commands
    assert "make build" not in commands


def test_other_harnesses_need_an_exit_code() -> None:
    codex = Log(client="codex")
    codex.add("tool_after", tool="Bash", tool_input={"command": "cargo test"}, tool_response="test result: FAILED")
    assert "succeeded in" not in everything(codex.notes())
    codex.add(
        "tool_after", tool="Bash", tool_input={"command": "cargo test"}, tool_response={"output": "", "exit_code": 0}
    )
    said = "`cargo test`: fails about as often: succeeded in 1 of 2 runs"
    assert said in codex.notes()["project/shop/commands.md"]


def test_an_exit_code_tells_a_failure() -> None:
    codex = Log(client="codex")
    call = {"command": "cargo test"}
    codex.add("tool_after", tool="Bash", tool_input=call, tool_response={"output": "error: no", "exit_code": 101})
    codex.add("tool_after", tool="Bash", tool_input=call, tool_response="Exit code: 0\nWall time: 1 s")
    said = "`cargo test`: fails about as often: succeeded in 1 of 2 runs (1 failed)."
    assert said in codex.notes()["project/shop/commands.md"]


def test_a_folder_named_in_front_does_not_hide_the_failure(log: Log) -> None:
    command = "cd web && npm run build"
    log.before(command)
    log.add("tool_failed", tool="Bash", tool_input={"command": command}, error="Exit code 2\nsrc/a.ts: error TS1: x")
    log.ran(command)
    said = "`npm run build`: fails about as often: succeeded in 1 of 2 runs (1 failed)."
    assert said in log.notes()["project/shop/commands.md"]


def test_a_stopped_command_did_not_fail(log: Log) -> None:
    log.ran("make build")
    log.add("tool_failed", tool="Bash", tool_input={"command": "make build"}, error="stopped", is_interrupt=True)
    assert "failed" not in log.notes()["project/shop/commands.md"].split("## ", 1)[1]


def test_commands_run_in_another_project_are_left_out(log: Log) -> None:
    log.ran("cd /srv/other && make build", "")
    log.ran("cd /tmp/trees/shop && make test", "")
    commands = log.notes()["project/shop/commands.md"]
    assert "`make test`" in commands
    assert "make build" not in commands


def test_commands_carry_what_the_projects_files_say_of_them(log: Log) -> None:
    page = "# shop\n\n- `make test` - Unit tests only\n\n```bash\nmake lint   # Run the linter\n```\n"
    log.read("CLAUDE.md", page)
    log.ran("make test")
    commands = log.notes()["project/shop/commands.md"]
    assert "`make test`: succeeded in its 1 run; “Unit tests only” (CLAUDE.md)." in commands
    assert "`make lint`: “Run the linter” (CLAUDE.md); no result was recorded." in commands


def test_a_comment_belongs_to_the_command_below_it(log: Log) -> None:
    log.read(
        "README.md", "# shop\n\n```bash\n# Run all tests\nmake test\n# Start a server\nmake build\n\nmake lint\n```\n"
    )
    commands = log.notes()["project/shop/commands.md"]
    assert "`make test`: “Run all tests” (README.md)" in commands
    assert "`make build`: “Start a server” (README.md)" in commands
    assert "make lint" not in commands


def test_a_later_reading_of_a_whole_file_stands_for_all_it_says(log: Log) -> None:
    log.read("CLAUDE.md", "# shop\n\nAll commands should be run using docker.\n\n- You MUST never push to main.\n")
    assert "using docker" in everything(log.notes())
    log.read("CLAUDE.md", "# shop\n\n- `make test` - Unit tests only\n")
    said = everything(log.notes())
    assert "using docker" not in said
    assert "push to main" not in said


def test_a_failure_event_gives_its_error_line(log: Log) -> None:
    log.before("npm run build")
    log.add(
        "tool_failed",
        tool="Bash",
        tool_input={"command": "npm run build"},
        error="Exit code 2\n> shop@1.0.0 build\n> tsc\n\nsrc/a.ts(4,38): error TS2307: Cannot find module 'axios'",
    )
    log.ran("npm install")
    log.ran("npm run build")
    failures = log.notes()["project/shop/work/failures.md"]
    assert "`npm run build`: failed in 1 run (“src/a.ts(4,38): error TS2307: Cannot find module 'axios'”)" in failures
    assert "succeeded after `npm install`." in failures


def test_edits_between_are_what_fixed_it(log: Log) -> None:
    log.ran("npm test | tail -3", "Tests  2 failed | 1 passed (3)")
    log.edited("src/cart.ts")
    log.ran("npm test")
    assert "succeeded after edits to `src/cart.ts`." in log.notes()["project/shop/work/failures.md"]


def test_a_flag_that_made_the_difference_is_told(log: Log) -> None:
    log.before("gh run list --branch main --label ci")
    log.ran("gh run list --branch main", "ok")
    said = "`gh run list --branch main --label ci`: no success → `gh run list --branch main` succeeded"
    assert said in log.notes()["project/shop/work/failures.md"]


@pytest.mark.parametrize("flag", ["--no-verify", "--force", "--skip-tests", "--legacy-peer-deps"])
def test_leaving_out_a_check_is_not_taught(log: Log, flag: str) -> None:
    log.before('git commit -m "one"')
    log.ran(f'git commit {flag} -m "one"', "[main 1a2b3c4d] one")
    assert "project/shop/work/failures.md" not in log.notes()
    assert flag not in log.notes().get("project/shop/commands.md", "")


def test_formatting_did_not_make_a_test_pass(log: Log) -> None:
    log.ran("npm test | tail -3", "Tests  2 failed | 1 passed (3)")
    log.ran("npx prettier --write src/cart.ts")
    log.edited("src/cart.ts")
    log.ran("npm test")
    assert "succeeded after edits to `src/cart.ts`." in log.notes()["project/shop/work/failures.md"]


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (3, "succeeded after edits to `src/part0.ts`, `src/part1.ts`, `src/part2.ts`."),
        (5, "succeeded after edits to `src/part2.ts`, `src/part3.ts`, `src/part4.ts` and 2 other files."),
        (6, "succeeded later."),
    ],
)
def test_edited_files_are_named_where_they_are_few(log: Log, count: int, told: str) -> None:
    log.ran("npm test | tail -3", "Tests  2 failed | 1 passed (3)")
    for number in range(count):
        log.edited(f"src/part{number}.ts")
    log.ran("npm test")
    assert told in log.notes()["project/shop/work/failures.md"]


def failing(log: Log, command: str, times: int) -> None:
    for _ in range(times):
        log.before(command)
        log.add("tool_failed", tool="Bash", tool_input={"command": command}, error="Exit code 1\nno")


def section(text: str, heading: str) -> str:
    return text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]


def test_a_command_that_mostly_fails_is_not_among_those_that_work(log: Log) -> None:
    failing(log, "make test", 9)
    log.ran("make test")
    failing(log, "make lint", 2)
    log.ran("make lint")
    log.ran("make build")
    commands = log.notes()["project/shop/commands.md"]
    often = section(commands, "Fail often, or seldom seen to succeed")
    assert "`make test`: often fails: succeeded in 1 of 10 runs (9 failed)." in often
    said = "`make lint`: often reports findings or fails: succeeded in 1 of 3 runs (2 reported findings or failed)."
    assert said in often
    assert "make build" not in often and "## Test" not in commands and "## Lint" not in commands


def test_a_command_without_a_result_does_not_look_broken(log: Log) -> None:
    for _ in range(4):
        log.before("make test")
    failing(log, "make build", 3)
    commands = log.notes()["project/shop/commands.md"]
    assert "`make test`: 4 runs, no result was recorded." in section(commands, "No result on record")
    never = section(commands, "Fail often, or seldom seen to succeed")
    assert "`make build`: failed in 3 of 3 runs, and was not seen to succeed." in never


def test_an_old_sessions_line_stays_when_another_session_has_events() -> None:
    old, new = Log("ses_a"), Log("ses_b")
    old.prompt("round the order total to two decimals")
    old.edited("shop/totals.py")
    failing(old, "make test", 1)
    before = distill(old.events, project="shop", slug="shop")
    line = next(line for line in texts(before.drafts)["project/shop/status.md"].splitlines() if "order total" in line)
    assert "no success seen since it failed: `make test`" in line
    new.prompt("add a page for the taxes of the order")
    new.edited("shop/taxes.py")
    state = json.loads(json.dumps(before.state))
    state["trails"].clear()
    after = distill(new.events, project="shop", slug="shop", state=state)
    assert line in texts(after.drafts)["project/shop/status.md"]


def test_only_the_files_touched_most_are_listed(log: Log) -> None:
    for number in range(12):
        for _ in range(4):
            log.edited(f"src/part{number}.ts")
            log.edited("src/other.ts")
    files = log.notes()["project/shop/work/files.md"]
    assert files.count("\n- ") == 8


def test_another_target_is_not_another_form(log: Log) -> None:
    log.before("go test ./a")
    log.ran("go test ./b")
    log.before("gh issue view 37")
    log.ran("gh issue view 35")
    assert "project/shop/work/failures.md" not in log.notes()


def test_parallel_calls_are_not_taken_for_failures(log: Log) -> None:
    log.before("npm run build")
    log.before("npm run build -- --watch=false")
    log.after("npm run build -- --watch=false")
    log.after("npm run build")
    assert "project/shop/work/failures.md" not in log.notes()


def test_words_in_other_peoples_logs_are_no_failures(log: Log) -> None:
    log.ran("gh run view 12 --log-failed | head -20", "FAIL  src/a.test.ts\nerror: no")
    log.ran("cat build.log | head", "npm ERR! missing script")
    assert not [path for path in log.notes() if "failures" in path]


def test_a_folder_below_the_root_keeps_the_paths_of_the_project(log: Log) -> None:
    for _ in range(3):
        log.add("tool_before", tool="Read", tool_input={"file_path": "/home/an/shop/web/a.ts"}, cwd="/home/an/shop/web")
    assert "`web/a.ts`: 3 reads, in 1 session" in log.notes()["project/shop/work/files.md"]


def test_worktrees_and_machines_share_the_paths_of_one_project() -> None:
    events = []
    for number, root in enumerate(("/home/an/shop", "/Users/binh/work/shop", "/tmp/trees/shop")):
        log = Log(f"ses_{number}")
        for _ in range(2):
            given = {"file_path": f"{root}/src/cart.ts"}
            log.add("tool_before", tool="Read", tool_input=given)
        events += log.events
    files = texts(distill(events, project="shop", slug="shop").drafts)["project/shop/work/files.md"]
    assert "`src/cart.ts`: 6 reads, in 3 sessions" in files
