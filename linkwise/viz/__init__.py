"""Views of models and motions: in the browser, in files that play anywhere, in videos, in notebooks.

From below: what things look like (``solids``, ``collada``, ``meshes``, ``looks``, ``bending``), which know no browser;
the scene of a page (``server``, ``figure``, ``overlays``); pages with their controls (``viewer``,
``player``); and what can be taken away (``recording``, ``raster``, ``video``).
"""
