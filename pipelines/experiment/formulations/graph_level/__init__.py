"""The paper's formulation: a graph is one vector, an action is a rule and a location, among rules that were chosen."""
