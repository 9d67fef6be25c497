"""The live packing policy, which learns from the pods that come."""
