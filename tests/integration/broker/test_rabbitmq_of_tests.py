"""The RabbitMQ that the tests start: no other machine reaches it."""

from tests.rabbitmq import RabbitMQ


def test_a_node_listens_on_loopback_only(rabbitmq: RabbitMQ) -> None:
    found = rabbitmq.listens_on()

    its = {rabbitmq.port, *rabbitmq.ports.values()}
    assert its <= {port for _, port in found}
    assert {address for address, _ in found} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
