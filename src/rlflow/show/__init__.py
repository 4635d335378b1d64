"""Pictures and summaries of models and of rules, and pages to search in."""
