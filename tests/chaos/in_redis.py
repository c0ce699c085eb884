"""The messages of a storm in Redis."""

from random import Random

from tests.acceptance.installation import Installation

QUEUES = ("minutebook.quick", "minutebook.heavy")
# In a long storm each repetition would repeat those of the last.
MOST_REPEATED = 50


class InRedis:
    def __init__(self, installation: Installation) -> None:
        self.installation = installation

    def flush(self) -> None:
        """Lose all, with all else that is in Redis."""
        with self.installation.broker.client() as client:
            client.flushall()

    def repeat(self) -> None:
        for queue in QUEUES:
            self.installation.repeat_messages(queue, 2, most=MOST_REPEATED)

    def shuffle(self, random: Random) -> None:
        with self.installation.broker.client() as client:
            for queue in QUEUES:
                raws = client.lrange(queue, 0, -1)
                random.shuffle(raws)
                for raw in raws:
                    # A message that a worker took meanwhile stays taken.
                    if client.lrem(queue, 1, raw):
                        client.lpush(queue, raw)
