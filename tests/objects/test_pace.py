"""The pace of calls, by hand: one member, and three objects that could all run at once."""

from __future__ import annotations

from quire.protocols.node import Effects
from quire.protocols.objects.declarations import Catalogue, Placed, declare
from quire.protocols.objects.node import ObjectNode
from quire.protocols.objects.notices import Answered, Ended, Started
from quire.protocols.objects.packets import Instance, Pace

OBJECTS = ("a", "b", "c")


class Tree:
    """A root that has called all three objects at this pace."""

    def __init__(self, pace: Pace) -> None:
        kind = declare(["op"], compatible=[("op", "op")], undoable=["op"])
        self.node = ObjectNode(0, Catalogue(1, {name: Placed(kind, (0,)) for name in OBJECTS}))
        self.running: dict[str, Instance] = {}
        self.answers: list[str] = []
        self.ended: list[Ended] = []
        self.root = self.node.begin(0, pace=pace)
        self._note(self.node.invoke(0, self.root, 1, OBJECTS, "op", b""))

    def _note(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Started(instance=instance):
                    self.running[instance.object] = instance
                case Answered(status=status):
                    self.answers.append(status)
                case Ended():
                    self.ended.append(effect)

    def finish(self, name: str, *, fails: bool = False) -> None:
        self._note(self.node.finish(0, self.running.pop(name), "aborted" if fails else "ok"))

    def finish_root(self) -> Ended:
        self._note(self.node.finish(0, self.root, "ok"))
        [ended] = self.ended
        return ended


def test_the_targets_of_a_parallel_call_all_run_at_once() -> None:
    assert [*Tree("parallel").running] == ["a", "b", "c"]


def test_the_targets_of_a_serial_call_run_one_after_the_other() -> None:
    tree = Tree("serial")
    for name in OBJECTS:
        assert [*tree.running] == [name]
        tree.finish(name)
    assert tree.answers == ["ok", "ok", "ok"]


def test_after_a_failure_no_further_target_of_a_serial_call_runs() -> None:
    tree = Tree("serial")
    tree.finish("a")
    tree.finish("b", fails=True)
    assert not tree.running
    assert tree.answers == ["ok", "aborted", "aborted"]


def test_a_call_that_failed_at_one_target_is_taken_back_at_the_others_even_if_its_caller_goes_on() -> None:
    tree = Tree("parallel")
    tree.finish("a")
    tree.finish("b", fails=True)
    tree.finish("c")
    assert [undo.object for undo in tree.finish_root().undos] == ["c", "a"]
