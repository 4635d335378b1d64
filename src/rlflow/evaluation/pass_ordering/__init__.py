"""The evaluation of pass ordering: who finds which program on graphs of families that no agent was trained on."""
