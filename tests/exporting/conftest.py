"""Small networks on one thread, as in the tests of training."""

from tests.training.conftest import one_thread as one_thread
