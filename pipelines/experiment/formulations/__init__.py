"""Formulations of rewriting as a problem for a world model: a package for each, with a module for each of its parts.

A part is what a stage uses of a formulation: its rollouts, its world model, or its controller. For each part there is a
module here, with the part's protocol and the formulations by the name that stands in `formulation` of the settings. A
stage imports that module alone, so that it does not run again because of another part. The formulation itself is
imported when it is chosen: it takes seconds, in which a wrong setting should have been refused.

A stage gives what it knows of one graph; a part finds inputs and outputs of that graph in the folders of its round.
"""
