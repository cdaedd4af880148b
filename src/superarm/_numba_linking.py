"""Kernels that other kernels call are compiled only as far as their callers need. Private interfaces of numba.

By itself, numba makes complete machine code of every function: wrappers for Python, the function and all that it calls
optimised together, and a symbol to jump to, even for a function that only other functions call. The innermost kernels
of a composition would be optimised once for every kernel above them. Here a kernel is compiled

- for the kernels that call it, to LLVM code that is neither optimised as a whole nor turned into machine code;
- for Python, only when Python calls it: it is linked with everything it reaches, and optimised and translated once.

Verbs are resolved to the method itself, without a wrapper around it. None of this changes a decision, since LLVM does
not reorder floating-point operations. Without these interfaces, ``numba.njit`` and ``numba.extending.overload`` do it.
"""

# mypy: disable-error-code="misc,no-any-return,has-type"
import hashlib
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any

from superarm._compile_errors import explaining, place_of, refuse_none
from superarm._compiling import compiling, components
from superarm._numba_libraries import LINKED
from superarm._numba_private import COUNTED, KernelCache, make_vectorising_compiler
from superarm.errors import CompileError

if LINKED:
    from superarm._numba_libraries import EntryLibrary, InnerLibrary, SeparateLibrary

    _types: Any = import_module("numba.core.types")
    _templates: Any = import_module("numba.core.typing.templates")
    _trigger_event: Any = import_module("numba.core.event").trigger_event
    _normalize_signature: Any = import_module("numba.core.sigutils").normalize_signature
    _compiler_lock: Any = import_module("numba.core.compiler_lock").global_compiler_lock
    _mangle: Any = import_module("numba.core.funcdesc").default_mangler
    _Dispatcher: Any = import_module("numba.core.registry").CPUDispatcher
    _Compiler: Any = make_vectorising_compiler() or import_module("numba.core.compiler").Compiler

    def _shorten(name: str, args: Iterable[Any], *, abi_tags: Any = (), uid: Any = None) -> str:
        """The symbol of a compiled function: its name, and a digest of what numba spells out in it.

        numba writes the types of all arguments into every symbol. Those of a composition take thousands of characters,
        which each call repeats in the text that LLVM reads.
        """
        whole = repr((name, [str(arg) for arg in args], tuple(abi_tags), uid))
        return _mangle(f"{name}.{hashlib.sha256(whole.encode()).hexdigest()[:24]}", ())

    class _InnerCompiler(_Compiler):
        library: Any = InnerLibrary

        def compile_extra(self, func: Any) -> Any:
            self.state.targetctx.mangler = _shorten  # of a copy that the compiler has made for itself
            flags = self.state.flags
            flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
            self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
            return super().compile_extra(func)

    class _SeparateCompiler(_InnerCompiler):
        library = SeparateLibrary

    class _EntryCompiler(_Compiler):
        def compile_extra(self, func: Any) -> Any:
            self.state.flags.no_cfunc_wrapper = True
            self.state.targetctx.mangler = _shorten
            library = self.state.library = EntryLibrary(self.state.targetctx.codegen(), func.__qualname__)
            library.enable_object_caching()
            result = super().compile_extra(func)
            refuse_none(_list_components(self.state.args))
            for environment in result._find_referenced_environments():  # those of the inner kernels
                library.codegen.set_env(environment.env_name, environment)
            return result

    def _list_components(args: Iterable[Any]) -> Iterator[type]:
        """The classes of the components among types of arguments, and of those inside of them."""
        for arg in args:
            if isinstance(arg, _types.BaseNamedTuple):
                if arg.instance_class in components:
                    yield arg.instance_class
                yield from _list_components(arg)

    class _Inner(_Dispatcher):
        """A kernel as other kernels call it."""

        def compile(self, sig: Any) -> Any:
            with _compiler_lock, self._compiling_counter:
                args, return_type = _normalize_signature(sig)
                found = self.overloads.get(tuple(args))
                if found is not None:
                    return found.entry_point
                details = {"dispatcher": self, "args": args, "return_type": return_type}
                with _trigger_event("numba:compile", data=details):
                    result = self._compiler.compile(args, return_type)
                key = object()
                self.targetctx.insert_user_function(key, result.fndesc, [result.library])
                self.overloads[tuple(result.signature.args)] = result._replace(entry_point=key)
                return key

        def get_call_template(self, args: Any, kws: Any) -> Any:
            """As numba's, but constants have the types of variables: otherwise each would have code of its own."""
            given = {name: _types.unliteral(value) for name, value in kws.items()}
            return super().get_call_template([_types.unliteral(value) for value in args], given)

    class Kernel(_Dispatcher):
        """A compiled function: an entry for Python, and its inner form for kernels, which is made when one needs it."""

        compiler: Any = _InnerCompiler
        """What makes the inner form."""

        def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None) -> None:
            super().__init__(py_func, locals or {}, targetoptions or {}, pipeline_class=_EntryCompiler)
            self._inner: Any = None
            self._counting: Any = None

        def compile(self, sig: Any) -> Any:
            """The machine code for ``sig``: in memory, on disk, or compiled, by one process at a time."""
            args, _ = _normalize_signature(sig)
            kept = KernelCache is not None and isinstance(self._cache, KernelCache)
            if tuple(args) in self.overloads or (kept and self._cache.holds(sig, self.targetctx)):
                return super().compile(sig)
            classes, place = list(_list_components(args)), self._cache.place if kept else None
            name = f"{self.__module__}.{self.__qualname__}{args}"
            with compiling(self.__name__, classes, place, name), explaining(classes):
                return super().compile(sig)

        @property
        def inner(self) -> Any:
            if self._inner is None:
                self._inner = _Inner(self.py_func, self.locals, self.targetoptions, pipeline_class=self.compiler)
            return self._inner

        @property
        def counting(self) -> Any:
            """The inner form that counts references, unless the kernel is lean, whatever kernel calls it."""
            if COUNTED.keys() <= self.targetoptions.keys():
                return self.inner
            if self._counting is None:
                options = {**self.targetoptions, **COUNTED}
                self._counting = _Inner(self.py_func, self.locals, options, pipeline_class=self.compiler)
            return self._counting

        @property
        def _numba_type_(self) -> Any:
            """The type of the kernel where another kernel names it."""
            return _types.Dispatcher(self.inner)

    class SeparateKernel(Kernel):
        """A kernel whose code is not copied into that of the kernels that call it."""

        compiler = _SeparateCompiler

    class InnerKernel(Kernel):
        """A kernel that is plain Python where Python calls it."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return self.py_func(*args, **kwargs)

    def _undecorated(owner: type, method: str) -> CompileError:
        """The error for a method that kernels call and that was not compiled."""
        if owner not in components:
            wrong, remedy = "lacks a decorator", f"write @superarm.component above class {owner.__name__}"
        else:
            wrong, remedy = "is called by compiled code", "remove @superarm.interpreted above it"
        return CompileError(place_of(owner), f"{owner.__name__}.{method}", wrong, remedy)

    def resolve_verb(call: Callable[..., Any], find: Callable[[type], Any], allocates: bool) -> None:
        """Let kernels that call ``call`` call the kernel ``find(owner)``, by the type of the first argument."""

        def find_inner(owner: type) -> Any:
            found = find(owner)
            if not hasattr(found, "inner"):
                raise _undecorated(owner, call.__name__)
            return found.counting if allocates else found.inner

        class VerbTemplate(_templates.AbstractTemplate):
            key = call

            def generic(self, args: Any, kws: Any) -> Any:
                if not args or not isinstance(args[0], _types.BaseNamedTuple):
                    return None
                return _types.Dispatcher(find_inner(args[0].instance_class)).get_call_type(self.context, args, kws)

            def get_impl_key(self, sig: Any) -> Any:
                return find_inner(sig.args[0].instance_class).get_overload(sig.args)

        _templates.infer_global(call, _types.Function(VerbTemplate))
