from tests.contract.fixtures import (
    aws_keys,
    azure_server,
    bucket,
    front,
    gcs_server,
    moto_server,
    place,
    proxy,
    s3_server,
    service,
)

__all__ = [
    "aws_keys",
    "azure_server",
    "bucket",
    "front",
    "gcs_server",
    "moto_server",
    "place",
    "proxy",
    "s3_server",
    "service",
]
