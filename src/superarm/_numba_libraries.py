"""The code of kernels as LLVM has it: alone, shared by entries, or linked to an entry. Private interfaces of numba.

What ``_numba_linking.py`` compiles is held by these classes, in the place of numba's code library.
"""

# mypy: disable-error-code="misc,no-any-return,has-type"
import functools
from collections.abc import Iterable
from importlib import import_module
from typing import Any

from superarm._numba_private import WANTED, KernelCache, has_interfaces, is_tested
from superarm._numba_shared import is_loaded, name_shared, note_shared

_INTERFACES = {
    "numba.core.codegen": (
        "JITCodeLibrary._finalize_final_module",
        "JITCodeLibrary._get_module_for_linking",
        "JITCodeLibrary._optimize_final_module",
        "JITCodeLibrary._raise_if_finalized",
    ),
    "numba.core.compiler": ("Flags.no_compile", "CompileResult._find_referenced_environments"),
    "numba.core.compiler_lock": ("global_compiler_lock",),
    "numba.core.environment": ("lookup_environment",),
    "numba.core.event": ("trigger_event",),
    "numba.core.funcdesc": ("default_mangler",),
    "numba.core.registry": ("CPUDispatcher.get_call_template", "CPUDispatcher.get_overload"),
    "numba.core.sigutils": ("normalize_signature",),
    "numba.core.typing.templates": ("AbstractTemplate.get_impl_key", "infer_global"),
    "llvmlite.binding": ("Linkage.external", "ModuleRef.link_in"),
}
LINKED = WANTED and is_tested() and all(has_interfaces(module, *names) for module, names in _INTERFACES.items())
"""Whether the installed numba has the interfaces that this file and ``_numba_linking.py`` use."""

SHARED = LINKED and KernelCache is not None
"""Whether entries call shared kernels (``_numba_shared.py``): numba's own cache would keep entries without them."""

if LINKED:
    _Linkage: Any = import_module("llvmlite.binding").Linkage
    _Library: Any = import_module("numba.core.codegen").JITCodeLibrary

    @functools.cache
    def can_forbid_copies() -> bool:
        """Whether llvmlite can mark functions as not to be copied; before 0.48 it marks what they return, to no use."""
        module = import_module("llvmlite.binding").parse_assembly("define void @f() {\n ret void\n}")
        module.get_function("f").add_function_attribute("noinline")
        try:
            module.verify()
        except RuntimeError:
            return False
        return True

    class InnerLibrary(_Library):
        """The code of one kernel alone, for its callers to link."""

        separate = False

        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(codegen, name)
            self.symbols: list[str] = []

        def finalize(self) -> None:
            """Let callers hold copies of the code; nothing else is done to it."""
            self._raise_if_finalized()
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == _Linkage.external:
                    function.linkage = "linkonce_odr"
                    self.symbols.append(function.name)
                    if self.separate and can_forbid_copies():
                        function.add_function_attribute("noinline")
            self._finalized = True

        def _get_module_for_linking(self) -> Any:
            """The code of the kernel and of everything it reaches, for a function of numba's own or of the user's."""
            self._ensure_finalized()
            if self._shared_module is None:
                module = self._final_module.clone()
                for part in list_parts(self._linking_libraries):
                    module.link_in(part._get_module_for_linking(), preserve=True)
                self._shared_module = module
            return self._shared_module

    class SeparateLibrary(InnerLibrary):
        """The code of a kernel that is called, never copied into that of its callers."""

        separate = True

        @functools.cached_property
        def machine_code(self) -> Any:
            """Its machine code, which is made when the first entry reaches it."""
            made = _SharedLibrary(self._codegen, self.name)
            made.enable_object_caching()
            made._final_module = self._final_module.clone()
            made._linking_libraries = list(self._linking_libraries)
            made.renamed = dict.fromkeys(self.symbols, "")
            for symbol in self.symbols:
                made.get_function(symbol).linkage = "external"
            made.finalize()
            return made

    class EntryLibrary(_Library):
        """The machine code of a kernel that Python calls."""

        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(codegen, name)
            self.shared: list[str] = []
            self._called: list[Any] = []

        def finalize(self) -> None:
            """Link everything that the kernel reaches, each part once; then optimise and make machine code."""
            parts = list_parts(self._linking_libraries, SHARED)
            self._called = [part.machine_code for part in parts if isinstance(part, SeparateLibrary)]
            self._linking_libraries = [part for part in parts if not isinstance(part, SeparateLibrary)]
            for called in self._called:
                symbols = (*called.shared, *called.renamed.values())
                self.shared += [symbol for symbol in symbols if symbol not in self.shared]
                self._dynamic_globals += called._dynamic_globals
                if hasattr(self, "_reload_init"):  # numba 0.61 has none
                    self._reload_init.update(called._reload_init)
            super().finalize()

        def _optimize_final_module(self) -> None:
            for called in self._called:
                for before, after in called.renamed.items():
                    if any(function.name == before for function in self._final_module.functions):
                        self.get_function(before).name = after
            super()._optimize_final_module()

    class _SharedLibrary(EntryLibrary):
        """The machine code of a kernel that machine code calls."""

        renamed: dict[str, str]
        """The symbols of the kernel, and under which names they are called."""

        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            self.renamed = {symbol: name_shared(self._final_module, symbol) for symbol in self.renamed}

        def _finalize_final_module(self) -> None:
            if all(is_loaded(symbol) for symbol in self.renamed.values()):
                self._finalized = True
                return
            super()._finalize_final_module()
            for symbol in self.renamed.values():
                note_shared(symbol, self)

    class _Part:
        """The code of one kernel alone, in the form in which ``finalize`` asks for a library."""

        def __init__(self, library: Any) -> None:
            self._module = library._final_module
            self._reload_init: Any = getattr(library, "_reload_init", set())  # numba 0.61 has none, and asks for none

        def _get_module_for_linking(self) -> Any:
            return self._module

    def list_parts(libraries: Iterable[Any], keep_separate: bool = False) -> list[Any]:
        """Everything that code linked with ``libraries`` can reach, every caller before what it calls.

        With ``keep_separate``, separate kernels are listed themselves, and what only they reach is left out.

        LLVM's linker takes over only functions that are referred to by then, so the order is that of a topological
        sort: of two callers of a kernel, only the second may still refer to it once both are simplified.
        """
        finished: dict[Any, Any] = {}
        entered = set()
        waiting = list(libraries)
        while waiting:
            library = waiting[-1]
            inner = isinstance(library, InnerLibrary) and not (keep_separate and library.separate)
            if inner and library not in entered:
                entered.add(library)
                waiting += [callee for callee in library._linking_libraries if callee not in finished]
                continue
            waiting.pop()
            if library not in finished:
                finished[library] = _Part(library) if inner else library
        return list(finished.values())[::-1]
