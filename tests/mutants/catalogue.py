"""All wrong rules, by area."""

from __future__ import annotations

from tests.mutants import (
    auditing,
    dynamic,
    failover,
    groups,
    hierarchy,
    imported,
    journals,
    live,
    object_returns,
    objects,
    rebuilding,
    replicas,
    replicated,
    sequencing,
    traces,
    transactions,
    view_changes,
    view_clusters,
    view_members,
    view_processes,
    watching,
)
from tests.mutants.mutation import Mutation

MUTATIONS: list[Mutation] = [
    *groups.MUTATIONS,
    *view_changes.MUTATIONS,
    *view_clusters.MUTATIONS,
    *view_members.MUTATIONS,
    *view_processes.MUTATIONS,
    *hierarchy.MUTATIONS,
    *sequencing.MUTATIONS,
    *failover.MUTATIONS,
    *rebuilding.MUTATIONS,
    *objects.MUTATIONS,
    *object_returns.MUTATIONS,
    *transactions.MUTATIONS,
    *replicas.MUTATIONS,
    *live.MUTATIONS,
    *dynamic.MUTATIONS,
    *replicated.MUTATIONS,
    *traces.MUTATIONS,
    *journals.MUTATIONS,
    *auditing.MUTATIONS,
    *imported.MUTATIONS,
    *watching.MUTATIONS,
]
