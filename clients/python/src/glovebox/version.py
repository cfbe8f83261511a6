from importlib.metadata import version

VERSION = version("glovebox")
