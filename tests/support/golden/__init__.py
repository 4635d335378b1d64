"""The golden set: digests of what the product computes, by which a refactoring shows that it changes no result.

    make golden                            compare with tests/golden.json
    make golden SECTIONS='library rollouts'    the same for some sections
    make golden SECTIONS=--write           write what is computed now, to be committed with the change that explains it

Each section is a module here that computes its entries from the product. An entry is named after its subject, such as
`bert/analytic/greedy`, never after a module or a class, and its digest covers values without the names of their fields,
so that moving and renaming code changes nothing in the file. The imports of the product are at the head of these
modules and of the few modules of `support` that they use.

Entries of the section `processor` may differ between processors and between versions of libraries: whatever torch
computes (fits, trainings, searches by learned policies) and pictures, which matplotlib draws. They are compared only on
the machine that the file names. Everything else must be equal on every machine.
"""
