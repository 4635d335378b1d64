"""Is the experiment the same twice, and what does each stage take?"""
