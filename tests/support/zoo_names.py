"""The zoo's names as cases of a test, and small settings at which each model has all the nodes of a layer."""

from rlflow import zoo

ZOO = zoo.names()
SMALL = {name: dict(zoo.describe(name).small) for name in ZOO}
