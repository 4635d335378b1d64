"""`rlflow rules list | show | why | verify | certify | generate | diff | recall`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import typer

from rlflow.cli.json_output import print_json
from rlflow.cli.progress import progress_bar
from rlflow.cli.rules_why import chosen, why
from rlflow.errors import InputError, RuleError
from rlflow.rules import library as rule_library
from rlflow.rules import pattern, portability
from rlflow.rules.certificate import ASSUMPTIONS, FINITE, MODERATE
from rlflow.rules.declared.catalogue import declared_rules, false_controls
from rlflow.rules.declared.refresh import refreshed
from rlflow.rules.dsl.files import declaration_text
from rlflow.rules.expression import describe
from rlflow.rules.rule import Rule
from rlflow.rules.user_rules import verified
from rlflow.rules.verification.certify import recertified
from rlflow.rules.verification.refutation import Refutation
from rlflow.rules.verification.stress import stress
from rlflow.rules.verification.verify import VerificationConfig, check_false_controls, verify
from rlflow.schemas.rules import ListedRule, NamedRule, RulesDiff, RulesList, RulesVerify
from rlflow.synthesis.families import SHIPPED
from rlflow.synthesis.generate import TRIALS, LibraryConfig, write_library
from rlflow.synthesis.taso import recall
from rlflow.synthesis.taso.equations import read_equations

app = typer.Typer(no_args_is_help=True)
app.command()(why)

LibraryFile = Annotated[Path | None, typer.Option("--library", help="A library file; the shipped one by default.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_rules(
    library: LibraryFile = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page of all rules with their pictures: a .html.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """All rules with a valid certificate, one a line; or a page to search in, which opens without a network."""
    if output is not None:
        _write_page(library, output, as_json)
        return
    loaded = rule_library.load(library)
    if not as_json:
        for rule in loaded.rules:
            typer.echo(_line(rule))
        return
    print_json("rules list", RulesList(loaded.hash, [_listed(rule) for rule in loaded.rules]))


def _write_page(library: Path | None, output: Path, as_json: bool) -> None:
    from rlflow.show import page
    from rlflow.show.rules_page import rules_content

    if as_json:
        raise InputError("--json prints a list, and --output writes a page: leave out one of them")
    if output.suffix != ".html":
        raise InputError(f"{output} does not name a page: let it end in .html")
    page.write(output, "Substitution rules", rules_content(rule_library.load(library)), page.RULES)
    typer.echo(f"Wrote {output}.")


@app.command()
def show(
    rule: Annotated[str, typer.Argument(help="Id or name.")],
    library: LibraryFile = None,
    picture: Annotated[Path | None, typer.Option(help="Draw both sides into this file: .svg, .png or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """One rule: its two sides, its condition in words, what its certificate says, and the text of its declaration."""
    found = chosen(rule_library.load(library), rule)
    if picture is not None:
        from rlflow.show import rule_picture
        from rlflow.show.picture_file import save

        save(rule_picture.draw(found), picture)
    if not as_json:
        typer.echo(_in_words(found))
        return
    besides = {"declaration": declaration_text(found.declared_at), "measured": portability.gains_of(found)}
    print_json("rules show", found.record() | {key: value for key, value in besides.items() if value})


@app.command("verify")
def verify_rules(
    file: Annotated[Path | None, typer.Argument(help="A Python file that declares rules of your own.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the rules of FILE with their certificates: a .jsonl.")
    ] = None,
    library: LibraryFile = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws other instances than the certificates' own.")] = 1,
    instances: Annotated[
        int | None,
        typer.Option(
            min=1, help="Besides, draw so many of each rule (shapes, attributes, values), and run all in ONNX Runtime."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Verify every rule again with fresh instances, and that rules known to be false are refused.

    Of a file of your own, its rules and its false controls. A refuted rule comes with its line and a counter-example.
    """
    if file is not None:
        _verify_file(file, output, VerificationConfig(seed=seed), as_json)
        return
    if output is not None:
        raise InputError("--output is for rules of your own: `rlflow rules verify my_rules.py -o my_rules.jsonl`")
    loaded = rule_library.load(library)
    config = VerificationConfig(seed=seed)
    refused = check_false_controls(false_controls(), config)
    errors: list[float] = []
    started = process_time()
    with progress_bar("verifying") as on_progress:
        for number, rule in enumerate(loaded.rules):
            on_progress(number / len(loaded.rules), rule.name)
            outcomes = [verify(rule, config), *([stress(rule, instances, seed)] if instances else [])]
            for outcome in outcomes:
                if isinstance(outcome, Refutation):
                    raise RuleError(f"rule {rule.id} ({rule.name}) is refuted: {outcome}")
            errors.append(max(outcome.max_relative_error or 0.0 for outcome in outcomes))  # type: ignore[union-attr]
    mean_ms = 1e3 * (process_time() - started) / max(1, len(errors))
    if not as_json:
        typer.echo(
            f"{len(errors)} rules verified again in {mean_ms:.1f} ms each; {refused} false controls refused; "
            f"largest relative difference {max(errors, default=0.0):.1e}. {_assuming_words(loaded.rules)}"
        )
        return
    print_json("rules verify", _verification(loaded, seed, errors, refused, mean_ms))


def _verify_file(file: Path, output: Path | None, config: VerificationConfig, as_json: bool) -> None:
    started = process_time()
    with progress_bar("verifying") as on_progress:
        certified, refused = verified(file, config, lambda done, total, rule: on_progress(done / total, rule.name))
    mean_ms = 1e3 * (process_time() - started) / max(1, len(certified.rules) + refused)
    if output is not None:
        certified.save(output)
    if not as_json:
        for rule in certified.rules:
            typer.echo(f"{rule.id:28s} {rule.name:32s} {rule.equation()}")
        written = f" Wrote {output}." if output else ""
        assuming = _assuming_words(certified.rules)
        typer.echo(f"{len(certified.rules)} rules verified; {refused} false controls refused. {assuming}{written}")
        return
    errors = [r.certificate.max_relative_error or 0.0 for r in certified.rules if r.certificate]
    print_json("rules verify", _verification(certified, config.seed, errors, refused, mean_ms))


def _verification(
    library: rule_library.Library, seed: int, errors: Sequence[float], refused: int, mean_ms: float
) -> RulesVerify:
    return RulesVerify(
        library_hash=library.hash,
        seed=seed,
        rules_verified=len(errors),
        false_controls_refused=refused,
        assuming=_assuming(library.rules),
        mean_ms=mean_ms,
        max_relative_error=max(errors, default=0.0),
    )


@app.command()
def certify(library: LibraryFile = None) -> None:
    """Verify the rules whose certificate does not hold, and write the library with their new certificates.

    The shipped library is brought up to date with the declarations as well: new rules are verified and take their
    place, removed ones go, and each names its file and line. Nothing is enumerated again.
    """
    path = library or rule_library.SHIPPED
    before = rule_library.read(path)
    today = before if library else refreshed(before, declared_rules())
    after = recertified(today, VerificationConfig())
    after.save(path)
    changed = rule_library.difference(before, after)
    for sign, rules in (("+", changed.added), ("-", changed.removed), ("~", changed.recertified)):
        for rule in rules:
            typer.echo(f"{sign} {rule.id:28s} {rule.name}")
    typer.echo(
        f"{path}: {len(changed.added)} rules added, {len(changed.removed)} removed, "
        f"{len(changed.recertified)} certified again, {changed.unchanged} unchanged."
    )


@app.command()
def generate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the library.")],
    family: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=N: a family of rules, with sides of up to N operators; may be repeated. By default as shipped."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same library.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Enumerate rules, verify them and the declared ones, and write all with their certificates."""
    verification = VerificationConfig(seed=seed)
    sizes = _sizes(family) if family else SHIPPED
    with progress_bar("generating") as on_progress:
        report = write_library(
            output,
            LibraryConfig.of(sizes, TRIALS, seed, verification),
            on_progress=lambda done, total: on_progress(done / max(total, 1), f"{done} of {total}"),
        )
    if as_json:
        document = {"output": str(output), "library_hash": rule_library.load(output).hash, **report.to_json()}
        print_json("rules generate", document)
        return
    kept = sum(found.kept for found in report.families.values())
    typer.echo(
        f"Wrote {output}: {report.declared} declared and {kept} enumerated rules in {report.cpu_s:.1f} CPU seconds; "
        f"{report.false_controls_refused} false controls refused."
    )


def _sizes(families: list[str]) -> dict[str, int]:
    """`NAME=N` as a mapping; `InputError` for anything else."""
    sizes = {}
    for text in families:
        name, _, most = text.partition("=")
        if not most.isdigit() or int(most) < 1:
            raise InputError(f"--family {text}: give a family and the largest side of its rules, as in algebra=2")
        sizes[name] = int(most)
    return sizes


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(help="A library file.")],
    after: Annotated[Path | None, typer.Argument(help="Another one; the shipped one by default.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two libraries: the rules that only one of them has, and those with another certificate."""
    old, new = rule_library.load(before), rule_library.load(after)
    found = rule_library.difference(old, new)
    groups = {"added": found.added, "removed": found.removed, "recertified": found.recertified}
    if not as_json:
        for sign, rules in zip("+-~", groups.values(), strict=True):
            for rule in rules:
                typer.echo(f"{sign} {rule.id:28s} {rule.name:32s} {rule.equation()}")
        typer.echo(
            ", ".join(f"{len(rules)} {name}" for name, rules in groups.items()) + f", {found.unchanged} unchanged"
        )
        return
    listed = {name: [_named(rule) for rule in rules] for name, rules in groups.items()}
    print_json("rules diff", RulesDiff(old.hash, new.hash, found.unchanged, **listed))


@app.command("recall")
def recall_rules(
    equations: Annotated[
        Path, typer.Argument(help="Another rule set's equations, in TASO's notation, one rule a line.")
    ],
    library: LibraryFile = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws other shapes and values at which equations are tried.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare this library with another rule set: equations that it has, derives, refutes, or lacks."""
    foreign, own, config = read_equations(equations), rule_library.load(library), recall.RecallConfig(seed=seed)
    accepted = recall.false_controls_accepted(own, config)
    with progress_bar("recall") as on_progress:
        found = recall.recall(foreign, own, config, lambda done, text: on_progress(done / len(foreign), text[:60]))
    counted = recall.totals(found)
    if as_json:
        document = {"library_hash": own.hash, "totals": counted, "false_controls_accepted": accepted}
        print_json("rules recall", document | {"equations": [f.to_json() for f in found]})
        return
    for one in found:
        remark = "; ".join(filter(None, [one.condition and f"if {one.condition}", one.counter_example]))
        typer.echo(
            f"{one.equations.number:4d} {one.outcome:12s} {one.equations.text}" + (f"  ({remark})" if remark else "")
        )
    typer.echo(
        ", ".join(f"{count} {outcome.replace('_', ' ')}" for outcome, count in counted.items())
        + f"; {accepted} false controls accepted."
    )


def _assuming(rules: Sequence[Rule]) -> dict[Any, int]:
    """The number of rules that make each assumption."""
    return dict(Counter(name for rule in rules for name in rule.assumes))


def _assuming_words(rules: Sequence[Rule]) -> str:
    counts = _assuming(rules)
    return f"{counts.get(FINITE, 0)} assume that values are finite, {counts.get(MODERATE, 0)} that sizes are ordinary."


def _line(rule: Rule) -> str:
    assumes = f"  assuming {' and '.join(rule.assumes)} values" if rule.assumes else ""
    return f"{rule.id:28s} {rule.name:32s} {rule.equation()}{assumes}"


def _named(rule: Rule) -> NamedRule:
    return NamedRule(rule.id, rule.name, rule.equation())


def _listed(rule: Rule) -> ListedRule:
    assert rule.certificate is not None
    return ListedRule(
        id=rule.id,
        name=rule.name,
        equation=rule.equation(),
        family=rule.family,
        origin=rule.origin,
        shapes=rule.certificate.shapes,
        assumes=list[Any](rule.assumes),
        element_types=sorted(rule.element_types),
        digest=rule.certificate.digest,
    )


def _in_words(rule: Rule) -> str:
    lines = [f"{rule.id}  {rule.name}  ({rule.family}, {rule.origin})", "replace"]
    lines += [f"    {pattern.show(term)}" for term in rule.source]
    lines += ["by", *(f"    {pattern.show(term)}" for term in rule.target)]
    for name, spec in rule.variables.items():
        shape = "any shape" if spec.shape is None else f"shape [{', '.join(map(str, spec.shape))}]"
        lines.append(f"where {name} has {shape}{', constant' if spec.constant else ''}")
    lines += [f"if {describe(condition)}" for condition in rule.where]
    lines += [f"tried if {describe(condition)}" for condition in rule.profitable_if]
    lines.append(f"for elements of {', '.join(sorted(rule.element_types))}")
    for domain, version in rule.versions.items():
        if domain or version > 1:
            lines.append(f"from opset {version}{f' of {domain}' if domain else ''} on")
    lines += [f"assumes that {ASSUMPTIONS[name]}" for name in rule.assumes]
    if rule.certificate:
        c = rule.certificate
        lines.append(
            f"verified at {c.shapes} shapes, {c.trials} exact trials or more each; "
            f"{c.float_cases} float runs; under the meaning of "
            + ", ".join(f"{name} {digest}" for name, digest in c.semantics.items())
        )
    if measured := portability.in_words(rule):
        lines.append(f"measured {measured}")
    if rule.declared_at:
        lines.append(f"declared at {rule.declared_at}")
        lines += ["", *filter(None, [declaration_text(rule.declared_at)])]
    else:
        lines.append(f"found by enumeration, in the family {rule.family}: {rule.origin}")
    return "\n".join(lines)
