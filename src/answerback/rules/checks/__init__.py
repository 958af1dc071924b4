"""The rules themselves, with one module for each family of rule ids."""
