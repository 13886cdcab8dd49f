"""The errors of transactions; `retryable`: the same program may succeed under a new timestamp."""

from __future__ import annotations

from quire.model.errors import NoQuorum, OutcomeUnknown, QuireError
from quire.protocols.transactions.timestamps import Timestamp, Version


class TransactionError(QuireError):
    """Base of the errors of stores. `retryable`: running the same program again may succeed."""

    retryable = False


class Obsolete(TransactionError):
    """A younger transaction read or wrote first. The transaction is aborted; a new timestamp above `hint` may pass."""

    retryable = True

    def __init__(self, key: str, hint: Timestamp) -> None:
        super().__init__(f"a younger transaction, {hint}, came first at {key!r}; try again with a new timestamp")
        self.key = key
        self.hint = hint


class StaleVersion(TransactionError):
    """A replica answered with an older version than the transaction has seen already. The transaction is aborted."""

    retryable = True

    def __init__(self, key: str, version: Version, seen: Version) -> None:
        super().__init__(
            f"a replica has only version {version} of {key!r}, older than {seen}, which was already seen; try again"
        )
        self.key = key


class ReadChanged(TransactionError):
    """What the program has read is not what it would read now, so that only the program can go on. The transaction is
    aborted; run it again, which `store.run` does by itself."""

    retryable = True

    def __init__(self, key: str) -> None:
        super().__init__(f"{key!r} has changed since the transaction read it; run the transaction again")
        self.key = key


class TxAborted(TransactionError):
    """Replicas ended the transaction, because its client was silent for longer than the lease."""

    retryable = True

    def __init__(self, t: Timestamp) -> None:
        super().__init__(f"transaction {t} was ended by the replicas before it could commit; try again")


class NoReplicaQuorum(TransactionError, NoQuorum):
    """Not as many of a key's replicas answered in time as are needed; `silent` did not. The transaction is aborted, and nothing
    of it was done. It is not retried by itself; run it again when the replicas can be reached."""

    def __init__(self, key: str, silent: tuple[int, ...], needed: str = "no majority") -> None:
        missing = ", ".join(map(str, silent))
        super().__init__(
            f"{needed} of the replicas of {key!r} answered in time; no answer from {missing}, unreachable or waiting for "
            "another transaction; nothing was changed: run the transaction again later"
        )
        self.key = key
        self.silent = silent


class ReadOnlyReplicaMissing(TransactionError, NoQuorum):
    """The one replica that was asked to read did not answer in time. The transaction is aborted; a retry asks another."""

    retryable = True

    def __init__(self, key: str, replica: int) -> None:
        super().__init__(f"replica {replica} did not answer a read of {key!r} in time; try again at another replica")
        self.key = key
        self.replica = replica
        self.silent = (replica,)


class CoordinatorLost(TransactionError):
    """A read waits for a write whose client has been silent for too long. Where all replicas must agree, only that client
    can end it; by majorities the replicas end it themselves."""

    retryable = True

    def __init__(self, key: str, holder: Timestamp) -> None:
        super().__init__(f"{key!r} waits for transaction {holder}, whose client is silent")
        self.key = key
        self.holder = holder


class CommitUnknown(TransactionError, OutcomeUnknown):
    """The client gave up waiting for the decision: the transaction is committed or aborted, or will be. Read what it wrote
    before you run it again."""

    def __init__(self, t: Timestamp) -> None:
        super().__init__(
            f"no answer came in time, so transaction {t} may have committed; read what it wrote before you run it again"
        )
        self.t = t


class RetryLimit(TransactionError):
    """The program was tried as often, or as long, as it may be; the last reason is the cause of this error."""

    def __init__(self, tries: int, why: TransactionError) -> None:
        super().__init__(f"the transaction did not commit in {tries} {'try' if tries == 1 else 'tries'}: {why}")
        self.tries = tries


class UnknownKey(TransactionError):
    """The key has no replicas."""

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no replica for {key!r}")
        self.key = key


class TxEnded(TransactionError):
    """The transaction has committed or aborted already; begin another."""

    def __init__(self, t: Timestamp) -> None:
        super().__init__(f"transaction {t} has ended; begin another")


class ReplicaOutdated(TransactionError):
    """This replica was away for so long that the others have forgotten what it missed."""

    def __init__(self) -> None:
        super().__init__(
            "this replica was away for so long that the others no longer keep what it missed; start it without its journal, "
            "and it gets everything from them"
        )
