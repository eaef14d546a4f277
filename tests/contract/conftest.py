from tests.contract.fixtures import aws_keys, bucket, proxy, s3_server

__all__ = ["aws_keys", "bucket", "proxy", "s3_server"]
