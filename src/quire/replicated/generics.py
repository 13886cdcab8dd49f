"""Generic replicated classes with checked types: `ReplicatedDict[str, int]` is its own class, with fields of these types."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

_made: dict[tuple[type, Any], type] = {}

if TYPE_CHECKING:

    class TypedByArguments:
        """Base of generic replicated classes."""

else:

    class TypedByArguments:
        """Base of generic replicated classes. It must come before Replicated and Generic: with Generic's alias, the types would
        not be known when an object is made."""

        def __class_getitem__(cls, arguments: Any) -> Any:
            alias = super().__class_getitem__(arguments)
            if alias.__parameters__:
                return alias
            if (cls, arguments) not in _made:
                # Its name may be sent to other members, so it must not contain the names of modules.
                listed = arguments if isinstance(arguments, tuple) else (arguments,)
                name = f"{cls.__name__}[{', '.join(getattr(each, '__name__', str(each)) for each in listed)}]"
                body = {"__module__": cls.__module__, "__doc__": cls.__doc__}
                _made[cls, arguments] = types.new_class(name, (alias,), exec_body=lambda space: space.update(body))
            return _made[cls, arguments]
