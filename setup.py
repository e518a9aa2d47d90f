"""The codec engine and the columns of the pipeline in C, built where a C compiler is; else all is Python."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "kraftd.wire._engine",
            ["kraftd/wire/_engine.c"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
        Extension(
            "kraftd.spark._columns",
            ["kraftd/spark/_columns.c"],
            extra_compile_args=["-O3"],
            optional=True,
        ),
    ]
)
