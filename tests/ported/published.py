"""The published servers that patches turn into Apps, with the calls of each.

`PLACE` in an argument is the server's own folder, which has a small project.
"""

from __future__ import annotations

from typing import Any

from tests.ported.patched import Published

SDK = "mcp==1.30.0"
OURS = "msgspec>=0.20,<0.23"
WORD = {"filename": "PLACE/report.docx"}
ONE = {"presentation_id": "one"}
BARS = {"title": "Bars", "y_label": "ms", "categories": ["a", "b"]}
PROJECT = {"project": "sample"}

REDIS = """
from fakeredis import TcpFakeServer
server = TcpFakeServer(("127.0.0.1", 0), server_type="redis")
print(server.server_address[1], flush=True)
server.serve_forever()
"""
BLENDER = """
import json, socket
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    while data := connection.recv(1 << 20):
        kind = json.loads(data)["type"]
        result = {"name": "Scene", "object_count": 1, "objects": [], "result": "done\\n"}
        reply = {"status": "success", "result": result}
        if kind == "execute_code" and "fail" in data.decode():
            reply = {"status": "error", "message": "NameError: name 'fail' is not defined"}
        connection.sendall(json.dumps(reply).encode())
"""


def _word(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return tool, WORD | arguments


def _code(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return tool, PROJECT | arguments


PUBLISHED = (
    Published(
        "tree-sitter",
        "mcp-server-tree-sitter 0.7.0",
        ("mcp-server-tree-sitter==0.7.0", SDK, OURS),
        ("mcp_server_tree_sitter",),
        "from mcp_server_tree_sitter.server import main; main()",
        [
            ("list_projects_tool", {}),
            ("register_project_tool", {"path": "PLACE/project", "name": "sample"}),
            ("register_project_tool", {"path": "PLACE/nowhere", "name": "other"}),
            ("register_project_tool", {}),
            ("list_projects_tool", {}),
            ("list_languages", {}),
            _code("list_files"),
            _code("list_files", pattern="**/*.py", max_depth=2),
            _code("get_file", path="app.py"),
            _code("get_file", path="app.py", max_lines=1),
            _code("get_file", path="nowhere.py"),
            _code("get_file", path="../../etc/passwd"),
            _code("get_file"),
            _code("get_file", path="app.py", max_lines="many"),
            _code("find_text", pattern="def ", file_pattern="**/*.py"),
            ("get_file", {"project": "unknown", "path": "app.py"}),
            ("list_query_templates_tool", {"language": "python"}),
            ("get_query_template_tool", {"language": "python", "template_name": "functions"}),
            ("get_query_template_tool", {"language": "python", "template_name": "none"}),
            ("build_query", {"language": "python", "patterns": ["functions"]}),
            ("adapt_query", {"query": "(a)", "from_language": "python", "to_language": "go"}),
            ("get_node_types", {"language": "python"}),
            ("prompt:code_review", {**PROJECT, "file_path": "app.py"}),
            ("prompt:explain_tree_sitter_query", {}),
            ("prompt:explain_code", {**PROJECT, "file_path": "nowhere.py"}),
            ("prompt:project_overview", {}),
            ("clear_cache", {}),
            ("diagnose_config", {"config_path": "PLACE/nowhere.yaml"}),
            ("remove_project_tool", {"name": "sample"}),
            ("remove_project_tool", {"name": "sample"}),
        ],
    ),
    Published(
        "powerpoint",
        "office-powerpoint-mcp-server 2.0.7",
        ("office-powerpoint-mcp-server==2.0.7", SDK, OURS),
        ("ppt_mcp_server.py", "tools", "utils", "slide_layout_templates.json"),
        "from ppt_mcp_server import main; main()",
        [
            ("get_presentation_info", {}),
            ("create_presentation", {"id": "one"}),
            ("get_presentation_info", ONE),
            ("add_slide", {"title": "Hello", **ONE}),
            ("add_slide", {"layout_index": 99, **ONE}),
            ("add_slide", {"layout_index": "first", **ONE}),
            ("get_slide_info", {"slide_index": 0, **ONE}),
            ("get_slide_info", {"slide_index": 9, **ONE}),
            ("get_slide_info", ONE),
            ("extract_slide_text", {"slide_index": 0, **ONE}),
            ("extract_presentation_text", ONE),
            (
                "add_bullet_points",
                {"slide_index": 0, "placeholder_idx": 1, "bullet_points": ["a"], **ONE},
            ),
            ("set_core_properties", {"title": "A report", "author": "Ada", **ONE}),
            ("save_presentation", {"file_path": "PLACE/one.pptx", **ONE}),
            ("open_presentation", {"file_path": "PLACE/one.pptx", "id": "two"}),
            ("open_presentation", {"file_path": "PLACE/nowhere.pptx"}),
            ("list_presentations", {}),
            ("switch_presentation", {"presentation_id": "one"}),
            ("switch_presentation", {"presentation_id": "none"}),
            ("get_server_info", {}),
            ("get_template_file_info", {"template_path": "nowhere.pptx"}),
            ("no_such_tool", {}),
        ],
    ),
    Published(
        "redis",
        "redis-mcp-server 0.5.1",
        ("redis-mcp-server==0.5.1", SDK, OURS, "fakeredis==2.40.0"),
        ("src",),
        "from src.main import cli; cli(['--port', 'PORT'])",
        [
            ("dbsize", {}),
            ("set", {"key": "PLACE:a", "value": "1"}),
            ("get", {"key": "PLACE:a"}),
            ("get", {"key": "PLACE:none"}),
            ("set", {"key": "PLACE:b", "value": {"x": 1}}),
            ("get", {"key": "PLACE:b"}),
            ("set", {"key": "PLACE:c"}),
            ("get", {"kye": "PLACE:a"}),
            ("hset", {"name": "PLACE:h", "key": "x", "value": "1"}),
            ("hget", {"name": "PLACE:h", "key": "x"}),
            ("hget", {"name": "PLACE:h", "key": "none"}),
            ("hgetall", {"name": "PLACE:h"}),
            ("hexists", {"name": "PLACE:h", "key": "x"}),
            ("hexists", {"name": "PLACE:h", "key": "y"}),
            ("hdel", {"name": "PLACE:h", "key": "x"}),
            ("lpush", {"name": "PLACE:l", "value": "a"}),
            ("rpush", {"name": "PLACE:l", "value": "b"}),
            ("lrange", {"name": "PLACE:l", "start": 0, "stop": -1}),
            ("lrange", {"name": "PLACE:l", "start": "first", "stop": -1}),
            ("llen", {"name": "PLACE:l"}),
            ("lpop", {"name": "PLACE:l"}),
            ("lpop", {"name": "PLACE:none"}),
            ("sadd", {"name": "PLACE:s", "value": "a"}),
            ("smembers", {"name": "PLACE:s"}),
            ("srem", {"name": "PLACE:s", "value": "a"}),
            ("zadd", {"key": "PLACE:z", "score": 1.5, "member": "a"}),
            ("zrange", {"key": "PLACE:z", "start": 0, "end": -1, "with_scores": True}),
            ("type", {"key": "PLACE:a"}),
            ("rename", {"old_key": "PLACE:a", "new_key": "PLACE:d"}),
            ("rename", {"old_key": "PLACE:none", "new_key": "PLACE:d"}),
            ("expire", {"name": "PLACE:d", "expire_seconds": 100}),
            ("delete", {"key": "PLACE:d"}),
            ("llen", {"name": "PLACE:b"}),
        ],
        service=REDIS,
    ),
    Published(
        "code-index",
        "code-index-mcp 2.17.1",
        ("code-index-mcp==2.17.1", SDK, OURS),
        ("code_index_mcp",),
        "from code_index_mcp.server import main; main([])",
        [
            ("get_settings_info", {}),
            ("find_files", {"pattern": "*.py"}),
            ("set_project_path", {"path": "PLACE/nowhere"}),
            ("set_project_path", {"path": "PLACE/project"}),
            ("set_project_path", {}),
            ("find_files", {"pattern": "*.py"}),
            ("find_files", {"pattern": "*.go"}),
            ("search_code_advanced", {"pattern": "def twice"}),
            ("search_code_advanced", {"pattern": "def twice", "context_lines": "two"}),
            ("refresh_index", {}),
            ("build_deep_index", {}),
            ("get_file_summary", {"file_path": "app.py"}),
            ("get_file_summary", {"file_path": "nowhere.py"}),
            ("get_symbol_body", {"file_path": "app.py", "symbol_name": "twice"}),
            ("get_symbol_body", {"file_path": "app.py", "symbol_name": "none"}),
            ("files://app.py", {}),
            ("files://nowhere.py", {}),
            ("check_temp_directory", {}),
            ("configure_file_watcher", {"enabled": False}),
        ],
    ),
    Published(
        "blender",
        "mcp-for-blender 2.2.4",
        ("mcp-for-blender==2.2.4", SDK, OURS),
        ("blender_mcp",),
        "from blender_mcp.server import main; main()",
        [
            ("get_scene_info", {}),
            ("execute_blender_code", {"code": "print(1)"}),
            ("execute_blender_code", {"code": "fail"}),
            ("execute_blender_code", {}),
            ("search_assets", {"source": "polyhaven", "query": "chair"}),
            ("search_assets", {"source": 7}),
            ("import_asset", {"source": "polyhaven", "id": "chair"}),
            ("look", {"max_size": "large"}),
            ("blender://object/Cube", {}),
            ("blender://nothing", {}),
            ("disable_telemetry", {}),
        ],
        env={"BLENDER_PORT": "PORT", "BLENDER_MCP_DISABLE_TELEMETRY": "1"},
        service=BLENDER,
    ),
    Published(
        "chart",
        "chart-mcp 0.1.1",
        ("chart-mcp==0.1.1", SDK, OURS),
        ("chart_mcp",),
        "from chart_mcp import main; main()",
        [
            ("generate_bar_chart", {**BARS, "values": [1, 2]}),
            ("generate_bar_chart", {**BARS, "values": [1, 2], "output_path": "PLACE/bar.png"}),
            ("generate_bar_chart", {**BARS, "values": [1]}),
            ("generate_bar_chart", {**BARS, "values": "many"}),
            ("generate_bar_chart", BARS),
            (
                "generate_grouped_bar_chart",
                {**BARS, "series_labels": ["x", "y"], "data": [[1, 2], [3, 4]]},
            ),
            (
                "generate_grouped_bar_chart",
                {**BARS, "series_labels": ["x", "y"], "data": [[1, 2]]},
            ),
            (
                "generate_chart_from_template",
                {"template": "ffmpeg", "data": {"categories": ["a"], "values": [1]}},
            ),
            ("generate_chart_from_template", {"template": "stream", "data": {}}),
            ("generate_chart_from_template", {"template": "ffmpeg"}),
        ],
    ),
    Published(
        "word",
        "office-word-mcp-server 1.1.11",
        ("office-word-mcp-server==1.1.11", "fastmcp==4.1.2", OURS),
        ("word_document_server",),
        "from word_document_server.main import main; main()",
        [
            _word("create_document", title="Report", author="Ada"),
            _word("get_document_info"),
            _word("add_heading", text="First", level=1),
            _word("add_heading", text="First", level="top"),
            _word("add_paragraph", text="Hello there"),
            _word("add_paragraph", text="Bold", bold=True, font_size=14),
            _word("add_paragraph"),
            _word("add_table", rows=2, cols=2, data=[["a", "b"], ["c", "d"]]),
            _word("get_document_text"),
            _word("get_document_outline"),
            _word("find_text_in_document", text_to_find="Hello"),
            _word("get_paragraph_text_from_document", paragraph_index=0),
            _word("get_paragraph_text_from_document", paragraph_index=99),
            _word("search_and_replace", find_text="Hello", replace_text="Bye"),
            _word("delete_paragraph", paragraph_index=99),
            _word("add_page_break"),
            _word("format_table", table_index=0, has_header_row=True),
            _word("get_all_comments"),
            ("get_document_text", {"filename": "PLACE/nowhere.docx"}),
            ("list_available_documents", {"directory": "PLACE"}),
        ],
    ),
    Published(
        "aws",
        "awslabs.aws-api-mcp-server 1.5.6",
        ("awslabs.aws-api-mcp-server==1.5.6", "fastmcp==3.4.10", OURS),
        ("awslabs",),
        # The real list of read-only operations is fetched from AWS.
        "import awslabs.aws_api_mcp_server.server as server\n"
        "class Index:\n    def has(self, service, operation): return 'list' in operation.lower()\n"
        "server.get_read_only_operations = Index\nserver.main()",
        [
            ("call_aws", {"cli_command": "aws s3 lss"}),
            ("call_aws", {"cli_command": "aws ec2 describe-instances --nothing"}),
            ("call_aws", {"cli_command": "ls"}),
            ("call_aws", {"cli_command": ["aws", "aws nothing"]}),
            ("call_aws", {"cli_command": ["aws s3 ls"] * 30}),
            ("call_aws", {"cli_command": "aws s3api list-buckets"}),
            # The server asks the user, who declines.
            ("call_aws", {"cli_command": "aws s3api create-bucket --bucket sample"}),
            ("call_aws", {"cli_command": 7}),
            ("call_aws", {}),
            ("suggest_aws_commands", {"query": " "}),
            ("suggest_aws_commands", {"query": "x" * 2001}),
        ],
        env={"AWS_REGION": "us-east-1", "REQUIRE_MUTATION_CONSENT": "true"},
    ),
)
