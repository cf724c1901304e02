"""The packed models that ship: NAME.safetensors, and its card NAME.toml; `packed/shipped.py` finds them by name."""
