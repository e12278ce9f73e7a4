"""The half of a mesh that uses the testbed: `outside` starts the run, `inside` serves requests in the run's namespaces.

Both are processes of the checkout's own Python (.venv), so that a test process needs neither the testbed's packages nor its
version of them.
"""
