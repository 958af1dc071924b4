"""Tools, resources and prompts: functions with their options and signatures."""
