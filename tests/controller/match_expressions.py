"""The evaluation of a match expression of the webhook."""

import celpy

from lamina.ports.kube import Object


def holds(expression: str, pod: Object) -> bool:
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    return bool(program.evaluate({"object": celpy.json_to_cel(pod)}))
