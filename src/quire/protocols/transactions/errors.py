"""The errors of transactions; `retryable`: the same program may succeed under a new timestamp."""

from __future__ import annotations

from quire.model.errors import NoQuorum, OutcomeUnknown, QuireError
from quire.protocols.transactions.timestamps import Timestamp, Version


class TransactionError(QuireError):
    """Base class of the errors of stores. `retryable`: running the same program again may succeed."""

    retryable = False


class Obsolete(TransactionError):
    """A younger transaction read or wrote first. The transaction is aborted; one with a timestamp above `hint` may succeed."""

    retryable = True

    def __init__(self, key: str, hint: Timestamp) -> None:
        super().__init__(f"a younger transaction, {hint}, came first at {key!r}; try again with a new timestamp")
        self.key = key
        self.hint = hint


class StaleVersion(TransactionError):
    """A replica answered with an older version than one that the transaction has already seen. The transaction is aborted."""

    retryable = True

    def __init__(self, key: str, version: Version, seen: Version) -> None:
        super().__init__(
            f"a replica has only version {version} of {key!r}, older than {seen}, which was already seen; try again"
        )
        self.key = key


class ReadChanged(TransactionError):
    """What the program read has changed, so only the program itself can continue. The transaction is aborted; run the
    program again, as `store.run` does."""

    retryable = True

    def __init__(self, key: str) -> None:
        super().__init__(f"{key!r} has changed since the transaction read it; run the transaction again")
        self.key = key


class TxAborted(TransactionError):
    """Replicas aborted the transaction because its client was silent for longer than the lease."""

    retryable = True

    def __init__(self, t: Timestamp) -> None:
        super().__init__(f"transaction {t} was ended by the replicas before it could commit; try again")


class NoReplicaQuorum(TransactionError, NoQuorum):
    """Too few of a key's replicas answered in time; those in `silent` did not. The transaction is aborted without effect. It
    is not retried automatically: run it again when the replicas can be reached."""

    def __init__(self, key: str, silent: tuple[int, ...], needed: str = "no majority") -> None:
        missing = ", ".join(map(str, silent))
        super().__init__(
            f"{needed} of the replicas of {key!r} answered in time; no answer from {missing}, unreachable or waiting for "
            "another transaction; nothing was changed: run the transaction again later"
        )
        self.key = key
        self.silent = silent


class ReadOnlyReplicaMissing(TransactionError, NoQuorum):
    """The one replica that was asked for a read did not answer in time. The transaction is aborted; a retry asks another."""

    retryable = True

    def __init__(self, key: str, replica: int) -> None:
        super().__init__(f"replica {replica} did not answer a read of {key!r} in time; try again at another replica")
        self.key = key
        self.replica = replica
        self.silent = (replica,)


class CoordinatorLost(TransactionError):
    """A read waits for a write whose client has been silent for too long. With replication `all`, only that client can end
    the transaction; with `majority`, the replicas end it themselves."""

    retryable = True

    def __init__(self, key: str, holder: Timestamp) -> None:
        super().__init__(f"{key!r} waits for transaction {holder}, whose client is silent")
        self.key = key
        self.holder = holder


class CommitUnknown(TransactionError, OutcomeUnknown):
    """The client gave up waiting for the decision: the transaction is, or will be, committed or aborted. Read what it wrote
    before you run it again."""

    def __init__(self, t: Timestamp) -> None:
        super().__init__(
            f"no answer came in time, so transaction {t} may have committed; read what it wrote before you run it again"
        )
        self.t = t


class RetryLimit(TransactionError):
    """The program was retried as often, or for as long, as allowed. The cause of this error is the last reason."""

    def __init__(self, tries: int, why: TransactionError) -> None:
        super().__init__(f"the transaction did not commit in {tries} {'try' if tries == 1 else 'tries'}: {why}")
        self.tries = tries


class UnknownKey(TransactionError):
    """No replica is responsible for the key."""

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no replica for {key!r}")
        self.key = key


class TxEnded(TransactionError):
    """The transaction has already been committed or aborted; begin another."""

    def __init__(self, t: Timestamp) -> None:
        super().__init__(f"transaction {t} has ended; begin another")


class ReplicaOutdated(TransactionError):
    """This replica was away for so long that the others have dropped what it missed."""

    def __init__(self) -> None:
        super().__init__(
            "this replica was away for so long that the others no longer keep what it missed; start it without its journal, "
            "and it gets everything from them"
        )
