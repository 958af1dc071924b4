"""The rules themselves, one module for each family of rule ids."""
