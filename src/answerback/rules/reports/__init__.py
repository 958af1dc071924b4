"""How findings are told: to people, and to programs."""
