"""What surrounds a program, for tests of any package: clocks, deaths and faults.

The fakes of ports are next to the ports, in `lamina.ports`, because users' tests import them too.
"""
