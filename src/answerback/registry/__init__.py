"""The author's declarations: tools, resources, prompts, included apps, lifespan and routes."""
