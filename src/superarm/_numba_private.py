"""All uses of numba's private interfaces; each is switched on only where numba has it, and has a fallback.

================  ==========================================  ==================================================
what              what it is good for                         without it
================  ==========================================  ==================================================
kernel cache      loading machine code without importing      numba's own cache, in the same directories
                  numba's compiler: 0.3 s per process
``_nrt=False``    calls of small kernels without counting     ordinary calls
                  references
SLP vectoriser    sums in fixed lanes as vector instructions  scalar instructions
LLVM instructions sums that stay in vector registers          loops
================  ==========================================  ==================================================

None of them changes a decision; ``tests/test_numba_private.py`` compares. ``SUPERARM_PLAIN_NUMBA=1`` switches all of
them off: the first thing to try when a new version of numba misbehaves.
"""

# mypy: disable-error-code="no-untyped-call"
import contextlib
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numba

from superarm._cache import directory_of, make_room, note_features
from superarm._numba_shared import load_shared, store_shared

_config: Any = numba.config
_TESTED = ((0, 61), (0, 69))
"""The versions of numba that are tested: from the first, below the second; as in pyproject.toml."""

WANTED = os.environ.get("SUPERARM_PLAIN_NUMBA", "0") in ("", "0")
"""Whether private interfaces may be used at all."""


def is_tested() -> bool:
    """Whether the installed version of numba is one of those that are tested."""
    return _TESTED[0] <= tuple(int(part) for part in numba.__version__.split(".")[:2]) < _TESTED[1]


def has_interfaces(module: str, *names: str) -> bool:
    """Whether the module can be imported and has all ``names``, given as ``name`` or ``Class.name``."""
    try:
        home = import_module(module)
        for name in names:
            found: Any = home
            for part in name.split("."):
                found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True


# ---- calls without counting references

LEAN: Any = {"_nrt": False} if WANTED and has_interfaces("numba.core.cpu", "CPUTargetOptions._nrt") else {}
"""Options of a kernel that neither makes nor returns arrays, so that it need not count references to its arguments."""

COUNTED: Any = dict.fromkeys(LEAN, True)
"""Options of a kernel that counts references even if the kernel that calls it does not."""


# ---- the SLP vectoriser, for our own kernels only


def make_vectorising_compiler() -> Any:
    """numba's compiler with the SLP vectoriser switched on, as a class; None if it cannot be made."""
    if (
        not WANTED
        or not has_interfaces("numba.core.compiler", "Compiler.compile_extra")
        or not hasattr(_config, "SLP_VECTORIZE")
    ):
        return None
    compiler: Any = import_module("numba.core.compiler").Compiler

    class Vectorising(compiler):  # type: ignore[misc]
        """numba's compiler with the SLP vectoriser on while it runs.

        numba has this option for a whole process only, and off by default. It is read while numba holds its compiler
        lock, so that no other thread can compile in between.
        """

        def compile_extra(self, func: Any) -> Any:
            before, _config.SLP_VECTORIZE = _config.SLP_VECTORIZE, 1
            try:
                return super().compile_extra(func)
            finally:
                _config.SLP_VECTORIZE = before

    return Vectorising


_vectorising: Any = make_vectorising_compiler()
VECTORISED: dict[str, Any] = {"pipeline_class": _vectorising} if _vectorising else {}
"""Options of every kernel: sums in fixed lanes become vector instructions."""


# ---- machine code on disk


def _kernel_cache() -> Any:
    """A class for ``Dispatcher._cache``, or None if numba's cache is not as it was in the versions that are tested.

    Machine code that refers to a symbol which nobody has registered crashes the process. Attributes do not show that,
    so the class is made for tested versions only.
    """
    caching = (
        "CompileResultCacheImpl.rebuild",
        "CompileResultCacheImpl.reduce",
        "FunctionCache._impl_class",
        "FunctionCache._load_overload",
        "FunctionCache._index_key",
        "FunctionCache._guard_against_spurious_io_errors",
        "IndexDataCacheFile._load_index",
    )
    if not WANTED or not is_tested() or not has_interfaces("numba.core.caching", *caching):
        return None
    import_module("numba.cpython.hashing")  # registers the symbols that machine code for hashing strings refers to
    runtime: Any = import_module("numba.core.runtime").rtsys
    function_cache: Any = import_module("numba.core.caching").FunctionCache
    format: Any = import_module("numba.core.caching").CompileResultCacheImpl

    class _WithShared(format):  # type: ignore[misc]
        """numba's format of a stored kernel, after the shared kernels that it calls."""

        def reduce(self, result: Any) -> Any:
            return store_shared(getattr(result.library, "shared", ())), super().reduce(result)

        def rebuild(self, target_context: Any, payload: Any) -> Any:
            kernels, result = payload
            load_shared(target_context.codegen(), kernels)
            return super().rebuild(target_context, result)

    class _StoredKernel(function_cache):  # type: ignore[misc]
        """numba's cache of one function, in the directory of its fingerprint.

        The directory is determined when a signature is first asked for, since a process runs few of the library's
        kernels; and again when the user has defined another component meanwhile, which any composition may call.
        """

        _impl_class = _WithShared

        def __init__(self, fn: Callable[..., Any]) -> None:
            self._name, self._fn, self._cache_path = repr(fn), fn, None
            self._place: Path | None = None
            self._enabled = False

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """The machine code for ``sig``, or None.

            Running it takes numba's runtime only. numba's own method would import everything that compiling takes
            (SciPy's linear algebra among it), which takes longer than all else between the import and the first result.
            """
            self._settle()
            runtime.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)

        def holds(self, sig: Any, target_context: Any) -> bool:
            """Whether there is machine code for ``sig`` on disk."""
            self._settle()
            index: Any = {}
            with self._guard_against_spurious_io_errors():
                index = self._cache_file._load_index()
            return self._enabled and self._index_key(sig, target_context.codegen()) in index

        @property
        def place(self) -> Path | None:
            """The directory of the fingerprint; None if nothing can be kept there."""
            return self._place if self._enabled else None

        def flush(self) -> None:
            """Forget what is on disk."""
            self._settle()
            super().flush()

        def _settle(self) -> None:
            place = directory_of(self._fn)
            if place == self._place:
                return
            make_room(place)
            with _cache_in(place):
                super().__init__(self._fn)
            self._place = place
            if not str(self._cache_path).startswith(str(place)):
                self.disable()  # the directory is not writable, and numba chose another, which no fingerprint names

    return _StoredKernel


@contextlib.contextmanager
def _cache_in(place: Path) -> Iterator[None]:
    """Let numba choose ``place`` for the caches that are made meanwhile."""
    before, _config.CACHE_DIR = _config.CACHE_DIR, str(place)
    try:
        yield
    finally:
        _config.CACHE_DIR = before


KernelCache: Any = _kernel_cache()
"""The class of the caches of kernels; None where numba's own is used."""

_cached: list[tuple[Any, Callable[..., Any]]] = []


def keep_on_disk(dispatcher: Any, fn: Callable[..., Any]) -> None:
    """Store the machine code of ``fn`` in the directory of its fingerprint, and load it from there."""
    if KernelCache is not None:
        dispatcher._cache = KernelCache(fn)
    else:
        _cached.append((dispatcher, fn))
        _enable_caching(dispatcher, fn)


def note_changed_sources() -> None:
    """To be called when the fingerprint may have changed: numba's own cache has to be moved by hand."""
    for dispatcher, fn in _cached:
        _enable_caching(dispatcher, fn)


def _enable_caching(dispatcher: Any, fn: Callable[..., Any]) -> None:
    place = directory_of(fn)
    make_room(place)
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
    if os.access(place, os.W_OK):  # numba would choose another directory, which no fingerprint names
        with _cache_in(place):
            dispatcher.enable_caching()


# ---- LLVM instructions

# The instructions themselves are in ``_numba_lanes.py``.
_LLVM = ("Constant", "FloatType", "FunctionType", "VectorType.as_pointer")
_CGUTILS = ("alloca_once", "for_range")
HAS_LANES = WANTED and has_interfaces("llvmlite.ir", *_LLVM) and has_interfaces("numba.core.cgutils", *_CGUTILS)


note_features([name for name, on in (("lean", LEAN), ("slp", VECTORISED), ("lanes", HAS_LANES)) if on])
