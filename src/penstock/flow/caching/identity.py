"""What may be kept on disk under a name: values that are told apart by all that they depend on, as far as can be seen.

A plan's fingerprint may be coarse, since it only guards a state. What is remembered from run to run must not be: a
function is known by its code, its defaults, what it closes over and the globals of its module that it names; a source
by its own word, or by the files behind its samples. What cannot be known so is not remembered.
"""

from __future__ import annotations

import copyreg
import functools
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from penstock.flow.caching.cached_source import CachedSource
from penstock.flow.making.chains import Chain
from penstock.flow.making.clips import Clips
from penstock.flow.steps import Augment
from penstock.samples import Concat, Store, Subset

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType, types.WrapperDescriptorType)
_OF_EVERY_CLASS = (
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__firstlineno__"),
    *("__static_attributes__", "__abstractmethods__", "_abc_impl", "__parameters__", "__orig_bases__"),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__hash__"),
)


class UnknownIdentity(Exception):  # noqa: N818 - it is an answer, and never reaches a user
    """A value that cannot be told from another one like it; the message names it."""


# Sources


def identity_of_source(source: Store) -> Any:
    """What a source is, so that another one or a changed one differs."""
    own = source.fingerprint()
    if own is not None:
        return [source.kind.__qualname__, own]
    if isinstance(source, Subset):
        return ["subset", identity_of_source(source.source), identity_of_value(source.indices)]
    if isinstance(source, Concat):
        return ["concat", [identity_of_source(one) for one in source.sources]]
    if isinstance(source, Clips):
        return ["clips", identity_of_source(source.source), repr(source.step)]
    if isinstance(source, CachedSource):
        return ["cache", identity_of_source(source.source), identity_of_chain(source.leaf.chain)]
    if source.tells_origins and source.knows_annotations:
        return [source.kind.__qualname__, repr(source.schema), _identity_of_files(source)]
    raise UnknownIdentity(f"the source ({source.kind.__name__}), which has no method fingerprint()")


def _identity_of_files(source: Store) -> str:
    """All samples by the state of their files and by their annotations."""
    digest = xxhash.xxh3_128()
    for index in range(len(source)):
        try:
            digest.update(repr(source.origin(index)).encode("utf-8", "surrogatepass"))
        except OSError as error:
            raise UnknownIdentity(f"sample {index}, whose file cannot be looked at") from error
        for name, value in source.annotations(index).items():
            digest.update(f"{name}={value.tobytes() if isinstance(value, np.ndarray) else value!r}".encode())
    return digest.hexdigest()


def identity_of_chain(chain: Chain) -> Any:
    """The steps on a sample, none of them random."""
    return [_identity_of_step(link.step) for link in chain]


def _identity_of_step(step: Any) -> Any:
    if isinstance(step, Augment):
        return [type(step.step).__qualname__, repr(step.step)]
    return ["map", step.field, identity_of_value(step.function)]


# Values and functions


def identity_of_value(value: Any, seen: frozenset[int] = frozenset()) -> Any:
    """A value as plain words; UnknownIdentity where nobody can say what it holds."""
    if isinstance(value, (*_PLAIN, Path)):
        return repr(value)
    if id(value) in seen:
        return "itself"
    seen = seen | {id(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return ["array", value.dtype.str, value.shape, xxhash.xxh3_128_hexdigest(np.ascontiguousarray(value).data)]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [identity_of_value(one, seen) for one in value]]
    if isinstance(value, (set, frozenset)):
        return ["set", sorted(repr(identity_of_value(one, seen)) for one in value)]
    if isinstance(value, dict):
        return ["dict", [(identity_of_value(key, seen), identity_of_value(one, seen)) for key, one in value.items()]]
    if isinstance(value, types.ModuleType):
        return ["module", value.__name__, getattr(value, "__version__", None)]
    return _identity_of_object(value, seen)


def _identity_of_object(value: Any, seen: frozenset[int]) -> Any:
    if isinstance(value, type):
        return ["class", value.__module__, value.__qualname__, _identity_of_class(value, seen)]
    if isinstance(value, types.FunctionType):
        return _identity_of_function(value, seen)
    if isinstance(value, types.MethodType):
        return ["method", identity_of_value(value.__self__, seen), identity_of_value(value.__func__, seen)]
    own = getattr(value, "fingerprint", None)
    return [type(value).__qualname__, repr(own())] if own is not None else _identity_of_instance(value, seen)


def _identity_of_instance(value: Any, seen: frozenset[int]) -> Any:
    """An object by what pickle would keep of it: its class, and all that stands in it."""
    try:
        registered = copyreg.dispatch_table.get(type(value))
        reduced = value.__reduce_ex__(4) if registered is None else registered(value)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise UnknownIdentity(f"a value of type {type(value).__qualname__}") from error
    if isinstance(reduced, str):  # a global of this name, perhaps around a function
        inner = identity_of_value(getattr(value, "__wrapped__", None), seen)
        return ["global", getattr(value, "__module__", None), reduced, inner]
    parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
    return ["object", identity_of_value(type(value), seen), [identity_of_value(part, seen) for part in parts]]


def _identity_of_class(kind: type, seen: frozenset[int]) -> Any:
    """The code and the values of a class of the user; classes of installed libraries are known by their names."""
    if _is_installed(kind):
        return None
    bases = [identity_of_value(base, seen) for base in kind.__bases__ if base is not object]
    members = {name: _member(one) for name, one in sorted(vars(kind).items()) if name not in _OF_EVERY_CLASS}
    shown = {name: one for name, one in members.items() if not isinstance(one, _DESCRIPTORS)}
    return [bases, [(name, identity_of_value(one, seen)) for name, one in shown.items()]]


def _member(value: Any) -> Any:
    """What stands in a class: the functions behind methods and properties, and plain values."""
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    if isinstance(value, (property, functools.cached_property)):
        return value.fget if isinstance(value, property) else value.func
    return value


def _identity_of_function(function: types.FunctionType, seen: frozenset[int]) -> Any:
    kept = [function.__defaults__, function.__kwdefaults__, _closed_over(function)]
    name = [function.__module__, function.__qualname__]
    if _is_installed(function):
        return ["function", name, [identity_of_value(one, seen) for one in kept]]
    code = function.__code__
    named = {name: function.__globals__[name] for name in sorted(_names(code)) if name in function.__globals__}
    described = [identity_of_value(one, seen) for one in (*kept, named)]
    return ["function", name[1], _identity_of_code(code), described]


def _closed_over(function: types.FunctionType) -> list[Any]:
    try:
        return [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError as error:  # a cell that is filled later
        raise UnknownIdentity(f"what {function.__qualname__} closes over") from error


def _is_installed(thing: Callable[..., Any]) -> bool:
    """Whether it comes with Python or with a library, whose code changes only with its version."""
    module = sys.modules.get(thing.__module__ or "")
    file = getattr(module, "__file__", None)
    if module is None or file is None:
        return module is not None and thing.__module__ != "__main__"
    return "site-packages" in file or file.startswith((sys.base_prefix, str(Path(__file__).parents[1])))


def _names(code: types.CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*(_names(one) for one in inner))


def _identity_of_code(code: types.CodeType) -> Any:
    constants = [
        _identity_of_code(one) if isinstance(one, types.CodeType) else identity_of_value(one) for one in code.co_consts
    ]
    return [code.co_code.hex(), code.co_names, constants]
