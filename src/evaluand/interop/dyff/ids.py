"""`dyff.schema.ids`: ids of entities, and derived ids."""

from evaluand.data.schema.keys import generate_entity_id, namespaced_id, null_id, replication_id

__all__ = ["generate_entity_id", "namespaced_id", "null_id", "replication_id"]
