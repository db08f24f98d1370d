"""Recipes: short YAML files that become the same frozen options that Python users pass."""
