"""Papers with verdicts: items, claims, outcomes, and the folder that a report is kept in."""
