"""`rlflow rules list | show | verify | generate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from rlflow import schemas
from rlflow.cli.progress import progress_bar
from rlflow.errors import RuleError
from rlflow.rules import library as rule_library
from rlflow.rules import pattern
from rlflow.rules.curated import false_controls
from rlflow.rules.expression import describe
from rlflow.rules.generate import GeneratorConfig, LibraryConfig, write_library
from rlflow.rules.rule import Rule
from rlflow.rules.verify import Refutation, VerificationConfig, check_false_controls, verify

app = typer.Typer(no_args_is_help=True)

LibraryFile = Annotated[Path | None, typer.Option("--library", help="A library file; the shipped one by default.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_rules(library: LibraryFile = None, as_json: AsJson = False) -> None:
    """All rules with a valid certificate, one a line."""
    loaded = rule_library.load(library)
    if not as_json:
        for rule in loaded.rules:
            typer.echo(f"{rule.id:28s} {rule.name:32s} {rule.equation()}")
        return
    document = {"library_hash": loaded.hash, "rules": [_described(rule) for rule in loaded.rules]}
    schemas.validate("rules_list", document)
    typer.echo(json.dumps(document, indent=1))


@app.command()
def show(
    rule: Annotated[str, typer.Argument(help="Id or name.")], library: LibraryFile = None, as_json: AsJson = False
) -> None:
    """One rule: its two sides, its condition in words, and what its certificate says."""
    found = rule_library.load(library).get(rule)
    typer.echo(json.dumps(found.to_json(), indent=1) if as_json else _in_words(found))


@app.command("verify")
def verify_rules(
    library: LibraryFile = None,
    seed: Annotated[int, typer.Option(help="Draws other instances than the certificates' own.")] = 1,
) -> None:
    """Verify every rule again with fresh instances, and that rules known to be false are refused."""
    loaded = rule_library.load(library)
    config = VerificationConfig(seed=seed)
    refused = check_false_controls(false_controls(), config)
    with progress_bar("verifying") as on_progress:
        for number, rule in enumerate(loaded.rules):
            on_progress(number / len(loaded.rules), rule.name)
            outcome = verify(rule, config)
            if isinstance(outcome, Refutation):
                raise RuleError(f"rule {rule.id} ({rule.name}) is refuted: {outcome}")
    typer.echo(f"{len(loaded.rules)} rules verified again; {refused} false controls refused.")


@app.command()
def generate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the library.")],
    max_operators: Annotated[int, typer.Option(help="Largest side of an enumerated rule.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed gives the same library.")] = 0,
) -> None:
    """Enumerate rules, verify them and the declared ones, and write all with their certificates."""
    verification = VerificationConfig(seed=seed)
    family = GeneratorConfig(max_operators=max_operators, seed=seed, verification=verification)
    with progress_bar("generating") as on_progress:
        report = write_library(
            output,
            LibraryConfig((family,), verification=verification),
            on_progress=lambda done, total: on_progress(done / max(total, 1), f"{done} of {total} equalities"),
        )
    kept = sum(found.kept for found in report.families.values())
    typer.echo(
        f"Wrote {output}: {report.declared} declared and {kept} enumerated rules in {report.cpu_s:.1f} CPU seconds; "
        f"{report.false_controls_refused} false controls refused."
    )


def _described(rule: Rule) -> dict[str, object]:
    assert rule.certificate is not None
    return {
        "id": rule.id,
        "name": rule.name,
        "family": rule.family,
        "origin": rule.origin,
        "equation": rule.equation(),
        "shapes": rule.certificate.shapes,
        "digest": rule.certificate.digest,
    }


def _in_words(rule: Rule) -> str:
    lines = [f"{rule.id}  {rule.name}  ({rule.family}, {rule.origin})", "replace"]
    lines += [f"    {pattern.show(term)}" for term in rule.source]
    lines += ["by", *(f"    {pattern.show(term)}" for term in rule.target)]
    for name, spec in rule.variables.items():
        shape = "any shape" if spec.shape is None else f"shape [{', '.join(map(str, spec.shape))}]"
        lines.append(f"where {name} has {shape}{', constant' if spec.constant else ''}")
    lines += [f"if {describe(condition)}" for condition in rule.where]
    if rule.opset:
        lines.append(f"from opset {rule.opset} on")
    if rule.certificate:
        c = rule.certificate
        lines.append(
            f"verified at {c.shapes} shapes, {c.trials} exact trials or more each; "
            f"{c.float_cases} float runs, largest relative difference {c.max_relative_error:.1e}"
        )
    return "\n".join(lines)
