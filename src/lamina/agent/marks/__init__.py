"""What the agent writes on its node for the tools of other systems. Nobody of ours reads it back.

features     the labels of GPU feature discovery
mig_features those among them that tell of MIG devices
label_values texts as values of labels
registers    the annotations in which HAMi and Volcano list a node's devices
amounts      what there is of the resources that pods name beside tickets
wanted       all of these, from what the node offers
keeping      the node is held to what is wanted
"""
