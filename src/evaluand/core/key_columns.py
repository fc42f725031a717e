"""Names of the columns that identify an example and one of its responses in every table of the path."""

from typing import Final

INDEX: Final = "_index_"
RESPONSE_INDEX: Final = "_response_index_"
DIGEST: Final = "_digest_"
