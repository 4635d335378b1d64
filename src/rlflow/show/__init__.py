"""Pictures and summaries of models and of rules."""
