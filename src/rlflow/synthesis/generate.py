"""Generation of substitution rules from nothing but the meaning of operators (TASO, SOSP 2019, section 2).

    report = generate(GeneratorConfig(FAMILIES["algebra"], max_operators=3))

goes, for one family of operators over variables, through

1. `enumerate_pairs`: all expressions, and the pairs with equal values at random points;
2. `distinct`: one pair of all that differ in names alone, general ones first;
3. `KnownRules.explain`: pairs that follow from the rules so far are dropped;
4. `generalised`: a pair is widened and verified, in each direction that is worth a rule;
5. `of_both_parts`, `in_two_outputs`: rules of two outputs are derived.

`build_library` adds the declared rules and drops rules that follow from those of earlier families. Finished families
are kept in files.

Invariant: the same configuration gives the same rules in the same order, to the byte; every rule has a certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from shutil import rmtree
from time import process_time
from typing import Any

import numpy as np

from rlflow.errors import InputError
from rlflow.ir.tensor_type import TensorType
from rlflow.kept import Kept
from rlflow.ops.registry import having
from rlflow.rules import pattern
from rlflow.rules.declared import catalogue
from rlflow.rules.library import Library, read_rule
from rlflow.rules.pattern import Apply, Term
from rlflow.rules.rule import Rule, VariableSpec
from rlflow.rules.verification import sampler
from rlflow.rules.verification.verify import VerificationConfig, certified, check_false_controls
from rlflow.synthesis import prune
from rlflow.synthesis.attributes import is_tied
from rlflow.synthesis.code import made_by
from rlflow.synthesis.enumeration import Pair, enumerate_pairs
from rlflow.synthesis.families import FAMILIES, JOIN, Family
from rlflow.synthesis.generalise import generalised
from rlflow.synthesis.two_outputs import in_two_outputs, of_both_parts

TRIALS = 8
"""Points of the finite field that tell expressions apart; two unequal ones agree with probability below 1e-40."""


@dataclass(frozen=True)
class GeneratorConfig:
    """The configuration of one family of rules, whose sides have at most `max_operators`; `trials` points are tried."""

    family: Family
    max_operators: int
    trials: int = TRIALS
    seed: int = 0
    verification: VerificationConfig = field(default_factory=VerificationConfig)


@dataclass(frozen=True)
class GenerationReport:
    """The rules found in a family, and the counts that led to them.

    `enumerated` expressions had values of `classes` classes and gave `duplicate_pairs`. Of these, `after_renaming`
    differ in more than names, and `after_instance` do not follow from other rules. `verified` of these gave `kept`
    rules, `refuted` fail at some shape, and the others are worth no rule. `cpu_s` is in seconds.
    """

    rules: tuple[Rule, ...]
    enumerated: int
    classes: int
    duplicate_pairs: int
    after_renaming: int
    after_instance: int
    verified: int
    refuted: int
    kept: int
    cpu_s: float

    def to_json(self) -> dict[str, Any]:
        """Return all counts, without the rules."""
        return {k: getattr(self, k) for k in self.__dataclass_fields__ if k != "rules"}


Progress = Callable[[int, int], None]
"""Called with (done, total) counts: of the equalities of a family, or of the rules and families of a library."""


def generate(config: GeneratorConfig, *, on_progress: Progress | None = None) -> GenerationReport:
    """Generate all rules of a family; the same configuration gives the same rules in the same order."""
    start = process_time()
    found = enumerate_pairs(
        config.family.leaves,
        config.family.operators,
        config.family.dimensions,
        config.max_operators,
        config.trials,
        np.random.default_rng(config.seed),
    )
    pairs = distinct(found.pairs, found.types)

    known = prune.KnownRules()
    rules: dict[str, Rule] = {}
    new = verified = refuted = 0
    for done, pair in enumerate(pairs, start=1):
        if not known.explain(*pair, found.types):
            new += 1
            tried = list(_rules(pair, config, known, found.types))
            accepted = [rule for rule in tried if rule is not None]
            verified += bool(accepted)
            refuted += bool(tried) and not accepted

            whole = [of_both_parts(rule, config.verification) or rule for rule in accepted]
            kept = [rule for rule in whole if not _is_detour(rule.source, rule.target)]
            parted = [in_two_outputs(rule, config.verification) for rule in kept]
            rules.update({rule.id: rule for rule in (*kept, *parted) if rule is not None})
        if on_progress is not None:
            on_progress(done, len(pairs))

    return GenerationReport(
        rules=tuple(rules.values()),
        enumerated=found.enumerated,
        classes=found.classes,
        duplicate_pairs=len(found.pairs),
        after_renaming=len(pairs),
        after_instance=new,
        verified=verified,
        refuted=refuted,
        kept=len(rules),
        cpu_s=process_time() - start,
    )


def distinct(pairs: tuple[Pair, ...], types: Mapping[str, TensorType]) -> list[Pair]:
    """Return the first of all pairs that differ in names alone, general ones before others.

    Small trees come first, and among these many variables, so that an instance like T(a + a) never precedes its rule.
    """
    firsts = {prune.up_to_names(*pair, types): pair for pair in reversed(pairs)}
    return sorted(reversed(firsts.values()), key=lambda pair: (prune.tree_size(*pair), -len(pattern.variables(*pair))))


_MOST_GROWTH = 1


def _is_detour(source: Sequence[Term], target: Sequence[Term]) -> bool:
    """Return True if the target only does more work, so that the rule is worth nothing.

    It does if it adds operators that the source does not have, as in a - (-b) for a + b, or several operators. One more
    of the same may distribute a sum, but not if all of the target's operators are unary. A rule that only changes the
    attributes of a single operator is worth nothing, either.
    """
    before, after = pattern.operators(*source), pattern.operators(*target)
    growth = len(after) - len(before)
    if growth > 0 and all(len(node.arguments) == 1 for node in after):
        return True
    if len(before) == 1 and {replace(n, attributes=()) for n in before} == {replace(n, attributes=()) for n in after}:
        return True
    return growth > _MOST_GROWTH or (growth > 0 and not {n.op for n in after} <= {n.op for n in before})


_MOST_TAUGHT = 2
"""The most operators of a detour that is worth knowing, though no rule: much follows from a - b = -(b - a)."""


_WINDOWED = having(lambda traits: traits.windowed)


def _convolves_itself(term: Term) -> bool:
    """Return True if an image is its own filter somewhere, as in 14 of TASO's rules; no network has that."""
    filtered = (node.arguments for node in pattern.operators(term) if node.op in _WINDOWED and node.arguments[1:])
    return any(set(pattern.variables(image)) & set(pattern.variables(filters)) for image, filters, *_ in filtered)


def _rules(
    pair: Pair, config: GeneratorConfig, known: prune.KnownRules, types: Mapping[str, TensorType]
) -> Iterator[Rule | None]:
    """Yield the certified rule of each direction that is worth a rule or teaches one, None if that is refuted.

    Each rule becomes known at once.
    """
    templates = {leaf.name: VariableSpec(shape=leaf.shape) for leaf in config.family.leaves}
    for source, target in (pair, reversed(pair)):
        if not isinstance(source, Apply) or prune.contains(target, source):
            continue  # a rule that would match everything, or grow for ever
        if _is_detour((source,), (target,)) and prune.tree_size(target) > _MOST_TAUGHT:
            continue
        if set(pattern.variables(target)) - set(pattern.variables(source)) or known.lead(source, target, types):
            continue

        rule = Rule(
            name=f"{pattern.show(source)} => {pattern.show(target)}",
            family=config.family.name,
            source=(source,),
            target=(target,),
            variables={name: templates[name] for name in pattern.variables(source)},
            origin=f"enumerated n={config.max_operators} seed={config.seed}",
        )
        wide = generalised(rule, config.verification, config.family.dimensions)
        if wide is None:
            yield None
        elif not _convolves_itself(wide.source[0]) and not is_tied(wide):
            known.add(wide)
            yield wide


@dataclass(frozen=True)
class LibraryConfig:
    """The configuration of a library: families of declared rules, None for all of them, and of enumerated ones."""

    families: tuple[GeneratorConfig, ...]
    declared: Sequence[str] | None = None
    verification: VerificationConfig = field(default_factory=VerificationConfig)

    @classmethod
    def of(
        cls,
        families: Mapping[str, int],
        trials: int,
        seed: int,
        verification: VerificationConfig,
        declared: Sequence[str] | None = None,
    ) -> LibraryConfig:
        """Combine declared rules with families, given by name with the most operators of a side of their rules.

        Raises `InputError` for a family that does not exist.
        """
        unknown = sorted(families.keys() - FAMILIES.keys())
        if unknown:
            raise InputError(f"unknown family of rules {', '.join(unknown)}; choose from {', '.join(FAMILIES)}")
        chosen = (GeneratorConfig(FAMILIES[name], most, trials, seed, verification) for name, most in families.items())
        return cls(tuple(chosen), declared, verification)


@dataclass(frozen=True)
class LibraryReport:
    """The counts of a library's generation; `cpu_s` is in seconds, over all processes."""

    declared: int
    families: Mapping[str, GenerationReport]
    false_controls_refused: int
    cpu_s: float

    def to_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        families = {name: report.to_json() for name, report in self.families.items()}
        return {"declared": self.declared, "families": families} | {
            "false_controls_refused": self.false_controls_refused,
            "cpu_s": self.cpu_s,
        }


def declared_rules(config: LibraryConfig) -> list[Rule]:
    """Return the declared rules of the families of a library; joins are declared where they are enumerated.

    Raises `InputError` for a family that does not exist.
    """
    rules = catalogue.declared_rules()
    known = {rule.family for rule in rules}
    chosen = known if config.declared is None else set(config.declared)
    if unknown := sorted(chosen - known):
        raise InputError(
            f"unknown family of declared rules {', '.join(unknown)}; choose from {', '.join(sorted(known))}"
        )
    joins = JOIN.name in [enumerated.family.name for enumerated in config.families]
    return [rule for rule in rules if rule.family in chosen and (joins or rule.family != JOIN.name)]


def build_library(
    config: LibraryConfig, folder: Path, *, on_progress: Progress | None = None
) -> tuple[Library, LibraryReport]:
    """Build a library of declared and enumerated rules, each certified and none twice.

    An equality that was declared keeps its declared name. Families and declared rules share processes. Finished parts
    are kept in the folder and taken from there if the same library is built again. Raises `RuleError` if a declared
    rule is refuted or a false control accepted.
    """
    start = process_time()
    refused = check_false_controls(catalogue.false_controls(), config.verification)
    declared = declared_rules(config)
    to_do = len(declared) + len(config.families)
    progress = on_progress or (lambda done, total: None)

    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        enumerated = [pool.submit(resumed, family, folder) for family in config.families]
        certified_rules, certified_s = _certified(
            declared, config.verification, folder, pool, lambda done: progress(done, to_do)
        )
        for done, _ in enumerate(as_completed(enumerated), start=len(declared) + 1):
            progress(done, to_do)

    reports = {c.family.name: found.result() for c, found in zip(config.families, enumerated, strict=True)}
    new_rules = _new_rules([report.rules for report in reports.values()], config.verification.seed)
    library = Library(tuple(certified_rules)).extended(Library(tuple(new_rules)))

    cpu_s = process_time() - start + certified_s + sum(report.cpu_s for report in reports.values())
    return library, LibraryReport(len(declared), reports, refused, cpu_s)


def resumed(config: GeneratorConfig, folder: Path) -> GenerationReport:
    """Return the report of a family that is kept in the folder, or else generate it and keep it there."""
    reports = Kept.as_json(
        folder,
        lambda report: report.to_json() | {"rules": [rule.to_json() for rule in report.rules]},
        lambda content: GenerationReport(**content | {"rules": tuple(map(read_rule, content["rules"]))}),
    )
    return reports.get_or(f"{config.family.name}-{made_by(config)}", partial(generate, config))


def _certified(
    rules: Sequence[Rule],
    verification: VerificationConfig,
    folder: Path,
    pool: ProcessPoolExecutor,
    on_rule: Callable[[int], None],
) -> tuple[list[Rule], float]:
    """Return the rules with certificates that are kept in the folder, or else certify them and keep them there.

    Beside them are the processor seconds that this has taken.
    """
    cpu_s = 0.0

    def certify() -> list[Rule]:
        nonlocal cpu_s
        done: list[Rule] = []
        for rule, seconds in pool.map(partial(_certified_in, verification=verification), rules, chunksize=_AT_ONCE):
            done.append(rule)
            cpu_s += seconds
            on_rule(len(done))
        return done

    certified_rules = Kept.as_json(
        folder, lambda found: [rule.record() for rule in found], lambda content: list(map(read_rule, content))
    )
    key = f"declared-{made_by((verification, [rule.id for rule in rules]))}"
    found = certified_rules.get_or(key, certify)
    return found, cpu_s


_AT_ONCE = 8


def _certified_in(rule: Rule, verification: VerificationConfig) -> tuple[Rule, float]:
    """Certify a rule, and tell the processor seconds that it took."""
    start = process_time()
    return certified(rule, verification), process_time() - start


_FOLLOWS_AT = 3  # drawn instances at which a rule must follow; at a single one, sizes may happen to be equal


def _new_rules(families: Sequence[Sequence[Rule]], seed: int) -> Iterator[Rule]:
    """Yield the rules that do not follow from those of the families before their own."""
    known, random = prune.KnownRules(), Random(seed)

    def follows(rule: Rule) -> bool:
        sides = list(zip(rule.source, rule.target, strict=True))
        drawn = (sampler.draw(rule, random) for _ in range(_FOLLOWS_AT))
        return all(known.explain_all(sides, instance.types) for instance in drawn)

    for rules in families:
        new = [rule for rule in rules if not follows(rule)]
        yield from new
        for rule in new:
            known.add(rule)


def write_library(path: Path, config: LibraryConfig, *, on_progress: Progress | None = None) -> LibraryReport:
    """Build a library and save it, whole or not at all; finished parts are kept beside it until it is written."""
    folder = path.with_suffix(".generating")
    folder.mkdir(parents=True, exist_ok=True)  # a place that cannot be used is told before the work
    library, report = build_library(config, folder, on_progress=on_progress)
    library.save(path)
    rmtree(folder)
    return report
