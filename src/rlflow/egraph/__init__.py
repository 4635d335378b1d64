"""E-graphs of terms and of whole models: equality up to rules, exploration, and extraction of the best graph."""
