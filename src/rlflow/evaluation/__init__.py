"""From measured numbers to tables, figures and words."""
