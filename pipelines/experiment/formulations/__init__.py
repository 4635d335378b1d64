"""Formulations of rewriting as a problem for a world model: a package for each, with a module for each of its parts.

A part is what some stages use of a formulation: rollouts, a world model, or a controller. Of each there is a module
here, with its protocol and the formulations by the name that stands in `formulation` of the settings. A stage imports
that module alone, so that it runs again only if its own part has changed.
"""
