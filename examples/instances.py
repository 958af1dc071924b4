"""The `envelope` contract: editor instances, with an image and a resource."""

from typing import Any, Literal, TypedDict

from answerback import App, Conflict, Image, Link, NotFound, Reply, success

app = App("instances", version="1.0.0", contract="envelope")


class Instance(TypedDict):
    id: str
    name: str
    status: Literal["running", "stopped"]
    provider: str


_INSTANCES: dict[str, Instance] = {
    "instance-1": {
        "id": "instance-1",
        "name": "vscode-instance-1",
        "status": "running",
        "provider": "docker",
    },
    "instance-2": {
        "id": "instance-2",
        "name": "vscode-instance-2",
        "status": "stopped",
        "provider": "docker",
    },
    "instance-3": {
        "id": "instance-3",
        "name": "notebook",
        "status": "running",
        "provider": "kubernetes",
    },
}


class Found(TypedDict):
    instance: Instance


class Listed(TypedDict):
    instances: list[Instance]


class Changed(TypedDict):
    instanceId: str
    status: Literal["running", "stopped"]


class Opened(TypedDict):
    instanceId: str
    name: str
    status: Literal["running", "stopped"]


def _look_up(instance_id: str) -> Instance:
    if instance_id not in _INSTANCES:
        raise NotFound(
            f"Instance '{instance_id}' not found",
            code="INSTANCE_NOT_FOUND",
            details={"instanceId": instance_id, "availableInstances": sorted(_INSTANCES)},
        )
    return _INSTANCES[instance_id]


@app.tool
def list_instances() -> Listed:
    """List the instances."""
    return {"instances": list(_INSTANCES.values())}


@app.tool(raises=[NotFound], examples=[{"instanceId": "instance-1"}])
def get_instance(instanceId: str) -> Found:  # noqa: N803 -- the convention's name
    """Show one instance.

    Args:
        instanceId: The id, such as instance-1.
    """
    return {"instance": _look_up(instanceId)}


@app.tool(raises=[NotFound, Conflict], examples=[{"instanceId": "instance-2"}])
def start_instance(instanceId: str) -> Reply[Changed]:  # noqa: N803 -- the convention's name
    """Start a stopped instance.

    Args:
        instanceId: The id, such as instance-2.
    """
    instance = _look_up(instanceId)
    if instance["status"] == "running":
        raise Conflict(f"Instance '{instanceId}' is already running", code="ALREADY_RUNNING")
    instance["status"] = "running"
    changed: Changed = {"instanceId": instanceId, "status": "running"}
    return success(f"Instance '{instance['name']}' started successfully", changed)


@app.tool(raises=[NotFound, Conflict], examples=[{"instanceId": "instance-1"}])
def stop_instance(instanceId: str) -> Reply[Changed]:  # noqa: N803 -- the convention's name
    """Stop a running instance.

    Args:
        instanceId: The id, such as instance-1.
    """
    instance = _look_up(instanceId)
    if instance["status"] == "stopped":
        raise Conflict(f"Instance '{instanceId}' is already stopped", code="ALREADY_STOPPED")
    instance["status"] = "stopped"
    changed: Changed = {"instanceId": instanceId, "status": "stopped"}
    return success(f"Instance '{instance['name']}' stopped successfully", changed)


@app.tool(raises=[NotFound], examples=[{"instanceId": "instance-1"}])
def cpu_chart(instanceId: str) -> Reply[dict[str, Any]]:  # noqa: N803 -- the convention's name
    """Show an instance's CPU usage as a chart.

    Args:
        instanceId: The id, such as instance-1.
    """
    _look_up(instanceId)
    chart = Image(
        url="https://example.com/charts/cpu-usage.png",
        alt="CPU usage chart showing spikes during peak hours",
        width=800,
        height=400,
        caption=f"CPU usage for {instanceId} over the last 24 hours",
    )
    metrics = {"instanceId": instanceId, "metrics": {"cpu": {"average": 45, "peak": 87}}}
    return success("Instance CPU usage over time:", metrics, content=[chart])


@app.tool(raises=[NotFound], examples=[{"instanceId": "instance-1"}])
def open_instance(instanceId: str) -> Reply[Opened]:  # noqa: N803 -- the convention's name
    """Show the URL of an instance.

    Args:
        instanceId: The id, such as instance-1.
    """
    instance = _look_up(instanceId)
    page = Link(
        "http://localhost:8080",
        "VSCode Web UI",
        description="Web-based VSCode interface for your instance",
        metadata={"requiresAuth": True, "authType": "password"},
    )
    opened: Opened = {
        "instanceId": instanceId,
        "name": instance["name"],
        "status": instance["status"],
    }
    text = "VSCode instance deployed successfully. You can access it using the following URL:"
    return success(text, opened, content=[page])


if __name__ == "__main__":
    app.run()
