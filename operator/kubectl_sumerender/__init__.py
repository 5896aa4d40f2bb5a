"""`kubectl sumerender`: many renders in the hands of one person. Talks to Kubernetes; knows nothing of the operator."""

from typing import Final

GROUP: Final = "render.sume.com"
VERSION: Final = "v1alpha1"
KIND: Final = "SumeRender"
PLURAL: Final = "sumerenders"
API_VERSION: Final = f"{GROUP}/{VERSION}"

BATCH_LABEL: Final = "render.sume.com/batch"
SOURCE: Final = "render.sume.com/source"  # annotation: what a render was made from, as it stood in the file
RETRY_OF: Final = "render.sume.com/retry-of"  # annotation: the render that this one repeats
POLL_REQUESTED_AT: Final = "render.sume.com/poll-requested-at"  # annotation: asks the operator for one look soon
