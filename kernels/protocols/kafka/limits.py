"""What the model of Kafka's replication leaves out."""

LIMITS = (
    "A replica that fails comes back with its log, but for what was not flushed if its machine stopped: no disk dies.",
    "The controller never fails; none of its requests is lost, but they may be handled late or never.",
    "Unclean leader elections are not in the model, nor are replicas that move to another broker.",
    "Leader epochs are few: runs that get stuck have used them up, which is the model's limit and no cluster's.",
    "After a power outage of a zone, or of all of them, its replicas are back at once, with what they had flushed.",
    "There is one partition and no load; producers' retries, transactions and consumers' offsets are not in the model.",
)
