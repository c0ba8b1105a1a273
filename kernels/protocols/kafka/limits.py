"""What the model of Kafka's replication leaves out."""

LIMITS = (
    "Brokers keep their logs: a replica that fails comes back with all that it had written, synced or not.",
    "The controller never fails; its requests are never lost one by one, only handled late or never.",
    "Unclean leader elections are not in the model, nor are replicas that move to another broker.",
    "There is one partition and no load; producers' retries, transactions and consumers' offsets are not in the model.",
)
