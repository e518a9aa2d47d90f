"""The codec engine in C, built where a C compiler is; without it kraftd is all Python."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "kraftd.wire._engine",
            ["kraftd/wire/_engine.c"],
            extra_compile_args=["-O3"],
            optional=True,
        )
    ]
)
