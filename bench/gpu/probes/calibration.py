"""Which driver this is, and how many steps of work the GPU does in a microsecond."""

from ctypes import byref, c_int, create_string_buffer

from bench.gpu.probes.kernels import Event, Kernels, begin, say, warm_up
from lamina.operations.verify.tenant import CheckedDriver

FIRST_RATE, MS, TRIES = 100, 5.0, 20


def rate(driver: CheckedDriver) -> int:
    """By the shortest of some kernels, once the clocks of the GPU are up."""
    kernels, start, end = Kernels(driver, FIRST_RATE), Event(driver), Event(driver)
    warm_up(lambda: kernels.timed(MS))
    took = []
    for _ in range(TRIES):
        start.record()
        kernels.work(MS)
        end.record()
        end.wait()
        took.append(end.since(start))
    return max(1, round(FIRST_RATE * MS / min(took)))


def main() -> None:
    driver, version, text = begin(), c_int(), create_string_buffer(96)
    driver("cuDriverGetVersion", byref(version))
    nvml = CheckedDriver("libnvidia-ml.so.1")
    nvml("nvmlInit_v2")
    nvml("nvmlSystemGetDriverVersion", text, len(text))
    cuda = f"{version.value // 1000}.{version.value % 1000 // 10}"
    say({"driver": text.value.decode(), "CUDA": cuda, "rate": rate(driver)})


if __name__ == "__main__":
    main()
