"""The packed models that ship with the package; `packed/shipped.py` finds them by name."""
