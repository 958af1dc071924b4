"""An author's declarations: tools, resources, prompts, included apps, the lifespan, routes."""
