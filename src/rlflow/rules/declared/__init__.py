"""Declared rules in the language of `rlflow.rules.dsl`, a file for each family; `catalogue` lists them all."""
