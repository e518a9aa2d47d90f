"""The command line: parses arguments, calls the packages below, and reports failures in words and
exit codes.
"""
