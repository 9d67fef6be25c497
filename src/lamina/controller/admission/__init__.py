"""Admission of pods over HTTPS: the review, the service, its certificate, and the registration of the webhook.

The service runs in a process of its own:

process      in the controller: starts that process, tells it what is in force, answers what it asks about the cluster
__main__     the process, in which `worker` connects the other end to `service` and `connections`
messages     what the two tell each other, over a `channel`
"""
