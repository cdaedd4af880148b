"""Configuration of the documentation site; ``make docs`` builds it into ``out/docs``."""

import sys
from pathlib import Path

import superarm

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

project = "superarm"
author = "The superarm authors"
copyright = "2026, The superarm authors"
version = release = superarm.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "myst_parser",
    "sphinxcontrib.bibtex",
    "sphinx_copybutton",
    "mathml",
    "pages",
    "api",
]
exclude_patterns = ["_build", "_extensions"]
suppress_warnings = [
    "myst.header",  # a page may begin a section two levels down
]
nitpicky = False

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "author_year"
copybutton_prompt_text = r">>> |\$ "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = "superarm"
html_static_path = ["_static"]
html_css_files = ["superarm.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
