"""What an experiment is: instances, policies, sizes and claims, as a frozen value that TOML can hold.

Everything is checked when the experiment is made, and an error names the file, the line and the nearest valid name;
instances are generated only when the cells are asked for.

- ``experiment.py``: ``Experiment``; from a dict, from TOML, to TOML.
- ``build.py``: instances and policies from the tables of a spec, and back.
- ``resolve.py``: names and parameters in a spec, turned into calls of the functions they name.
- ``imports.py``: modules and files with the user's own components.
- ``sweeps.py``: ``{ sweep = [...] }``, expanded into cases.
- ``claim_kinds.py``: the kinds of claims and their keys.
- ``toml.py``: writing TOML, and finding the line of a key.
- ``shipped.py``, ``shipped_specs/``: the experiments that come with superarm.
"""
