"""Generic classes whose types are checked: `ReplicatedDict[str, int]` is a class of its own, with fields of these types."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

_made: dict[tuple[type, Any], type] = {}

if TYPE_CHECKING:

    class TypedByArguments:
        """Base of generic replicated classes."""

else:

    class TypedByArguments:
        """Base of generic replicated classes. It stands before Replicated and Generic, whose alias would know no types when
        an object is made."""

        def __class_getitem__(cls, arguments: Any) -> Any:
            alias = super().__class_getitem__(arguments)
            if alias.__parameters__:
                return alias
            if (cls, arguments) not in _made:
                # Its name may go on the wire, so modules are left out of it.
                listed = arguments if isinstance(arguments, tuple) else (arguments,)
                name = f"{cls.__name__}[{', '.join(getattr(each, '__name__', str(each)) for each in listed)}]"
                body = {"__module__": cls.__module__, "__doc__": cls.__doc__}
                _made[cls, arguments] = types.new_class(name, (alias,), exec_body=lambda space: space.update(body))
            return _made[cls, arguments]
