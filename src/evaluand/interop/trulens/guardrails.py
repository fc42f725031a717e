"""`context_filter`, `block_input` and `block_output`, over `evaluand.apps.guardrails`."""

from evaluand.apps.guardrails import block_input as block_input, block_output as block_output, filter_contexts

context_filter = filter_contexts
