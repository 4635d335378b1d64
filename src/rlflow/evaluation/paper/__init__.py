"""The evaluations of the RLFlow paper and of X-RLflow's slides, cut into cells.

A cell is one agent on one graph by one seed: a process of some minutes, whose rows are kept in a file, so that a study
of many hours can be killed, and spread over machines. `rows` says what a cell returns, and how seeds are put together;
each other module is one kind of cell.
"""
