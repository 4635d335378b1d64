"""How much does each method save on each graph, and for what effort?"""
