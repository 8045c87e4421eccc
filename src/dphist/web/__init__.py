"""The explorer: releases in the browser, served by this machine to this machine unless told otherwise.

Also the pages of `dphist plan --web` and `dphist start --web`. Only the command line imports it.
"""

from dphist.errors import InputError

try:
    from dphist.web.app import create_app
    from dphist.web.serve import serve
except ModuleNotFoundError as missing:
    raise InputError(
        f"the explorer needs {missing.name}, which is not installed: pip install 'dphist[web]'"
    ) from None

__all__ = ["create_app", "serve"]
