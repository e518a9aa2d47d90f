"""The command line: reads arguments, calls the packages below, and says what went wrong in words and exit
codes.
"""
