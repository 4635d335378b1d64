"""One semantics: every operator's types, meaning and work, used for import, rules, prices and tests alike."""
