"""What an experiment is: instances, policies, sizes and claims, as a frozen value that TOML can hold.

Everything is checked when the experiment is made, and an error names the file, the line and the nearest valid name;
instances are generated only when the cells are asked for.

- ``experiment.py``: ``Experiment``; from a dict, from and to TOML; those in ``shipped_specs/``, by name.
- ``build.py``: instances and policies from the tables of a spec, sweeps included, and back.
- ``imports.py``: modules and files with the user's own components.
- ``toml.py``: writing TOML, and finding the line of a key.
"""
