"""Each row on the page about conventions is true: it has one check, and the check passes."""

from __future__ import annotations

import re

import pytest
from tests.docs.conventions import (
    aligned_rows,
    apps_rows,
    direct_rows,
    envelope_rows,
    standard_rows,
)
from tests.docs.conventions.checks import CHECKS, ROOT

from answerback.contract import PRESETS

PAGE = (ROOT / "docs" / "reference" / "conventions.md").read_text()
MODULES = (aligned_rows, apps_rows, direct_rows, envelope_rows, standard_rows)


def rows_on_the_page() -> list[tuple[str, str]]:
    """The section and the first cell of every row in the tables below the first heading."""
    found = []
    section, before = "", ""
    for line in PAGE.splitlines():
        if heading := re.match(r"## `(\w+)`", line):
            section = heading[1]
        # A table begins with its header and a line of dashes.
        if section and line.startswith("| ") and before.startswith("|"):
            found.append((section, line.split(" | ")[0].removeprefix("| ").replace("`", "")))
        before = line
    return found


ROWS = rows_on_the_page()


def checks_of(section: str, cell: str) -> list[str]:
    """The beginnings under which the row's checks are registered."""
    return [start for where, start in CHECKS if where == section and cell.startswith(start)]


@pytest.mark.parametrize(("section", "cell"), ROWS, ids=lambda part: part[:60])
def test_a_row_on_the_page_has_a_check_that_passes(section: str, cell: str) -> None:
    checks = checks_of(section, cell)

    assert len(checks) == 1, f"{section}: write one check for the row {cell!r}, not {len(checks)}"
    CHECKS[section, checks[0]]()


def test_every_check_is_of_one_row() -> None:
    used = [(section, start) for section, cell in ROWS for start in checks_of(section, cell)]

    assert len(MODULES) == len(PRESETS)
    assert sorted(used) == sorted(CHECKS)


def test_the_page_has_a_section_for_every_preset() -> None:
    assert {section for section, _ in ROWS} == set(PRESETS)


NAMES = {
    "envelope": """
        createSuccessResponse createErrorResponse wrapToolResponse toolFn textContent
        formatComplexDataAsText validateMcpResponse mcpResponseValidationMiddleware
        auditMcpResponse wrapWithAudit toolName monitoringClient.logEvent
        mcp_response_format_issue MockMcpClient mcpResponseSchema Ajv myTool
        myToolImplementation getAllInstanceIds originalError resourceType identifier altText
        INSTANCE_NOT_FOUND UNKNOWN_ERROR TOOL_EXECUTION_ERROR INVALID_RESPONSE_FORMAT
        RESPONSE_VALIDATION_ERROR success timestamp content data details caption
    """,
    "aligned": """
        response.go adapter_mcp.go adapter_http.go adapter_cgi.go openapi.go
        tests/kuniumi/kuniumi_test.go scripts/process/build.sh
        scripts/process/integration_test.sh buildSuccessResponse buildErrorResponse
        generateOpenAPISpec GenerateOutputJSONSchema fmt.Sprintf http.Error functions.Add
        /functions/Add /NonExistent /openapi.json TestKuniumiIntegration assertValidOpenAPISpec
        serve cgi mcp
    """,
    "apps": """
        lib/types/mcp-responses.ts lib/types/tool-responses.ts
        lib/utils/mcp-response-helpers.ts lib/utils/auth-responses.ts app/mcp/route.ts
        MCPContent OpenAIResponseMetadata MCPToolResponse TStructuredContent TMetadata
        createSuccessResponse createErrorResponse createTextContent createImageContent
        createResourceContent createLoginPromptResponse createSubscriptionRequiredResponse
        createPlaidRequiredResponse AccountBalancesContent AccountBase AccountBalancesResponse
        YourFeatureContent YourFeatureResponse registerTool inputSchema _meta securitySchemes
        session.userId req.headers hasActiveSubscription UserService.getUserAccessTokens
        z.string().describe widgetDescription widgetPrefersBorder widgetCSP mcp/www_authenticate
    """,
    "direct": """
        services/mcp-server/app.py services/agent/app.py 001-dynamic-tool-discovery.md
        cdocs/KOMMENTARER_NORSK.md doc/WORKSHOP.md cdocs/MCP_SPEC_UPDATE_ANALYSIS.md
        /weather content structuredContent isError json.dumps ensure_ascii=False
        "role" "function" JSON-RPC
    """,
    "standard": """
        src/types/responses.ts src/utils/response-builders.ts src/types/validation.ts
        src/errors/index.ts src/utils/error-handler.ts MCPToolResponseSchema
        buildSuccessResponse buildErrorResponse handleError DFMError toMCPMessage ErrorCode
        CreateEntitiesInputSchema CreateEntitiesOutputSchema DeleteEntitiesOutputSchema
        EntitySchema EntityNameSchema safeParse fromZodError handleCreateEntities manager
        registerTool setRequestHandler CallToolRequestSchema executeTool inputSchema
        outputSchema retryWithBackoff CircuitBreaker resource_link annotations audience
        priority lastModified structuredContent isError
    """,
}
"""The files and names in the code of each document."""


@pytest.mark.parametrize("preset", PRESETS)
def test_every_file_and_name_of_a_document_is_in_its_section(preset: str) -> None:
    section = PAGE.partition(f"\n## `{preset}`")[2].partition("\n## ")[0]

    assert [name for name in NAMES[preset].split() if name not in section] == []
