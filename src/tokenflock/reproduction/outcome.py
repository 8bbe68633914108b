"""What came of an item of a paper, and of many."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenflock.reproduction.claim import FAILS, HOLDS, NOT_RUN, Claim
from tokenflock.reproduction.item import Item
from tokenflock.reproduction.mathematics import unicode


@dataclass(frozen=True)
class Outcome:
    """What came of one item."""

    item: Item
    scale: str
    claims: tuple[Claim, ...]
    seconds: float
    device: str
    setting: str = ""
    figures: tuple[str, ...] = ()  # paths within the report, without suffix
    films: tuple[str, ...] = ()
    live: str = ""  # a page of the lab with the law of the picture
    data: str = ""
    problem: str = ""  # why it did not run, or how it broke

    @property
    def verdict(self) -> str:
        """The worst of its claims."""
        verdicts = {claim.verdict for claim in self.claims}
        return next((verdict for verdict in (FAILS, NOT_RUN, HOLDS) if verdict in verdicts), HOLDS)


@dataclass(frozen=True)
class Report:
    """The outcomes of a reproduction, in the order of the papers.

    `report["perspective/fig3"].claims` are the claims of one item; `report.claims` are all of them.
    """

    outcomes: tuple[Outcome, ...]
    out: Path | None = None

    @property
    def claims(self) -> list[Claim]:
        """The claims of all items, in their order."""
        return [claim for outcome in self.outcomes for claim in outcome.claims]

    @property
    def holds(self) -> bool:
        """Whether no claim fails."""
        return all(claim.verdict != FAILS for claim in self.claims)

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.item.name == name)

    def __str__(self) -> str:
        rows = [
            f"{claim.verdict:8} {claim.id}: {unicode(claim.statement)}" for claim in self.claims
        ]
        return "\n".join(rows)
