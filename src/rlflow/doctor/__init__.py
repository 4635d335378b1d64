"""The doctor: it says why a model is slower or larger than it need be, apart from its graph, and what to do about it.

    examined = examine("model.onnx", budget_s=60.0)
    for finding in examined.findings:
        print(finding.found, finding.advice)

- `finding` is what a finder returns: what is there, its effect as measured here, advice, and the model without it;
- `subject` is what a finder is given: the model, what it computes, and the time that it has;
- `finders` lists them by name, and `findings` has a module for each: a new one is a file and a line;
- `examination` asks one after another, and applies what may be applied.

What a finder changes in a model computes the same, as `rlflow.optimise` has it; all else is advice.
"""
