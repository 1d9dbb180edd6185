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

# The files that take longest begin first (`--no-loadscope-reorder` keeps this order), so that none runs
# alone at the end.
LONGEST = ("test_typing", "test_kernel_library_drawn", "test_examples", "test_op_calls", "test_indexing", "test_leaks")


def pytest_collection_modifyitems(items):
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.stem, len(LONGEST)))
