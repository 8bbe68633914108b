"""Laws from which tokens start, one file each: `from tokenflock.starts import Uniform`."""

from tokenflock.catalogue import lazy

__getattr__, __dir__ = lazy("starts", {"Start": "tokenflock.starts.start"})
