"""What surrounds a program, for tests of any package: clocks, deaths, faults, and objects of clusters.

The fakes of ports are next to the ports, in `lamina.ports`, because users' tests import them too.
"""
