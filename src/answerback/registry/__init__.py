"""The declarations of an author: tools, resources, prompts, included apps, the lifespan, routes."""
