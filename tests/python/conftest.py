"""Settings of hypothesis for all tests: the same examples in each run, and few enough for CI."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "tiki",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
settings.load_profile("tiki")
