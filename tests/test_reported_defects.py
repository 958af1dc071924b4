"""D1 to D12, the defects that an author of servers reported, and the tests that hold each mend.

The tests stand beside others of their subject; this table finds them by the number of the report.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
MENDED_BY = {
    "D1: Field(...) as the default of a parameter was ignored": [
        "tools/test_field_markers.py::"
        "test_field_as_a_default_gives_the_function_the_value_of_the_default",
        "tools/test_field_markers.py::test_field_without_a_default_makes_the_argument_required",
        "tools/test_field_markers.py::test_the_limits_of_a_field_as_a_default_are_enforced",
        "tools/test_field_markers.py::"
        "test_a_default_and_a_default_factory_inside_annotated_make_an_argument_optional",
        "tools/test_field_markers.py::"
        "test_an_alias_is_the_name_of_the_argument_in_schema_call_and_error",
    ],
    "D2: markers of FastAPI lost their limits, and Depends was an argument": [
        "tools/test_field_markers.py::test_the_limits_of_fastapi_markers_are_enforced",
        "tools/test_foreign_markers.py::"
        "test_a_parameter_that_another_framework_fills_in_is_refused_with_what_to_write",
    ],
    "D3: the pytest plugin took the fixture `client` of other plugins": [
        "middleware/test_pytest_plugin.py::test_the_plugin_takes_no_fixture_name_of_another_plugin",
    ],
    "D4: nothing ran at the start and at the end of each worker": [
        "server/test_lifespan_processes.py::"
        "test_sigterm_under_load_answers_every_request_and_closes_what_was_opened",
    ],
    "D5: stdio ran no `finally` block after SIGTERM": [
        "server/test_stdio.py::test_a_signal_writes_the_records_and_runs_finally_blocks",
        "server/test_lifespan_processes.py::test_on_stdio_the_end_of_the_input_and_sigterm_close_it",
    ],
    "D6: a resource could not have any name": [
        "tools/test_messages.py::test_a_resource_and_a_prompt_may_have_any_name",
        "tools/test_messages.py::"
        "test_a_message_about_a_resource_or_a_prompt_does_not_call_it_a_tool",
    ],
    "D7: lists had pages of 100 entries": [
        "protocol/test_long_lists.py::test_the_official_client_sees_every_tool",
    ],
    "D8: the help of a console script did not show the script's name": [
        "cli/test_help.py::test_the_help_of_a_console_script_has_the_name_of_the_script",
    ],
    "D9: messages left out what was wrong": [
        "tools/test_messages.py::test_a_message_about_an_argument_says_what_is_wrong_with_it",
        "tools/test_messages.py::"
        "test_a_parameter_without_a_type_is_refused_with_what_its_name_suggests",
        "tools/test_messages.py::"
        "test_run_with_the_arguments_of_another_framework_names_the_new_way",
        "server/test_server_start.py::test_the_banner_counts_one_tool_in_the_singular",
    ],
    "D10: POST /mcp/ was not found": [
        "server/test_rest.py::test_a_slash_at_the_end_of_a_path_is_ignored",
    ],
    "D11: an App took no icons and no website": [
        "protocol/test_server_info.py::"
        "test_the_server_sends_its_icons_and_website_in_versions_that_have_them",
    ],
    "D12: the docs said that `call` always shows progress": [
        "cli/test_call.py::test_log_messages_go_to_stderr_and_progress_to_terminals_only",
    ],
}


def test_the_table_has_every_reported_defect() -> None:
    numbers = [defect.partition(":")[0] for defect in MENDED_BY]

    assert numbers == [f"D{number}" for number in range(1, 13)]


@pytest.mark.parametrize("defect", MENDED_BY)
def test_each_reported_defect_has_its_tests(defect: str) -> None:
    missing = [each for each in MENDED_BY[defect] if not exists(each)]

    assert MENDED_BY[defect] != []
    assert missing == []


def exists(test: str) -> bool:
    """Whether the file has a function of that name."""
    file, _, name = test.partition("::")
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    tree = ast.parse((TESTS / file).read_text())
    return any(isinstance(each, functions) and each.name == name for each in tree.body)
