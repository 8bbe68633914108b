"""How the pages are built: Sphinx, MyST, Furo; formulas as MathML; nothing from another host."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import tokenflock

project = "tokenflock"
author = "The tokenflock authors"
copyright = author
version = release = tokenflock.__version__

extensions = ["myst_parser", "sphinx_copybutton", "mathml"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext", "_static", "README.md"]
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
# a link that leads nowhere, or to no heading, is a warning, and a warning ends the build

html_theme = "furo"
html_title = "tokenflock"
html_static_path = ["_static"]
html_css_files = ["tokenflock.css"]
html_js_files = ["live.js"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.output) > div.highlight > pre"
